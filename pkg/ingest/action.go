package ingest

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"archivist/pkg/kernel/fault"
)

// ActionName is what a person asks the system to do.
type ActionName string

// The actions (source: merritt-state-transitions, "Admin Action"). Actions lists which
// applies to what.
const (
	ActHold         ActionName = "hold"          // stop new work of the target
	ActRelease      ActionName = "release"       // end a hold, or let a held job or batch continue
	ActRequeue      ActionName = "requeue"       // let a failed job continue
	ActFail         ActionName = "fail"          // fail a job that has started
	ActDelete       ActionName = "delete"        // delete a failed or held job or batch
	ActPrioritize   ActionName = "prioritize"    // set the priority of a job
	ActCancel       ActionName = "cancel"        // end the unfinished jobs of a batch
	ActUpdateReport ActionName = "update-report" // report what changed since the saved report
	ActPause        ActionName = "pause"         // admit no jobs, or store nothing
	ActResume       ActionName = "resume"        // end a pause
	ActCleanUp      ActionName = "clean-up"      // remove work files, or the rows of a completed batch, now

	// On the whole system, by an operation: check it, and repair what is found.
	ActDoctor ActionName = "doctor"
	ActRepair ActionName = "repair"
)

// TargetKind is what an action applies to.
type TargetKind string

// The kinds of targets. Queue and storage exist once, and have no id.
const (
	TargetJob        TargetKind = "job"
	TargetBatch      TargetKind = "batch"
	TargetCollection TargetKind = "collection"
	TargetQueue      TargetKind = "queue"
	TargetStorage    TargetKind = "storage"
)

// Actions lists the actions on each kind of target.
var Actions = map[TargetKind][]ActionName{
	TargetJob: {ActHold, ActRelease, ActRequeue, ActFail, ActDelete, ActPrioritize,
		ActCleanUp},
	TargetBatch:      {ActHold, ActRelease, ActCancel, ActDelete, ActUpdateReport, ActCleanUp},
	TargetCollection: {ActHold, ActRelease},
	TargetQueue:      {ActPause, ActResume},
	TargetStorage:    {ActPause, ActResume},
}

// Target is what an action applies to. Its text form is "job:01M…-00001", "batch:01M…",
// "collection:maps", "queue" or "storage".
type Target struct {
	Kind TargetKind
	ID   string
}

// String returns the text form.
func (t Target) String() string {
	if t.ID == "" {
		return string(t.Kind)
	}
	return string(t.Kind) + ":" + t.ID
}

// ParseTarget reads the text form of a target. The id of a job or batch may also be alone:
// only that of a job has a hyphen. Any other text is an Invalid.
func ParseTarget(text string) (Target, error) {
	kind, id, named := strings.Cut(text, ":")
	t := Target{TargetKind(kind), id}
	if !named {
		switch {
		case t.Kind == TargetQueue || t.Kind == TargetStorage:
			return t, nil
		case IsJobID(text):
			return Target{TargetJob, text}, nil
		case isBatchID(text):
			return Target{TargetBatch, text}, nil
		}
	}
	return t, t.check()
}

// isBatchID reports whether a text has the form of a ULID. Whether there is such a batch is asked
// when its row is read.
func isBatchID(text string) bool {
	const idLength = 26 // of a ULID
	return len(text) == idLength && !strings.ContainsFunc(text, func(r rune) bool {
		return (r < '0' || r > '9') && (r < 'A' || r > 'Z')
	})
}

// IsJobID reports whether a text has the form of JobID.
func IsJobID(text string) bool {
	batch, row, ok := strings.Cut(text, "-")
	notDigit := func(r rune) bool { return r < '0' || r > '9' }
	return ok && isBatchID(batch) && len(row) >= 5 && !strings.ContainsFunc(row, notDigit)
}

// check returns an Invalid that says which forms a target can have.
func (t Target) check() error {
	const forms = "expected job:ID, batch:ID, collection:NAME, queue or storage"
	_, known := Actions[t.Kind]
	single := t.Kind == TargetQueue || t.Kind == TargetStorage
	switch {
	case !known || single != (t.ID == ""):
		return fault.New(fault.Invalid, "target: found %q; %s", Cut(t.String(), 100), forms)
	case single:
		return nil
	}
	return CheckText("target", t.ID, 200)
}

// MaxActionReason limits the reason of an action, in characters, as the API counts them.
const MaxActionReason = 1000

