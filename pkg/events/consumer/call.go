package consumer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"archivist/pkg/events/envelope"
	"archivist/pkg/kernel/backoff"
	"archivist/pkg/kernel/definition"
	"archivist/pkg/kernel/fault"
)

// Calls of a target, from the outside in: callAll distributes units to lanes, a lane makes one call
// after the other, retry repeats what fails, try decides whether to call with all or with each
// alone, and callOnce makes one call.

// callAll calls the target with units that are in the order of the log. Those of one key are
// handled one after the other; different keys in parallel, within the consumer's bound. No call
// begins after until.
func (n *run) callAll(ctx context.Context, all []*unit, until time.Time) (o outcome) {
	// Calls end before the lease, so that what they came to can be written.
	ctx, cancel := context.WithTimeout(ctx, until.Sub(n.now())+n.r.grace()/2)
	defer cancel()

	n.called = true
	lanes := n.lanes(all)
	if len(lanes) == 1 {
		return n.lane(ctx, lanes[0], until)
	}

	var wait sync.WaitGroup
	results := make([]outcome, len(lanes))
	for i, lane := range lanes {
		wait.Go(func() { results[i] = n.lane(ctx, lane, until) })
	}

	wait.Wait()
	for _, r := range results {
		o.join(r)
	}
	return o
}

// lanes distributes units, all of one key to the same lane, so that a key has one call at a time.
// There are at most Concurrency of them, and keys are dealt in turn. Within a lane units keep their
// order.
func (n *run) lanes(all []*unit) (lanes [][]*unit) {
	of := map[string]int{}
	for _, u := range all {
		i, ok := of[u.key]
		if !ok {
			i = len(of) % n.c.Concurrency
			of[u.key] = i
		}
		for len(lanes) <= i {
			lanes = append(lanes, nil)
		}
		lanes[i] = append(lanes[i], u)
	}
	return lanes
}

// lane calls the target for one unit after the other, several in one call. What comes behind a
// failed unit of its key fails with it, uncalled. After a call that was not done, nothing more is
// called: the rest is undone, too, since it may be of the same keys.
func (n *run) lane(ctx context.Context, all []*unit, until time.Time) (o outcome) {
	// bad has the keys that failed, each with the event to blame.
	bad := map[string]string{}
	for len(all) > 0 {
		if !n.now().Before(until) {
			o.undone = append(o.undone, all...)
			return o
		}

		size := n.fitting(all)
		var call []*unit
		for _, u := range all[:size] {
			if head, is := bad[u.key]; is {
				o.failed = append(o.failed, verdict{unit: u, behind: head})
			} else {
				call = append(call, u)
			}
		}

		all = all[size:]
		part := n.retry(ctx, call, until)
		o.join(part)
		if len(part.undone) > 0 {
			o.undone = append(o.undone, all...) // some of them may be of the same key
			return o
		}

		for _, v := range part.failed {
			if v.behind == "" {
				bad[v.unit.key] = v.unit.id()
			}
		}
	}
	return o
}

// retries waits between the tries of an event. The run holds its lease meanwhile, so the waits are
// short; a longer pause is that of a stopped cursor.
var retries = backoff.Policy{First: time.Second, Most: 30 * time.Second}

// retry calls the target with units until all are handled, or those that fail have had all of their
// tries. Those that are to be tried again when the time is over are undone: the next run goes on
// counting, so that an event whose calls take as long as a run comes to its last try as well.
func (n *run) retry(ctx context.Context, left []*unit, until time.Time) (o outcome) {
	alone := false
	for try := 1; len(left) > 0; try++ {
		if try > 1 {
			wait := retries.Delay(try-1, n.r.Store.Table.Jitter)
			if n.r.Store.Table.Wait(ctx, wait) != nil {
				o.undone = left
				return o
			}
		}

		var failed []verdict
		var broken error
		failed, broken, alone = n.try(ctx, left, alone)
		if broken != nil {
			o.undone = left
			if !errors.Is(broken, errOver) {
				o.broken = broken
			}
			return o
		}

		over := !n.now().Before(until)
		var spent []verdict
		spent, left = n.spent(failed, over)
		o.failed = append(o.failed, spent...)
		if over {
			o.undone = left
			return o
		}
	}
	return o
}

// spent divides what failed: units that have had all of their tries, with those that come behind
// them, and units that are left to be tried again. over is whether the time is over. Then a unit of
// a redrive is spent, too: it is parked already, and its row says what failed.
func (n *run) spent(failed []verdict, over bool) (spent []verdict, left []*unit) {
	keys := map[string]bool{}
	for _, v := range failed {
		if v.behind == "" {
			keys[v.unit.key] = v.unit.tries > max(n.c.Retries, 0) || over && v.unit.again
		}
		if keys[v.unit.key] {
			spent = append(spent, v)
		} else {
			left = append(left, v.unit)
		}
	}
	return spent, left
}

