package consumer

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"archivist/pkg/backoff"
	"archivist/pkg/definition"
	"archivist/pkg/envelope"
	"archivist/pkg/fault"
)

// ref names an event, shortly.
type ref struct {
	Seq         int64  `dynamo:"seq"`
	ID          string `dynamo:"id"`
	SubjectType string `dynamo:"subject_type"`
	SubjectID   string `dynamo:"subject_id"`
	Version     int64  `dynamo:"version"`
	Type        string `dynamo:"event_type"`
	Time        int64  `dynamo:"at_ms"`
	Shown       *shown `dynamo:"shown,omitempty"` // nil: the event itself; else the id is that of what is presented
}

func refOf(e envelope.Event) ref {
	return ref{Seq: e.Seq, ID: e.ID, SubjectType: e.Subject.Type, SubjectID: e.Subject.ID, Version: e.Version,
		Type: e.Type, Time: e.Time}
}

// facts are those by which the log finds the event.
func (f ref) facts(partition string) envelope.Event {
	return envelope.Event{ID: f.ID, Subject: envelope.Ref{Type: f.SubjectType, ID: f.SubjectID}, Version: f.Version,
		Type: f.Type, Time: f.Time, Partition: partition, Seq: f.Seq}
}

func refsOf(events []seen) (refs []ref) {
	for _, e := range events {
		refs = append(refs, e.ref)
	}
	return refs
}

// unit is what is handled, parked, or waits as one: an event, or several of one key.
type unit struct {
	key    string
	events []seen // oldest first
	item   Item
	tries  int
	again  bool // it was parked before: it stays parked, however many tries it had
}

func unitOf(key string, e seen) *unit {
	return &unit{key: key, events: []seen{e}, item: Item{Event: e.Event}}
}

func (u *unit) add(e seen)       { u.events = append(u.events, e) }
func (u *unit) before() position { return u.events[0].ref.before() }
func (u *unit) id() string       { return u.item.ID }
func (u *unit) first() string    { return u.events[0].ref.ID }

// refs names the unit's events up to a position.
func (u *unit) refs(end position) (refs []ref) {
	for _, e := range u.events {
		if e.ref.before().before(end) {
			refs = append(refs, e.ref)
		}
	}
	return refs
}

// verdict is a unit that was not handled: it failed, or it comes behind one of its key that
// did.
type verdict struct {
	unit   *unit
	reason string
	stack  string
	behind string // the id of the event that failed; "": this one
}

// outcome is what calls of a target came to. What is in neither list was handled.
type outcome struct {
	failed []verdict
	undone []*unit // not handled, and not to blame: there was no time, or the target is broken
	broken error   // the target cannot be called
}

func (o *outcome) join(other outcome) {
	o.failed = append(o.failed, other.failed...)
	o.undone = append(o.undone, other.undone...)
	if o.broken == nil {
		o.broken = other.broken
	}
}

// callAll calls the target with units that are in the order of the log. Those of one key are
// handled one after the other; different keys in parallel, within the consumer's bound.
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

// lanes distributes units, all of one key to the same lane.
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

// lane calls the target for one unit after the other, several in one call.
func (n *run) lane(ctx context.Context, all []*unit, until time.Time) (o outcome) {
	bad := map[string]string{} // keys that failed, with the event
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

// retries waits between the tries of an event.
var retries = backoff.Policy{First: time.Second, Most: 30 * time.Second}

// retry calls the target with units until all are handled, or those that fail have had all of
// their tries. Those that are to be tried again when the time is over are undone: the next run goes on
// counting.
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
			o.undone, o.broken = left, broken
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
// them, and units that are left to be tried again. over is whether the time is over.
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

// try calls the target once with all units, or, after an error that was about a whole call,
// once with each: so that only the one that is to blame fails.
func (n *run) try(ctx context.Context, left []*unit, alone bool) (failed []verdict, broken error, next bool) {
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

// cannotCall reports whether an error is about the target, not about the events.
func cannotCall(err error) bool {
	return fault.Is(err, fault.Unavailable) || fault.Is(err, fault.Denied)
}

// callOnce makes one call. reasons are those of the events that failed, by their ids.
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
	for _, u := range units {
		if !cannotCall(err) {
			u.tries++
		}
	}
	if err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return nil, fmt.Errorf("the events were not handled before the end of the run: %w", err)
	}
	if err != nil {
		return nil, err
	}
	reasons = map[string]string{}
	for _, f := range failures {
		id, ok := known[f.ID]
		if !ok {
			return nil, fmt.Errorf("the target reports that the event %q failed, which is not in the call",
				definition.Clip(f.ID, 100))
		}
		reasons[id] = f.Reason
	}
	return reasons, nil
}

// verdicts are the units of a call that failed, and those behind them. An error is about all.
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

// panicError is a panic of a handler.
type panicError struct{ text, stack string }

func (e *panicError) Error() string { return e.text }

func stack() string { return definition.Clip(string(debug.Stack()), maxStack) }

func stackOf(err error) string {
	var p *panicError
	if errors.As(err, &p) {
		return p.stack
	}
	return ""
}
