package ingest

import (
	"slices"
	"strings"
	"time"

	"archivist/pkg/kernel/fault"
)

// Filter selects jobs. A job must match every field that is set.
type Filter struct {
	Batch      string `dynamo:"of_batch,omitempty" json:"batch,omitempty"`
	Collection string `dynamo:"of_coll,omitempty" json:"collection,omitempty"`
	State      State  `dynamo:"in_state,omitempty" json:"state,omitempty"`
	// KeepOwnHolds, of ActRelease, leaves out jobs and batches that are on hold by themselves,
	// and not only because their collection or batch was.
	KeepOwnHolds bool `dynamo:"keep_own_holds,omitempty" json:"keepOwnHolds,omitempty"`
	// Before selects jobs that entered their state before this time, in milliseconds.
	Before int64 `dynamo:"before_ms,omitempty" json:"before,omitempty"`
	// Message selects jobs whose message contains this text, in any case of letters.
	Message string `dynamo:"message_has,omitempty" json:"message,omitempty"`
}

// Matches reports whether the filter selects a job.
func (f Filter) Matches(j *Job) bool {
	return (f.Batch == "" || f.Batch == j.Batch) &&
		(f.Collection == "" || f.Collection == j.Collection) &&
		(f.State == "" || f.State == j.State) &&
		!f.keeps(j.Hold, TargetJob) &&
		(f.Before == 0 || j.Entered < f.Before) &&
		strings.Contains(strings.ToLower(j.Message), strings.ToLower(f.Message))
}

// MatchesBatch reports whether the filter selects a batch that has no jobs yet. It is compared like
// a job in the state that is selected, with the batch's own hold.
func (f Filter) MatchesBatch(b *Batch) bool {
	return !f.keeps(b.Hold, TargetBatch) &&
		f.Matches(&Job{
			Batch:      b.ID,
			Collection: b.Collection,
			State:      f.State,
			Message:    b.Message,
			Work:       b.Work,
		})
}

// keeps reports whether the filter leaves out an item of a kind because of its hold.
func (f Filter) keeps(h *Hold, own TargetKind) bool {
	return f.KeepOwnHolds && h != nil && h.Scope == own
}

// BulkActions are the actions on jobs that a bulk operation can do, with the states that it
// selects if the filter names none.
var BulkActions = map[ActionName][]State{
	ActHold:       {Pending},
	ActRelease:    {Held},
	ActRequeue:    {Failed},
	ActFail:       {Estimating, Provisioning, Downloading, Processing, Storing, Recording, Notify},
	ActDelete:     {Failed, Held},
	ActPrioritize: {Pending, Held, Provisioning},
	ActCleanUp:    {Failed},
	ActCancel: {Pending, Held, Estimating, Provisioning, Downloading, Processing, Storing,
		Recording, Notify},
}

// Bulk is an action on all jobs that a filter selects.
type Bulk struct {
	Name     ActionName `dynamo:"action_name" json:"action"`
	Filter   Filter     `dynamo:"selects" json:"filter"`
	Priority *int       `dynamo:"priority,omitempty" json:"priority,omitempty"`
	Confirm  bool       `dynamo:"confirmed,omitempty" json:"confirm,omitempty"`
	Until    int64      `dynamo:"hold_until,omitempty" json:"until,omitempty"` // of ActHold
}

// Check returns an Invalid that names the first field that is not accepted. A filter must
// name a batch or a collection, or a state in which jobs wait for a person or at a gate:
// only these can be found without reading every job of the archive.
func (b Bulk) Check(now time.Time) error {
	if _, known := BulkActions[b.Name]; !known {
		return fault.New(fault.Invalid,
			"action: found %q; a bulk operation has clean-up, delete, fail, hold, "+
				"prioritize, release or requeue", Cut(string(b.Name), 100))
	}

	if err := b.checkFilter(now); err != nil {
		return err
	}

	if b.Until != 0 && b.Name != ActHold {
		return fault.New(fault.Invalid, "until: only hold has an end")
	}

	if err := CheckUntil(b.Until, now); err != nil {
		return err
	}
	return CheckPriority(b.Name, b.Priority)
}

// checkFilter returns an Invalid that names the first field of the filter that is not
// accepted.
func (b Bulk) checkFilter(now time.Time) error {
	f, states := b.Filter, BulkActions[b.Name]
	switch {
	case f.State != "" && !slices.Contains(states, f.State):
		return fault.New(fault.Invalid, "filter.state: found %q; %s acts on jobs that are %s",
			Cut(string(f.State), 100), b.Name, listOf(states))
	case f.Batch == "" && f.Collection == "" && CheckPlaced(f.State) != nil:
		return fault.New(fault.Invalid,
			"filter: expected a batch, a collection, or one of the states %s", listOf(PlacedStates))
	case f.Before < 0 || f.Before > now.UnixMilli():
		return fault.New(fault.Invalid, "filter.before: %s is not in the past", Timestamp(f.Before))
	case f.KeepOwnHolds && b.Name != ActRelease:
		return fault.New(fault.Invalid, "filter.keepOwnHolds: only release has it")
	}

	for _, t := range []struct{ field, text string }{
		{"filter.batch", f.Batch}, {"filter.collection", f.Collection},
		{"filter.message", f.Message}} {
		if err := CheckText(t.field, t.text, MaxActionReason); err != nil {
			return err
		}
	}
	return nil
}

// States are the states of the jobs that the operation selects.
func (b Bulk) States() []State {
	if b.Filter.State != "" {
		return []State{b.Filter.State}
	}
	return BulkActions[b.Name]
}

// OperationState is the state of a bulk operation.
type OperationState string

// The states of an operation. An Interrupted one can be continued.
const (
	OperationRunning     OperationState = "Running"
	OperationDone        OperationState = "Done"
	OperationInterrupted OperationState = "Interrupted"
)