// try calls the target once with all units, or, after an error that was about a whole call, once
// with each: so that only the one that is to blame fails. next is whether the following try is made
// alone; it never goes back to common calls, which would blame the others again. broken means that
// the target cannot be called, or that the time is over (errOver), and that nothing was tried.
func (n *run) try(ctx context.Context, left []*unit,
	alone bool) (failed []verdict, broken error, next bool) {
	if !alone || len(left) == 1 {
		reasons, err := n.callOnce(ctx, left)
		if cannotCall(err) {
			return nil, err, alone
		}
		return verdicts(left, reasons, err), nil, alone || err != nil
	}

	bad := map[string]string{}
	for _, u := range left {
		if head, is := bad[u.key]; is {
			failed = append(failed, verdict{unit: u, behind: head})
			continue
		}

		reasons, err := n.callOnce(ctx, []*unit{u})
		if cannotCall(err) {
			return nil, err, true
		}

		if v := verdicts([]*unit{u}, reasons, err); len(v) > 0 {
			failed = append(failed, v...)
			bad[u.key] = u.id()
		}
	}
	return failed, nil, true
}

// cannotCall reports whether an error is about the target, not about the events: then no event
// loses a try, and the cursor stops until the target can be called.
func cannotCall(err error) bool {
	return fault.Is(err, fault.Unavailable) || fault.Is(err, fault.Denied)
}

// deepest is the event of a batch with the longest chain of causes: a change that is made
// because of the whole batch continues that chain, so that the depth limit holds.
func deepest(items []Item) envelope.Event {
	return slices.MaxFunc(items, func(a, b Item) int { return a.Cause.Depth - b.Cause.Depth }).Event
}

// call calls a consumer's target. A handler that panics returns an error with the stack: one event
// must not end a process that may handle others. A target that this release or deployment does not
// have is an Unavailable, so that the events wait for one that has it.
func (r *Runtime) call(ctx context.Context, c Consumer, b Batch) (failed []Failure, err error) {
	ctx = because(ctx, c.Name, deepest(b.Events))
	if c.Target.Handler == "" {
		if r.Call == nil {
			return nil, fault.New(fault.Unavailable, "functions and queues cannot be called here")
		}
		return r.Call(ctx, c.Target, b)
	}

	h, ok := r.Handlers[c.Target.Handler]
	if !ok {
		return nil, fault.New(fault.Unavailable, "this release has no handler %q", c.Target.Handler)
	}

	defer func() {
		if p := recover(); p != nil {
			failed, err = nil,
				&panicError{text: fmt.Sprintf("the handler panicked: %v", p), stack: stack()}
		}
	}()

	return h.Handle(ctx, b)
}

// callOnce makes one call, and counts a try of each unit unless the target could not be called.
// reasons are those of the units that failed, by their ids; what is not in them was handled. A
// target may name any event of a coalesced unit. One that names an event that it was not called
// with has answered something else: then nothing counts as handled.
func (n *run) callOnce(ctx context.Context, units []*unit) (reasons map[string]string, err error) {
	b := n.batch()
	known := map[string]string{} // ids of events, with that of the item
	for _, u := range units {
		b.Events = append(b.Events, u.item)
		for _, e := range u.events {
			known[e.ID] = u.id()
		}
	}

	failures, err := n.r.call(ctx, n.c, b)
	if err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded) {
		err = n.timeOver(err)
	}

	for _, u := range units {
		if !cannotCall(err) {
			u.tries++
		}
	}

	if err != nil {
		return nil, err
	}

	n.handled.Store(true)
	reasons = map[string]string{}
	for _, f := range failures {
		id, ok := known[f.ID]
		if !ok {
			return nil, fmt.Errorf(
				"the target reports that the event %q failed, which is not in the call",
				definition.Clip(f.ID, 100))
		}
		reasons[id] = f.Reason
	}
	return reasons, nil
}

// errOver is the error of a call that the end of the run has ended. Nothing was tried.
var errOver = fault.New(fault.Unavailable, "the time of the run was over")

// mostEnds is how many runs in a row can end so, without handling anything.
const mostEnds = 5

// timeOver is the error of a call that the end of the run has ended. What could not be reached then, such as the table,
// says nothing about the target or the event: the call is made again, as the first of the next run. After mostEnds
// runs that came to nothing the target cannot be called: it, or what it waits for, takes longer than a run.
func (n *run) timeOver(err error) error {
	if cannotCall(err) && n.cur.Ends < mostEnds {
		n.over.Store(true)
		return errOver
	}
	return fmt.Errorf("the events were not handled before the end of the run: %w", err)
}

// ends counts a run in which nothing was handled because its time was over.
func (n *run) ends(c *cursor) {
	c.Ends++
	if n.handled.Load() || !n.over.Load() {
		c.Ends = 0
	}
}

// verdicts are the units of a call that failed, and those behind them. An error is about all: the
// first unit of each key is to blame, the others of the key come behind it.
func verdicts(units []*unit, reasons map[string]string, err error) (failed []verdict) {
	bad := map[string]string{}
	for _, u := range units {
		head, is := bad[u.key]
		reason, fails := reasons[u.id()]
		switch {
		case is:
			failed = append(failed, verdict{unit: u, behind: head})
		case err != nil:
			failed = append(failed, verdict{unit: u, reason: err.Error(), stack: stackOf(err)})
			bad[u.key] = u.id()
		case fails:
			failed = append(failed, verdict{unit: u, reason: reason})
			bad[u.key] = u.id()
		}
	}
	return failed
}
