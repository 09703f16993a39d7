package ingest

import (
	"fmt"
	"maps"
	"slices"

	"archivist/pkg/kernel/fault"
)

// State of a job. Stored strings are never renamed.
type State string

// The job's states (source: merritt-state-transitions). Unpack makes a job Pending, gate 1
// moves it on. Held: set by admit or an admin. Estimating, Downloading … Notify: ended by
// their stages. Provisioning: waits for gate 2. Failed: set by a stage, an admin, a
// gate or the sweep, left by requeue or delete. Completed: set by notify. Deleted: set by an admin.
const (
	Pending      State = "Pending"
	Held         State = "Held"
	Estimating   State = "Estimating"
	Provisioning State = "Provisioning"
	Downloading  State = "Downloading"
	Processing   State = "Processing"
	Storing      State = "Storing"
	Recording    State = "Recording"
	Notify       State = "Notify"
	Completed    State = "Completed"
	Failed       State = "Failed"
	Deleted      State = "Deleted"
)

// Order is the states of the successful path, in order.
var Order = []State{Pending, Estimating, Provisioning, Downloading, Processing, Storing, Recording,
	Notify, Completed}

// nextJob has the changes that CheckJob allows. "" is a job that is being made.
var nextJob = map[State][]State{
	"":           {Pending, Failed}, // Failed: a row that cannot be ingested
	Pending:      {Held, Estimating, Deleted},
	Held:         {Pending, Deleted},
	Estimating:   {Provisioning, Failed},
	Provisioning: {Downloading, Failed},
	Downloading:  {Processing, Failed},
	Processing:   {Storing, Failed},
	Storing:      {Recording, Failed},
	Recording:    {Notify, Failed},
	Notify:       {Completed, Failed},
	// requeue: the state after the last successful one
	Failed: {Pending, Provisioning, Downloading, Processing, Storing, Recording, Notify,
		Deleted},
	Completed: {},
	Deleted:   {},
}

// JobStates lists every state of a job.
func JobStates() []State { return statesOf(nextJob) }

// BatchStates lists every state of a batch.
func BatchStates() []BatchState { return statesOf(nextBatch) }

func statesOf[S ~string](table map[S][]S) []S {
	states := slices.Sorted(maps.Keys(table))
	return slices.DeleteFunc(states, func(s S) bool { return s == "" })
}

// After returns the state that follows s on the successful path. After "" it is Pending:
// a job without a successful state starts from the beginning.
func After(s State) State {
	if i := slices.Index(Order, s) + 1; i < len(Order) {
		return Order[i]
	}
	return Pending
}

// isAfter reports whether a comes after b on the successful path.
func isAfter(a, b State) bool {
	before := slices.Index(Order, b)
	return before >= 0 && slices.Index(Order, a) > before
}

// CheckJob returns a Conflict that names both states, and those that are allowed, when from
// may not become to.
func CheckJob(from, to State) error { return check("job", nextJob, from, to) }

// Becomes says what a job in a state can become: "a job that is Pending can become Held,
// Estimating or Deleted".
func (s State) Becomes() string { return becomes("job", nextJob, s) }

// check returns a Conflict unless a table has a change.
func check[S ~string](what string, table map[S][]S, from, to S) error {
	if slices.Contains(table[from], to) {
		return nil
	}
	return fault.New(fault.Conflict, "%s; not %s", becomes(what, table, from), to)
}

func becomes[S ~string](what string, table map[S][]S, from S) string {
	subject := fmt.Sprintf("a %s that is %s", what, from)
	if from == "" {
		subject = "a new " + what
	}
	if len(table[from]) == 0 {
		return subject + " cannot become anything else"
	}
	return fmt.Sprintf("%s can become %s", subject, listOf(table[from]))
}

// Class is the class in which a batch counts a job.
type Class string

// The classes. Every job of a sealed batch is in exactly one.
const (
	ClassProcessing Class = "n_processing"
	ClassHeld       Class = "n_held"
	ClassFailed     Class = "n_failed"
	ClassCompleted  Class = "n_completed"
	ClassDeleted    Class = "n_deleted"
)

// Class returns the class of a state, "" for no state.
func (s State) Class() Class {
	switch s {
	case "":
		return ""
	case Held:
		return ClassHeld
	case Failed:
		return ClassFailed
	case Completed:
		return ClassCompleted
	case Deleted:
		return ClassDeleted
	}
	return ClassProcessing
}

// Open reports whether a job in this state has not ended, so that its batch cannot report.
func (s State) Open() bool { return s.Class() == ClassProcessing || s.Class() == ClassHeld }

// BatchState is the state of a batch.
type BatchState string

// The batch's states. Unpack ends BatchPending, the end of the last job BatchProcessing,
// and report BatchReporting and BatchUpdateReporting.
const (
	BatchPending         BatchState = "Pending"
	BatchHeld            BatchState = "Held"
	BatchProcessing      BatchState = "Processing"
	BatchReporting       BatchState = "Reporting"
	BatchUpdateReporting BatchState = "UpdateReporting"
	BatchCompleted       BatchState = "Completed"
	BatchFailed          BatchState = "Failed"
	BatchDeleted         BatchState = "Deleted"
)

// nextBatch has the changes that CheckBatch allows.
var nextBatch = map[BatchState][]BatchState{
	"":                   {BatchPending},
	BatchPending:         {BatchHeld, BatchProcessing, BatchFailed},
	BatchHeld:            {BatchPending, BatchDeleted},
	BatchProcessing:      {BatchReporting},
	BatchReporting:       {BatchCompleted, BatchFailed},
	BatchFailed:          {BatchUpdateReporting, BatchDeleted},
	BatchUpdateReporting: {BatchCompleted, BatchFailed},
	BatchCompleted:       {BatchDeleted}, // cleanup
	BatchDeleted:         {},
}

// CheckBatch is CheckJob for a batch.
func CheckBatch(from, to BatchState) error { return check("batch", nextBatch, from, to) }

// Becomes says what a batch in a state can become.
func (s BatchState) Becomes() string { return becomes("batch", nextBatch, s) }
