// Package revision runs automations on archives, in the order of their revisions (source: the requirement
// "Ark Queue"). The rules are in package workflow; here are the rows and the changes of them.
//
// A revision that was notified is planned when all before it are. Its plan is an instance for each task
// that its files define. Each instance waits for its edges, for its turn of its lock and for those that it
// supersedes, is then run by an execution of the state machine task-run, and ends once.
//
//	ARCHIVE#{archive}          ARCHIVE        settings, and up to which revision all are planned
//	ARCHIVE#{archive}          WAKE           when the archive is to be looked at: in the index work
//	ARCHIVEOF#{ark}            {archive}      an object that is an archive: its versions are notified
//	REVISION#{ref}/{n}         REVISION       a revision, its plan and the numbers of its instances
//	TASK#{instance}            TASK           an instance
//	TASK#{instance}            WAITER#{id}    an instance that waits for it
//	WORKFLOW#{archive}         {hash}         a definition
//	TASKNAMES#{ref}            {task}         what is known of all instances of a task
//	TASKLIVE#{ref}#{task}      {order}        its instances that have not ended
//	TASKTIMED#{ref}#{task}     {order}        likewise, those by schedule
//	TASKCANCEL#{ref}#{task}    {order}        instances that await the ends of those that they supersede
//	TASKLOCK#{ref}#{lock}      LOCK, {order}  who has the lock, and who waits for it
//	TASKLINE#{archive}         …              what is to be done: see the keys in line.go
//
// A ref is an archive in one of its epochs: "maps", or "maps@2" after its revisions were replaced. Pass does what
// is to be done in one archive, under a lease: only it plans, lets go on and starts. Notifications, the ends of
// runs and the actions of people only change rows, and ask for a pass.
//
// What has ended for long goes into a bucket, from which it is shown as before: see keep.go. The rows of revisions
// stay.
package revision

import (
	"context"
	"fmt"
	"log/slog"
	"regexp"
	"strconv"
	"strings"
	"time"

	"archivist/pkg/archive"
	"archivist/pkg/fault"
	"archivist/pkg/lease"
	"archivist/pkg/runner"
	"archivist/pkg/table"
	"archivist/pkg/workflow"
)

// Limits, each with its reason.
const (
	MaxRevision    = 999_999_999_999 // the number has twelve digits in keys
	MaxTransaction = 200             // bytes: the longest is a digest with its name
	MaxReason      = 500
	MaxRunning     = 20   // instances of an archive that run at once, unless it sets another limit
	MostRunning    = 500  // that it can set: one pass looks at all
	MaxChain       = 20   // causes that an instance names
	maxTries       = 20   // of a change that meets others
	txRows         = 90   // of a transaction, so that its event and the fence have room
	problemsKept   = 50   // of an invalid definition: they are part of the revision's row
	outputsKept    = 100  // that an instance's row names; the rest is in the run's result
	reconcileMost  = 1000 // missing revisions that one look notifies
)

// Names are the names of archives. They are part of keys, of names of executions and of paths.
var Names = regexp.MustCompile(`^[a-z][a-z0-9-]{0,39}$`)

// Times are the durations of a deployment.
type Times struct {
	Pass      time.Duration // the lease of one pass; the time-out of its function is shorter
	Resend    time.Duration // until an execution that has not begun is started again
	Begin     time.Duration // the longest time in which an execution begins: it prepares the files
	Margin    time.Duration // in which a run begins, once its attempt has: then it has its time-out
	Grace     time.Duration // in which a run that was told to stop can end by itself
	Gap       time.Duration // until the archive is asked for a revision that nobody notified
	Reconcile time.Duration // between two looks at the head of an archive, unless it sets another time
	Keep      time.Duration // after which what has ended goes into the bucket: a revision, or a run
}

// Default are the times of a deployment that sets none.
var Default = Times{Pass: 90 * time.Second, Resend: time.Minute, Begin: 15 * time.Minute, Margin: 2 * time.Minute,
	Grace: time.Minute, Gap: time.Minute, Reconcile: time.Hour, Keep: 30 * 24 * time.Hour}

// Quick are the times of a local stack, in which people watch and tests wait.
var Quick = Times{Pass: 30 * time.Second, Resend: 15 * time.Second, Begin: 3 * time.Minute, Margin: 20 * time.Second,
	Grace: 15 * time.Second, Gap: 5 * time.Second, Reconcile: time.Minute, Keep: 30 * 24 * time.Hour}

// Check returns an Invalid if the times do not go together.
func (t Times) Check() error {
	switch {
	case min(t.Pass, t.Resend, t.Begin, t.Margin, t.Grace, t.Gap, t.Reconcile, t.Keep) <= 0:
		return fault.New(fault.Invalid, "every time of the revision queue must be positive")
	case t.Begin <= t.Resend:
		return fault.New(fault.Invalid, "the time to begin (%s) must be longer than that to the next start (%s)",
			t.Begin, t.Resend)
	}
	return nil
}

