package ingest

import (
	"slices"
	"time"
)

// Possible are the actions on a kind of target that a state allows, and that a role may do, in the order of Actions.
// Each may still be refused for what is not in the state of the target itself: e.g. a hold of a collection.
func Possible(kind TargetKind, r Role, allows func(ActionName) bool) (names []ActionName) {
	for _, name := range Actions[kind] {
		if r.May(name) == nil && allows(name) {
			names = append(names, name)
		}
	}
	return names
}

// allowed says of each action on a job whether its state allows it.
var allowed = map[ActionName]func(*Job) bool{
	ActHold: func(j *Job) bool {
		return j.State == Pending || j.State == Held && (j.Hold == nil || j.Hold.Scope != TargetJob)
	},
	ActRelease:    func(j *Job) bool { return j.State == Held },
	ActRequeue:    func(j *Job) bool { return j.State == Failed && !j.NotRecoverable && !j.Cleaning },
	ActFail:       func(j *Job) bool { return CheckJob(j.State, Failed) == nil },
	ActDelete:     func(j *Job) bool { return j.State == Failed || j.State == Held },
	ActPrioritize: func(j *Job) bool { return j.State != Completed && j.State != Deleted },
	ActCleanUp:    func(j *Job) bool { return j.State == Failed && j.HasSpace && !j.Cleaning },
}

// Allows reports whether the state of a job allows an action that would change something: a hold without an end, or
// another priority.
func (j *Job) Allows(name ActionName) bool { return allowed[name] != nil && allowed[name](j) }

// holdable are the states in which a batch can be held.
var holdable = []BatchState{BatchPending, BatchHeld, BatchProcessing}

// Holdable reports whether a batch in a state can be held.
func (s BatchState) Holdable() bool { return slices.Contains(holdable, s) }

// allowedOnBatch says of each action on a batch whether its state allows it.
var allowedOnBatch = map[ActionName]func(b *Batch, c Counts, held bool) bool{
	ActHold:    func(b *Batch, _ Counts, held bool) bool { return b.State.Holdable() && !held },
	ActRelease: func(b *Batch, _ Counts, held bool) bool { return b.State == BatchHeld || held },
	ActCancel: func(b *Batch, c Counts, _ bool) bool {
		return (b.State == BatchPending || b.State == BatchProcessing) && b.Cancelled == nil &&
			(c.Open() > 0 || !b.Sealed)
	},
	ActDelete: func(b *Batch, c Counts, _ bool) bool {
		return (b.State == BatchFailed || b.State == BatchHeld) && c.Open() == 0
	},
	ActUpdateReport: func(b *Batch, c Counts, _ bool) bool {
		return b.State == BatchFailed && c.Sum() > 0 && c.Open() == 0
	},
	ActCleanUp: func(b *Batch, _ Counts, _ bool) bool {
		return b.State == BatchCompleted || b.State == BatchFailed
	},
}

// Allows reports whether the state of a batch allows an action that would change something. c are its counts; held: it
// has a hold of its own.
func (b *Batch) Allows(name ActionName, c Counts, held bool) bool {
	return allowedOnBatch[name] != nil && allowedOnBatch[name](b, c, held)
}

// The actions on a bulk operation.
const (
	ActInterrupt ActionName = "interrupt" // stop it before it is done
	ActContinue  ActionName = "continue"  // do the rest
)

// Possible are the actions on an operation that its state allows, and that a role may do.
func (o *Operation) Possible(r Role, now time.Time) []ActionName {
	switch {
	case r.May(o.Needs()) != nil:
	case o.State == OperationRunning:
		return []ActionName{ActInterrupt}
	case o.State == OperationInterrupted && !o.Overdue(now):
		return []ActionName{ActContinue}
	}
	return nil
}

// Lifts reports whether an action ends a hold or a pause; the others begin one.
func (name ActionName) Lifts() bool { return name == ActRelease || name == ActResume }

// HoldAllows says what is possible on a collection, the queue or the storage. held: it is on hold, or paused.
func HoldAllows(held bool) func(ActionName) bool {
	return func(name ActionName) bool { return name.Lifts() == held }
}