// Operation is a bulk operation, or a run of the doctor. It works in pages. First it plans:
// each job that the filter selects becomes an item. Then it does the action on each item.
// Times are milliseconds since 1970.
type Operation struct {
	ID string `dynamo:"id"`
	Bulk
	Reason string         `dynamo:"op_reason"`
	Actor  string         `dynamo:"asked_by"`
	DryRun bool           `dynamo:"dry_run,omitempty"` // say what would be done, but change nothing
	Repair bool           `dynamo:"repair,omitempty"`  // the doctor repairs what it finds
	State  OperationState `dynamo:"op_state"`

	Planning bool   `dynamo:"planning,omitempty"`
	Cursor   string `dynamo:"reached,omitempty"` // the last candidate, item or page of the doctor that is done
	Progress string `dynamo:"progress,omitempty"`
	Tally    Tally  `dynamo:"tally"`
	// FromEnd: it acts on its last items first. The gates admit the first, so both rarely want the same job. One that
	// was started by an earlier release goes on from the front.
	FromEnd bool `dynamo:"from_end,omitempty"`

	// Execution is the name of the execution that a person has started and that runs it first;
	// "" if the system has started one.
	Execution string `dynamo:"execution,omitempty"`

	Created int64 `dynamo:"created"`
	Ended   int64 `dynamo:"ended,omitempty"`
	Work
}

// Tally counts the items of an operation. Planned rises while the operation is planned.
type Tally struct {
	Planned int `dynamo:"planned" json:"planned"`
	Done    int `dynamo:"done" json:"done"` // includes what was already as the action wants it
	Refused int `dynamo:"refused" json:"refused"`

	// Of the doctor: the rows and files checked, the findings, and those repaired.
	Checked  int `dynamo:"checked,omitempty" json:"checked,omitempty"`
	Findings int `dynamo:"findings,omitempty" json:"findings,omitempty"`
	Repaired int `dynamo:"repaired,omitempty" json:"repaired,omitempty"`
}

// Needs is the action that a role must allow to start, interrupt or continue the operation.
func (o *Operation) Needs() ActionName {
	if o.Name == ActDoctor && o.Repair {
		return ActRepair
	}
	return o.Name
}

// Left is the number of items that are neither done nor refused.
func (t Tally) Left() int { return max(0, t.Planned-t.Done-t.Refused) }

// KeepOperations is how long the rows of an operation are kept. An operation must end by
// itself, or be continued, within the half of that, while it has all of its items.
const KeepOperations = 90 * 24 * time.Hour

// Overdue reports whether an operation began so long ago that it may not continue. Its rows would
// expire while it runs.
func (o *Operation) Overdue(now time.Time) bool {
	return now.Sub(time.UnixMilli(o.Created)) > KeepOperations/2
}

// RunsAs reports whether execution exec is to run the next page. An older execution that is late
// runs none.
func (o *Operation) RunsAs(exec int64) bool { return o.State == OperationRunning && o.Exec == exec }

// WorkKey returns the place of an operation in the index "work", "" if it does not run.
func (o *Operation) WorkKey() (place, rank string) {
	if o.State != OperationRunning {
		return "", ""
	}
	return due("operation:"+o.ID, o.Due)
}

// StartOperation is an operation that runs since now, under a new execution: a new one, or
// an interrupted one that continues.
func (r Rules) StartOperation(o Operation, now time.Time) Operation {
	if o.Created == 0 {
		o.Created = now.UnixMilli()
		// The doctor plans no items: it finds by itself what is next.
		o.Planning = o.Name != ActDoctor
	}
	o.State = OperationRunning
	o.Exec++
	return r.ContinueOperation(o, now)
}

// ContinueOperation is a running operation after a page. One that was interrupted meanwhile gets no
// due time.
func (r Rules) ContinueOperation(o Operation, now time.Time) Operation {
	o.progress()
	if o.State == OperationRunning {
		o.Due = now.UnixMilli() + r.grace(Stage{})
	}
	return o
}

// StopOperation is an operation that is done or interrupted. One that is interrupted has not ended.
func (r Rules) StopOperation(o Operation, to OperationState, now time.Time) Operation {
	o.State, o.Due, o.Progress = to, 0, ""
	if to == OperationDone {
		o.Ended = now.UnixMilli()
	}
	return o
}

// OperationWakes are the wake-ups that are due after a change of an operation. There is none for an
// operation that a person's execution runs first.
func OperationWakes(prev, next Operation) []Wake {
	own := next.Exec == 1 && next.Execution != "" // it runs already
	if next.State != OperationRunning || next.Exec == prev.Exec || own {
		return nil
	}
	return []Wake{{Kind: StartOperation, ID: next.ID, Exec: next.Exec}}
}

// PlacedStates are the states for which PlacesOf has places: jobs in them are found without their collection.
var PlacedStates = []State{Held, Failed, Pending, Provisioning}

// CheckPlaced returns an Invalid for any other state, or none.
func CheckPlaced(s State) error {
	if slices.Contains(PlacedStates, s) {
		return nil
	}
	return fault.New(fault.Invalid,
		"expected a collection, or one of the states %s", listOf(PlacedStates))
}

// PlacesOf lists the places in the index "work" where all jobs of a state wait, in the order
// in which a job moves between them; none if jobs of the state are elsewhere.
func PlacesOf(s State) []string {
	switch s {
	case Pending:
		return []string{WorkPending}
	case Provisioning:
		return []string{WorkProvisioning}
	// First those with work files: a job moves on when these are removed.
	case Failed:
		return []string{WorkCleanUp, WorkFailed}
	case Held:
		return []string{WorkHeld}
	}
	return nil
}
