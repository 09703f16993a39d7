package revision

import (
	"cmp"
	"fmt"
	"strings"

	"archivist/pkg/kernel/explain"
	"archivist/pkg/kernel/table"
	"archivist/pkg/revisions/runner"
	"archivist/pkg/revisions/workflow"
)

// instance explains an instance by its state. One that does not exist is a NotFound.
func (e *explainer) instance(id string) (explain.Part, error) {
	in, err := e.Instance(e.ctx, id)
	st := explain.Part{Link: explain.Link{Kind: explain.Task, ID: id, State: string(in.State)}, Since: in.Since}
	switch {
	case err != nil:
		return st, err
	case in.State.Over():
		st.Waits, st.Why = explain.Nothing, e.ended(&in)
		again, err := e.again(&in)
		st.Why += again
		if in.stalled() && in.Task != workflow.Commit {
			st.Do = []explain.Step{{What: "When the cause is corrected, run it again",
				Command: "archivist archive task rerun " + id + " --reason TEXT"}}
		}
		return st, err
	case in.StopRequested != "":
		st.Waits, st.Until = explain.Grace, in.Until
		st.Why = fmt.Sprintf(
			"it was asked to stop (%s) and is to become %s; it is ended at %s at the latest",
			in.Reason,
			in.StopRequested, clock(in.Until))
		return st, nil
	}

	switch in.State {
	case workflow.Blocked:
		return e.blocked(&in, st)
	case workflow.Manual:
		st.Waits = explain.Person
		st.Why = fmt.Sprintf("%s starts it", in.Manual)
		st.Do = []explain.Step{{What: "Start it", Command: "archivist archive task start " + id + " --reason TEXT"}}
	case workflow.Awaiting:
		return e.awaiting(&in, st)
	case workflow.Ready:
		return e.ready(&in, st)
	case workflow.Waiting:
		st.Waits, st.Until, st.Why = explain.Retry, in.Until, in.again()
	case workflow.Dispatched:
		st.Waits, st.Until = explain.Start, in.Latest
		st.Why = fmt.Sprintf(
			"its execution was started at %s and has not begun; it is started again at %s",
			clock(in.Since), clock(in.Until))
	case workflow.Running:
		st.Waits, st.Until = explain.Worker, in.Until-(e.Times.Margin+runner.Margin).Milliseconds()
		st.Why = fmt.Sprintf("attempt %d runs since %s; its time is over at %s", in.Attempt,
			clock(in.Since),
			clock(st.Until))
	}
	return st, nil
}

// again says when another attempt of an instance is made.
func (in *Instance) again() string {
	if in.Last != nil && in.Last.Unstarted {
		return fmt.Sprintf("it could not be begun, which is no attempt (%s); it is tried again at %s", in.Reason,
			clock(in.Until))
	}
	return fmt.Sprintf("attempt %d failed (%s); the next is made at %s", in.Attempt, in.Reason, clock(in.Until))
}

// ended says how an instance has ended, and the first cause, unless the reason names that already.
func (e *explainer) ended(in *Instance) string {
	why := fmt.Sprintf("it has ended: %s", in.State)
	if in.Reason != "" {
		why += ": " + in.Reason
	}

	if in.State == workflow.Failure && in.AllowFailure {
		why += ". It may fail: what waits for it in its revision goes on"
	}

	if in.Root != "" && !strings.Contains(in.Reason, in.Root) {
		why += fmt.Sprintf(". The cause is the end of %s", in.Root)
	}

	if in.State == workflow.Cancelled && in.By != "" {
		why += fmt.Sprintf(" (by %s)", in.By)
	}
	return why
}

// again says what follows a run of an instance again, "" if nothing does.
func (e *explainer) again(in *Instance) (string, error) {
	if !in.stalled() {
		return "", nil
	}

	ids, err := e.Follow(e.ctx, *in)
	if err != nil || len(ids) == 0 {
		return "", err
	}

	text := ids[0]
	if len(ids) > 1 {
		text += fmt.Sprintf(" and %d more", len(ids)-1)
	}
	return fmt.Sprintf(". If it is run again --with-dependents, %s follow", text), nil
}

// pass is a step that the next pass takes; in an archive that is paused or stopped, a person comes
// first. One that is being deleted still goes on with what has ended.
func (e *explainer) pass(st explain.Part, what string) explain.Part {
	if !e.held(&st) || st.Waits == explain.Delete {
		st.Waits, st.Why = explain.Turn, what+"; the next pass does it, within seconds"
	}
	return st
}

// need says what an edge needs.
var need = map[workflow.On]string{workflow.Succeeded: "be succeeded", workflow.Failed: "be failed",
	workflow.Ended: "have ended", workflow.Finished: "be succeeded or failed"}

// blocked follows the first edge that is open; that on COMMIT decides before all others, and is the
// first. An edge on what has ended is decided by the next pass.
func (e *explainer) blocked(in *Instance, st explain.Part) (explain.Part, error) {
	open := Open(in.Edges)
	for _, edge := range in.Edges {
		if edge.Verdict != workflow.Open {
			continue
		}

		r, err := e.instanceRow(e.ctx, edge.ID)
		if err != nil {
			return st, err
		}

		// The edge is open until the awaited one is settled.
		if r.State.Over() {
			return e.pass(st, fmt.Sprintf("%s has ended: %s", edge.ID, r.State)), nil
		}

		if r.Rev == 0 { // COMMIT is written with the whole plan
			return e.pass(st, fmt.Sprintf("revision %d is being planned", in.Revision)), nil
		}

		st.Waits, st.On = explain.Edge, edge.ID
		if edge.Task == workflow.Commit && !edge.Prev {
			st.Waits = explain.Commit
		}

		st.Why = fmt.Sprintf("%s must %s first, and it is %s", edge.ID, need[edge.On], r.State)

		if open > 1 {
			st.Why += fmt.Sprintf("; %d more are waited for", open-1)
		}
		return st, nil
	}

	// Its edges are satisfied, but for the filter of paths.
	if in.Filtered {
		st = e.pass(st, "what changed is compared with its filter of paths")
		if st.Waits == explain.Turn {
			st.Waits = explain.Filter
		}
		return st, nil
	}
	return e.pass(st, "all that it depends on has ended"), nil
}