// Action is one request of a person.
type Action struct {
	Name   ActionName
	Target Target
	Reason string // required; one line
	Actor  string // who asks
	Role   Role   // of the actor

	// Request identifies the request, "" if it has no id. The same request again changes
	// nothing, and has the same result.
	Request string

	Confirm  bool  // the person has read the warnings
	DryRun   bool  // say what would be done, but change nothing
	Priority *int  // ActPrioritize: 0 (first) to WorstPriority
	Until    int64 // ActHold, ActPause: when it ends by itself, in milliseconds since 1970; 0 = never
}

// MaxRequest limits the id of a request, in bytes.
const MaxRequest = 200

// CheckActionReason returns an Invalid if the reason of an action is missing or is not one
// line of text.
func CheckActionReason(reason string) error {
	if reason == "" {
		return fault.New(fault.Invalid, "reason: none is given; say why, for the event history")
	}
	if n := utf8.RuneCountInString(reason); n > MaxActionReason {
		return fault.New(fault.Invalid, "reason has %d characters; at most %d are allowed", n, MaxActionReason)
	}
	return CheckText("reason", reason, utf8.UTFMax*MaxActionReason)
}

// Check trims the reason, and returns an Invalid that names the first field that is not
// accepted, or a Denied if the actor's role does not allow the action. A repeated request has
// the same result at any time: only [CheckUntil], which a new request needs too, has a time.
func (a *Action) Check() error {
	a.Reason = strings.TrimSpace(a.Reason)
	if err := a.Target.check(); err != nil {
		return err
	}

	if err := checkName(a.Name, a.Target.Kind); err != nil {
		return err
	}

	if err := CheckActionReason(a.Reason); err != nil {
		return err
	}

	if err := CheckText("request", a.Request, MaxRequest); err != nil {
		return err
	}

	if err := CheckPriority(a.Name, a.Priority); err != nil {
		return err
	}

	if a.Until != 0 && a.Name != ActHold && a.Name != ActPause {
		return fault.New(fault.Invalid, "until: only hold and pause have an end")
	}
	return a.Role.May(a.Name)
}

// checkName returns an Invalid if a target has no such action.
func checkName(name ActionName, kind TargetKind) error {
	allowed := Actions[kind]
	if slices.Contains(allowed, name) {
		return nil
	}
	return fault.New(fault.Invalid, "action: found %q; a %s has %s", Cut(string(name), 100), kind,
		listOf(allowed))
}

// CheckPriority returns an Invalid if prioritize has no valid priority, or another action
// has one.
func CheckPriority(name ActionName, priority *int) error {
	switch {
	case name != ActPrioritize && priority != nil:
		return fault.New(fault.Invalid, "priority: only prioritize has one")
	case name == ActPrioritize && priority == nil:
		return fault.New(fault.Invalid, "priority: none is given; expected 0 (first) to %d",
			WorstPriority)
	case name == ActPrioritize && (*priority < 0 || *priority > WorstPriority):
		return fault.New(fault.Invalid, "priority: found %d; expected 0 (first) to %d", *priority,
			WorstPriority)
	}
	return nil
}

// WrongState refuses an action because its target is not in a state that the action needs.
// becomes is what the target can become: see [State.Becomes]. It is a Conflict.
func WrongState[S ~string](kind TargetKind, id string, is S, name ActionName, needs,
	becomes string) error {
	return fault.New(fault.Conflict, "%s %s is %s; %s needs %s; %s", kind, id, is, name, needs, becomes)
}

// listOf joins names for a message: "a, b or c".
func listOf[S ~string](names []S) string {
	texts := make([]string, len(names))
	for i, n := range names {
		texts[i] = string(n)
	}
	if len(texts) < 2 {
		return strings.Join(texts, "")
	}
	last := len(texts) - 1
	return fmt.Sprintf("%s or %s", strings.Join(texts[:last], ", "), texts[last])
}

// ActionResult is what an action did, or would do.
type ActionResult struct {
	Action  ActionName
	Target  Target
	Changed bool // false: nothing was to be changed, or it is a dry run
	DryRun  bool

	// Summary says what was done, or would be done, in a sentence.
	Summary  string
	From, To string   // the states before and after, if they differ
	Warnings []string // what the person should know; some need Confirm

	// NeedsConfirm: a dry run of an action that would be refused without Confirm.
	NeedsConfirm bool

	// Next is a bulk operation that usually follows, nil if there is none: e.g. the release of
	// the jobs that a hold has stopped.
	Next *Bulk
	// Operation is the id of the bulk operation that completes the action, "" if it is
	// complete.
	Operation string
}

// ErrUnconfirmed is in the error of an action that is refused only because it has no Confirm. Its
// kind is a Conflict.
var ErrUnconfirmed = errors.New("to do it nevertheless, repeat the request with confirm")