// By is who changes something, and why.
type By struct {
	Actor  string
	Reason string
	Token  string // of the run that asks, "" if none does
}

// Execution is an execution of task-run: one attempt of an instance. Exec is unique to it, and
// the fence of all that it records.
type Execution struct {
	Instance string
	Attempt  int
	Exec     string
}

// Input is what the execution gets.
func (e Execution) Input() runner.Execution {
	return runner.Execution{Attempt: fmt.Sprintf("%s/%d", e.Instance, e.Attempt), Exec: e.Exec}
}

// executionOf is the execution that has an input.
func executionOf(attempt, exec string) (Execution, error) {
	i := strings.LastIndex(attempt, "/")
	n, err := strconv.Atoi(attempt[i+1:])
	if err != nil || i < 0 || exec == "" {
		return Execution{}, fault.New(fault.Invalid, "found the attempt %q of the execution %q; expected an instance, "+
			"a slash and a number", attempt, exec)
	}
	return Execution{attempt[:i], n, exec}, nil
}

// The time-outs of the functions of task-run: the first reads a repository and packs its files, and the second can
// run as long as Lambda lets it.
const (
	ControlTime = 5 * time.Minute
	RunnerTime  = 15 * time.Minute
)

// Name is the name of the execution: an id of it that Step Functions accepts.
func (e Execution) Name() string { return "task-" + e.Exec }

// Store keeps archives, revisions and instances.
type Store struct {
	Table  *table.Table
	Leases *lease.Store
	Now    func() time.Time
	NewID  func() string
	Secret func() string // random, not to be guessed
	Times  Times

	// Open opens an archive for reading.
	Open func(ctx context.Context, l archive.Location) (archive.Source, error)

	// Start starts an execution. If the same one runs already it does nothing; if it has ended already it
	// returns a Conflict. Stop stops one, if it runs.
	Start func(ctx context.Context, e Execution) error
	Stop  func(ctx context.Context, e Execution, reason string) error

	// Tell asks a run to end: it sees that in its folder, which prefix begins.
	Tell func(ctx context.Context, prefix, reason string) error

	// Wake starts a pass soon. A wake-up that is lost costs time: the schedule starts one.
	Wake func(ctx context.Context, archive string) error

	// Kept, if it is set, gets what has ended for long.
	Kept Objects

	// Metric, if it is set, counts what an operator should see. Log gets what is tried again.
	Metric func(name string, value float64)
	Log    *slog.Logger
}

func millis(t time.Time) int64 { return t.UnixMilli() }

func (s *Store) now() int64 { return millis(s.Now()) }

func (s *Store) count(metric string, n float64) {
	if s.Metric != nil && n > 0 {
		s.Metric(metric, n)
	}
}

func (s *Store) warn(text string, args ...any) {
	if s.Log != nil {
		s.Log.Warn(text, args...)
	}
}

// wake asks for a pass. The schedule repairs what is lost.
func (s *Store) wake(ctx context.Context, archive string) {
	if s.Wake == nil {
		return
	}
	err := s.Wake(ctx, archive)
	if err != nil {
		s.warn("the revision queue was not woken; the schedule starts it", "archive", archive, "error", err)
	}
}

// ref names an archive in an epoch.
func ref(archive string, epoch int64) string {
	if epoch <= 1 {
		return archive
	}
	return fmt.Sprintf("%s@%d", archive, epoch)
}

// archiveOf is the archive of a ref or of an id that begins with one.
func archiveOf(id string) string {
	if i := strings.IndexAny(id, "@/"); i >= 0 {
		return id[:i]
	}
	return id
}

// revisionID is the id of a revision.
func revisionID(ref string, n int64) string { return fmt.Sprintf("%s/%d", ref, n) }

// instanceID is the id of an instance. run is 0 for the one that the revision planned.
func instanceID(ref string, n int64, task string, run int64) string {
	if run == 0 {
		return fmt.Sprintf("%s/%d/%s", ref, n, task)
	}
	return fmt.Sprintf("%s/%d/%s/%d", ref, n, task, run)
}

// order is the place of an instance among those of its archive: by revision, topological place, name, run.
func order(n int64, place int, task string, run int64) string {
	return fmt.Sprintf("%012d#%03d#%s#%06d", n, place, task, run)
}

// before begins the orders of no revision below n.
func before(n int64) string { return fmt.Sprintf("%012d", n) }

// last sorts behind all that follows in a key.
const last = "~"

// placeOfCommit sorts COMMIT before the tasks of its revision.
const placeOfCommit = 0

// placeOf is the place of a task, behind that of COMMIT.
func placeOf(t *workflow.Task) int { return t.Place + 1 }
