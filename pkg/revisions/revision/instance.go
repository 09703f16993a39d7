package revision

import (
	"fmt"
	"strconv"
	"strings"

	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/table"
	"archivist/pkg/revisions/runner"
	"archivist/pkg/revisions/workflow"
)

// Awaits is an edge of an instance, and what became of it. An edge is decided once, in the
// transaction that removes the row of the waiter; only the doctor decides it again.
type Awaits struct {
	workflow.Edge

	// The awaited instance. "" if there is none: then the verdict is None, which counts as
	// satisfied.
	ID      string           `json:"id,omitempty"`
	Verdict workflow.Verdict `json:"verdict,omitempty"`

	// The end of the awaited instance, "" while the edge is open.
	End workflow.State `json:"end,omitempty"`

	// Of an edge that is healed: the instance that has succeeded since.
	By string `json:"by,omitempty"`
}

// Input is a dependency whose outputs an instance finds.
type Input struct {
	// As the definition names it, e.g. "index" or "PREV:index".
	Name string `json:"name"`

	// The instance whose outputs these are, from the first attempt of a planned instance on; "" if there is
	// none.
	ID string `json:"id,omitempty"`
}

// judge decides an edge on an instance that is in a state.
func (a *Awaits) judge(id string, state workflow.State) {
	a.ID, a.Verdict, a.End = id, a.Edge.Judge(state), ""
	if state.Over() {
		a.End = state
	}
}

// right reports whether the edge is decided as the state of what it is on demands. That it is healed is decided by
// another instance, which has succeeded; so nothing takes it back.
func (a *Awaits) right(state workflow.State) bool {
	want := a.Edge.Judge(state)
	return a.Verdict == want || a.Verdict == workflow.Healed && want == workflow.Impossible
}

// Execution is an execution of task-run: one attempt of an instance. Exec is unique to it, and the
// fence of all that it records: only the execution that the instance's row names can change it.
// Attempt counts from 1.
type Execution struct {
	Instance string
	Attempt  int
	Exec     string
}

// Input is what the execution gets: only names. What is to be done is read from the table when it
// begins.
func (e Execution) Input() runner.Execution {
	return runner.Execution{Attempt: fmt.Sprintf("%s/%d", e.Instance, e.Attempt), Exec: e.Exec}
}

// executionOf is the execution that has an input: the inverse of Input. An id of an instance has
// slashes, so the number is behind the last one. All else is an Invalid: the input was not made by
// Input.
func executionOf(attempt, exec string) (Execution, error) {
	i := strings.LastIndex(attempt, "/")
	n, err := strconv.Atoi(attempt[i+1:])
	if err != nil || i < 0 || exec == "" {
		return Execution{}, fault.New(fault.Invalid,
			"found the attempt %q of the execution %q; expected an instance, "+
				"a slash and a number", attempt, exec)
	}
	return Execution{attempt[:i], n, exec}, nil
}

// Name is the name of the execution: an id of it that Step Functions accepts. Step Functions starts
// one execution of a name within 90 days: a second start answers with the one that runs, or fails
// if it has ended (StartExecution). So a repeated start never runs an attempt twice.
func (e Execution) Name() string { return "task-" + e.Exec }

// Open is how many edges are not decided.
func Open(edges []Awaits) (n int) {
	for _, e := range edges {
		if e.Verdict == workflow.Open {
			n++
		}
	}
	return n
}

// What started an instance.
const (
	ByCommit   = "commit"
	ByHand     = "manual"
	BySchedule = "schedule"
)