// awaiting finds the first of those that an instance supersedes, and that has not ended: the one
// that it waits for by its row, or else the first in the lines of their tasks.
func (e *explainer) awaiting(in *Instance, st explain.Part) (explain.Part, error) {
	other := in.Superseding
	for _, task := range in.Cancels {
		id, err := e.first(e.ctx, table.Query{
			PK:   livePK(in.Archive, task),
			From: "0",
			To:   before(in.Revision),
		})
		if err != nil {
			return st, err
		}
		other = cmp.Or(other, id)
	}

	for _, id := range in.Replaces {
		r, err := e.instanceRow(e.ctx, id)
		if err != nil {
			return st, err
		}
		if r.Rev > 0 && !r.State.Over() {
			other = cmp.Or(other, id)
		}
	}

	if other == "" {
		return e.pass(st, "all that it supersedes has ended"), nil
	}

	v, err := e.Instance(e.ctx, other)
	if err != nil {
		return st, err
	}
	return e.superseded(in, &v, st)
}

// superseded says why one that is superseded (v) has not ended, by the rules in the order in which a
// pass applies them.
func (e *explainer) superseded(in, v *Instance, st explain.Part) (explain.Part, error) {
	st.Waits, st.On = explain.Superseded, v.ID
	n, err := e.nameRow(e.ctx, v.Archive, v.Task)
	switch {
	case err != nil:
		return st, err
	case v.StopRequested != "":
		st.Waits = explain.Grace
		st.Why = fmt.Sprintf("it supersedes %s, which was asked to stop and has until %s", v.ID,
			clock(v.Until))
	case v.Force && v.Run > 0:
		st.Why = fmt.Sprintf("%s was started by hand with force: it may finish", v.ID)
	case v.Uninterruptible && v.State.Started():
		st.Why = fmt.Sprintf(
			"it supersedes %s, which is %s and not interruptible: it may finish", v.ID, v.State)
	case n.InRow >= workflow.Bound && v.State.Started():
		st.Why = fmt.Sprintf("%d of %s were superseded in a row, so %s may finish", n.InRow,
			v.Task, v.ID)
	default:
		st = e.pass(st, fmt.Sprintf("%s supersedes %s", in.ID, v.ID))
		st.On = ""
	}
	return st, nil
}

// ready says why an instance is not started that could be: the archive is held, it is not its turn
// of its lock, or as many run as can at once.
func (e *explainer) ready(in *Instance, st explain.Part) (explain.Part, error) {
	if e.held(&st) {
		return st, nil
	}

	if in.Lock != "" {
		turn, err := e.turn(in, st)
		if err != nil || turn.Waits != "" {
			return turn, err
		}
	}

	most, busy := cmp.Or(e.a.Running, MaxRunning), 0
	err := e.owners(e.ctx, kind(e.a.Name, running), func(lineRow) (bool, error) {
		busy++
		return busy < most, nil
	})
	if err == nil && busy >= most {
		st.Waits, st.Why = explain.Limit,
			fmt.Sprintf(
				"%d tasks of the archive %s run, which is the most at once", most, e.a.Name)
		return st, nil
	}
	return e.pass(st, "it can start"), err
}

// linesRead bounds how many places of a line are counted.
const linesRead = 1000

// turn says who comes before an instance at its lock; nothing (no Waits) if it is its turn. Beyond
// linesRead places it does not count.
func (e *explainer) turn(in *Instance, st explain.Part) (explain.Part, error) {
	l, err := e.lockRow(e.ctx, in.Archive, in.Lock)
	if err != nil {
		return st, err
	}

	before, first := 0, ""
	q := table.Query{PK: lockKey(in.Archive, in.Lock).PK, From: "0", To: in.Order}
	err = e.owners(e.ctx, q, func(r lineRow) (bool, error) {
		// The holder stays in the line until it ends.
		if r.Owner != in.ID && r.Owner != l.Holder {
			before++
			first = cmp.Or(first, r.Owner)
		}
		return before < linesRead, nil
	})
	if err != nil || l.Holder == "" && first == "" || l.Holder == in.ID {
		return st, err
	}

	st.Waits, st.On = explain.Lock, cmp.Or(l.Holder, first)
	if l.Holder == "" {
		st.Why = fmt.Sprintf(
			"%s comes first at the lock %s; %d are before it", first, in.Lock, before)
		return st, nil
	}

	st.Why = fmt.Sprintf("%s has the lock %s%s", l.Holder, in.Lock, e.heldSince(l.Holder))
	if before > 0 {
		st.Why += fmt.Sprintf(", and %d more come first", before)
	}
	return st, nil
}

// heldSince says since when a holder has its lock: since its first execution was started.
func (e *explainer) heldSince(id string) string {
	all, err := e.Attempts(e.ctx, id)
	if err != nil || len(all) == 0 {
		return "" // the rest of the explanation is of use without it
	}
	return " since " + clock(all[0].Asked)
}
