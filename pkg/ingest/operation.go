package ingest

import (
	"slices"
	"strings"
	"time"

	"archivist/pkg/fault"
)

// Filter selects jobs. A job must match every field that is set.
type Filter struct {
	Batch      string `dynamo:"of_batch,omitempty" json:"batch,omitempty"`
	Collection string `dynamo:"of_coll,omitempty" json:"collection,omitempty"`
	State      State  `dynamo:"in_state,omitempty" json:"state,omitempty"`
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
		(f.Before == 0 || j.Entered < f.Before) &&
		strings.Contains(strings.ToLower(j.Message), strings.ToLower(f.Message))
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
	ActCancel:     {Pending, Held, Estimating, Provisioning, Downloading, Processing, Storing, Recording, Notify},
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
	states, known := BulkActions[b.Name]
	f := b.Filter
	switch {
	case !known:
		return fault.New(fault.Invalid, "action: found %q; a bulk operation has clean-up, delete, fail, hold, "+
			"prioritize, release or requeue", Cut(string(b.Name), 100))
	case f.State != "" && !slices.Contains(states, f.State):
		return fault.New(fault.Invalid, "filter.state: found %q; %s acts on jobs that are %s",
			Cut(string(f.State), 100), b.Name, listOf(states))
	case f.Batch == "" && f.Collection == "" && !slices.Contains([]State{Held, Failed, Pending, Provisioning}, f.State):
		return fault.New(fault.Invalid,
			"filter: expected a batch, a collection, or one of the states Held, Failed, Pending and Provisioning")
	case f.Before < 0 || f.Before > now.UnixMilli():
		return fault.New(fault.Invalid, "filter.before: %s is not in the past", Timestamp(f.Before))
	case b.Until != 0 && (b.Name != ActHold || b.Until <= now.UnixMilli()):
		return fault.New(fault.Invalid, "until: expected a later time, of a hold")
	}
	for _, t := range []struct{ field, text string }{
		{"filter.batch", f.Batch}, {"filter.collection", f.Collection}, {"filter.message", f.Message}} {
		if err := CheckText(t.field, t.text, MaxActionReason); err != nil {
			return err
		}
	}
	return CheckPriority(b.Name, b.Priority)
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