// Instance is a task in a revision, or one run of it: the JSON of its row. Times are milliseconds
// since 1970. What is copied from the definition is so that the rules need not read that.
type Instance struct {
	ID string `json:"id"`

	// The ref of its archive.
	Archive    string `json:"archive"`
	Revision   int64  `json:"revision"`
	Task       string `json:"task"`
	Run        int64  `json:"run,omitempty"`
	Trigger    string `json:"trigger"`
	Definition string `json:"definition,omitempty"`

	// Its place in lines: by revision, topological place, name, run. See order.
	Order   string         `json:"order"`
	State   workflow.State `json:"state"`
	Created int64          `json:"created"`

	// It is in this state.
	Since  int64  `json:"since"`
	Reason string `json:"reason,omitempty"`

	// Of one that was skipped or superseded because of what it depends on: the instance whose end
	// is the first cause. "" if it was superseded or cancelled itself.
	Root string `json:"root,omitempty"`

	// Who superseded it (an instance) or cancelled it (the actor).
	By string `json:"by,omitempty"`

	// What it waits for; the edge on COMMIT is the first. COMMIT itself has one on the COMMIT
	// before.
	Edges []Awaits `json:"edges,omitempty"`
	Lock  string   `json:"lock,omitempty"`

	// Names of tasks whose earlier instances it supersedes, with their former names.
	Cancels []string `json:"cancels,omitempty"`

	// It cancels its own task: a newer instance that has started makes it needless.
	LatestOnly bool `json:"latestOnly,omitempty"`

	// The name of the task in earlier revisions, "" if it had no other.
	Was    string `json:"was,omitempty"`
	Follow bool   `json:"follow,omitempty"`

	// Its definition says interruptible: false. A superseder waits while it runs.
	Uninterruptible bool `json:"uninterruptible,omitempty"`

	// Who is to start it, "" if nobody needs to; and who has: see gated.
	Manual  string `json:"manual,omitempty"`
	Starter string `json:"starter,omitempty"`

	// The parameters that were set by who started it. The others have their defaults.
	Parameters map[string]string `json:"parameters,omitempty"`
	Inputs     []Input           `json:"inputs,omitempty"`

	// If it fails, that is no failure of its revision.
	AllowFailure bool `json:"allowFailure,omitempty"`

	// It has a filter of paths that was not asked yet. Of runs, only one that follows another is filtered.
	Filtered bool `json:"filtered,omitempty"`

	// A person wants just this run, although a newer instance has started. It is neither overtaken
	// nor superseded, and a superseder waits for it once it has started.
	Force bool `json:"force,omitempty"`

	// Runs that a run by schedule takes the place of: ids of those that went on when it was due.
	Replaces []string `json:"replaces,omitempty"`

	// Of a run: if it succeeds, what waited for the planned instance and did not succeed is run, too.
	Dependents bool `json:"dependents,omitempty"`

	// The run that it follows for that.
	After string `json:"after,omitempty"`

	// Why some of its dependents are not run after it, when it is settled: at most leftMost.
	Left []string `json:"left,omitempty"`

	// The tasks that led to its revision, the nearest last.
	Chain []string `json:"chain,omitempty"`

	// The number of the last attempt that was started, from 1; 0: none. A start that was none
	// (resend) is taken back.
	Attempt int `json:"attempt,omitempty"`

	// Of the execution that may record. It stays after the attempt: an instance with an Exec has
	// started once, and has its lock.
	Exec string `json:"exec,omitempty"`

	// The secret part of its token, made with the first attempt. It never leaves the table but to
	// the run.
	Secret string `json:"secret,omitempty"`

	// When the pass looks at it again, 0: never. What that means depends on the state: see due.
	Until int64 `json:"until,omitempty"`

	// By when the execution has begun; then another takes its place.
	Latest int64 `json:"latest,omitempty"`

	// Executions that ended before anything of the task began, in all attempts: see startsKept.
	Starts int `json:"starts,omitempty"`

	// The state that it is to end in, once a run was told to end. From then on, no result changes
	// that.
	StopRequested string `json:"told,omitempty"`

	// It is not its turn of the lock. So it is not in the line of what can start, until the end of
	// another lets it.
	Parked bool `json:"parked,omitempty"`

	// The instance for whose end it waits, of those that it supersedes: the first that has not
	// ended.
	Superseding string `json:"victim,omitempty"`

	// The revision after which changes count for it: see base. It is given to the run.
	Base int64 `json:"base,omitempty"`

	// The newest attempt that ended, nil if none has.
	Last *Tried `json:"last,omitempty"`

	// It has ended, and all that waited for it were told: it is in no line any more.
	Settled bool `json:"settled,omitempty"`
}

// execution is the execution of the attempt that goes on. Exec is "" if none was started.
func (in *Instance) execution() Execution { return Execution{in.ID, in.Attempt, in.Exec} }

// gated reports whether a person is to start the instance, and has not. Of runs only one that follows another
// is: the others were started by a person.
func (in *Instance) gated() bool { return in.Manual != "" && in.Starter == "" }

// Prefix begins the keys of the attempt that goes on: what it logs and leaves. No two attempts have
// the same. So a late runner of an earlier attempt writes to a folder that nobody reads any more.
func (in *Instance) Prefix() string {
	return fmt.Sprintf("%s%s/%06d-%s/", runner.Prefix, in.ID, in.Attempt, in.Exec)
}

// token is that of the runs of an instance: the same for all attempts, since a commit that is
// repeated by a later attempt is of the same maker.
func (in *Instance) token() string { return in.ID + ":" + in.Secret }

// Tried is an attempt that has ended. It is part of the instance's row and of the event, so its
// parts are bounded: see tried.
type Tried struct {
	Attempt int `json:"attempt"`

	// As in package runner: Succeeded, Failed, TimedOut, Cancelled or Broken.
	End string `json:"end"`

	// The exit code of the process, -1 if a signal ended it or it never ran.
	Exit   int    `json:"exit"`
	Reason string `json:"reason,omitempty"`

	// Nothing of the task was begun, and it is not to blame: it was no attempt of its retries.
	Unstarted bool `json:"unstarted,omitempty"`

	// Of the run, by the runner's clock; 0 if it is not known, like Ended.
	Started int64 `json:"started,omitempty"`
	Ended   int64 `json:"ended,omitempty"`

	// The first ones, by outputsKept and listKept.
	Outputs []Output `json:"outputs,omitempty"`

	// The number of all outputs, and the digest of their list: see runner.ListDigest.
	OutputCount int    `json:"kept,omitempty"`
	List        string `json:"list,omitempty"`
}

// Attempt is one execution of an instance, by its events. Times are milliseconds since 1970, 0 if
// there is none.
type Attempt struct {
	Number      int
	Exec        string
	Asked       int64 // when its execution was started
	Began       int64 // when that began
	Ended       int64
	End         string // as in package runner, or the state in which the instance ended
	Exit        int    // -1: it was ended by a signal, or none is known
	Reason      string
	Outputs     []Output // the first ones
	OutputCount int      // of all outputs
}

// Output is a file that a run has left: Path is relative to its folder of outputs, Size is in
// bytes, SHA256 in hexadecimal.
type Output struct {
	Path   string `json:"path"`
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256"`
}

// instanceRow is the row of an instance.
type instanceRow struct {
	table.Head
	Number int64  `dynamo:"version"` // of its events
	Text   string `dynamo:"instance_json"`

	// When it ended, in milliseconds since 1970; 0, and no attribute, before that.
	// "attribute_not_exists(over_ms)" is how a transaction requires that somebody it is to wait for
	// has not ended.
	Over int64 `dynamo:"over_ms,omitempty"`

	Instance `dynamo:"-"`
}
