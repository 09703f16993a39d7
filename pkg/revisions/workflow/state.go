package workflow

import "slices"

// State is the state of an instance. It is stored, and part of events: the texts are never changed.
type State string

// The states. Blocked: an edge is not satisfied. Manual: a person is to start it. Awaiting: those that
// it supersedes have not ended.
// Ready: it can start, or it is not yet its turn of the lock. Dispatched: its execution is started.
// Waiting: its last attempt failed, the next comes. The others are ends.
const (
	Blocked    State = "blocked"
	Manual     State = "manual"
	Awaiting   State = "awaiting"
	Ready      State = "ready"
	Dispatched State = "dispatched"
	Running    State = "running"
	Waiting    State = "retry-wait"

	Success    State = "succeeded"
	Failure    State = "failed"
	Cancelled  State = "cancelled"
	Superseded State = "superseded"
	Skipped    State = "skipped"
)

// transitions are the states that can follow each; an end has none. Whatever changes a state asks
// Follows, so a late or repeated change that is not possible any more is refused.
//
// Ready follows Dispatched when an execution has ended before it began, and Failure when it cannot
// begin.
var transitions = map[State][]State{
	// Success: only COMMIT, which nothing runs.
	Blocked:    {Manual, Awaiting, Ready, Cancelled, Superseded, Skipped, Success},
	Manual:     {Awaiting, Ready, Cancelled, Superseded},
	Awaiting:   {Ready, Cancelled, Superseded, Skipped},
	Ready:      {Dispatched, Cancelled, Superseded},
	Dispatched: {Running, Ready, Waiting, Failure, Cancelled, Superseded},
	Running:    {Success, Failure, Waiting, Cancelled, Superseded},
	Waiting:    {Ready, Cancelled, Superseded},
}

// States lists every state, in the order in which instances go through them.
var States = []State{Blocked, Manual, Awaiting, Ready, Dispatched, Running, Waiting, Success, Failure,
	Cancelled, Superseded,
	Skipped}

// Follows reports whether an instance can go from a state to another. No state follows itself.
func Follows(from, to State) bool { return slices.Contains(transitions[from], to) }

// Over reports whether the state is an end. "" is not one: it is that of an instance that there is
// not.
func (s State) Over() bool { return s != "" && transitions[s] == nil }

// Started reports whether an execution works on the instance, or was started for it.
func (s State) Started() bool { return s == Dispatched || s == Running }

// Verdict is what the end of an awaited instance means to an edge. It is stored with the edge.
type Verdict string

// The verdicts.
const (
	Open       Verdict = ""           // the awaited instance has not ended
	Satisfied  Verdict = "satisfied"  // it ended as the edge needs
	Impossible Verdict = "impossible" // it ended otherwise: the dependent is skipped
	Followed   Verdict = "followed"   // it was superseded; the edge is now on its superseder
	Overtaken  Verdict = "overtaken"  // it was superseded, and so is the dependent
	None       Verdict = "none"       // there was no instance to wait for
	Healed     Verdict = "healed"     // it ended otherwise, and a run of its task has succeeded since
)

// Judge says what an end means to an edge. COMMIT lets the next go on whatever its end is: it never
// wedges an archive. An edge within the revision on one that was superseded is overtaken, and takes
// its dependent along; to an earlier revision, that is an end like others. "" and states that are
// no ends are Open.
func (e Edge) Judge(end State) Verdict {
	switch {
	case !end.Over():
		return Open
	case e.Task == Commit || e.On == Ended:
		return Satisfied
	case e.On == Succeeded && end == Success, e.On == Failed && end == Failure,
		e.On == Finished && (end == Success || end == Failure):
		return Satisfied
	case end == Superseded && !e.Prev:
		return Overtaken
	}
	return Impossible
}

// CancelTarget is what a superseder needs to know of an earlier instance of a task that it cancels.
// Cancel decides by it alone.
type CancelTarget struct {
	State           State
	Uninterruptible bool
	StopRequested   bool // it was asked to stop already
	InRow           int  // how many of its task were superseded in a row, without a success
}

// Action is what a superseder does to an earlier instance.
type Action string

// The actions.
const (
	NoAction  Action = ""          // it has ended, or was told
	Supersede Action = "supersede" // it has not started: it never will
	Stop      Action = "stop"      // it runs: it is told, and stopped after a grace
	Let       Action = "let"       // it may finish; the superseder waits
)

// Cancel says what becomes of an earlier instance. One that runs may finish if its definition says so, or
// if so many were superseded in a row that none would ever end (Bound). One that has not started is
// superseded in any case, also then: of those that wait behind one that may finish, only the
// newest is left.
func (t CancelTarget) Cancel() Action {
	switch {
	case t.State.Over() || t.StopRequested:
		return NoAction
	case !t.State.Started():
		return Supersede
	case t.Uninterruptible || t.InRow >= Bound:
		return Let
	}
	return Stop
}
