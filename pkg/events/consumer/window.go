package consumer

import (
	"context"

	"archivist/pkg/events/envelope"
	"archivist/pkg/kernel/table"
)

// window reads the next events, handles those that are selected, and moves the cursor together with
// what failed. Events before the horizon are not kept: the cursor goes past them.
func (n *run) window(ctx context.Context) (next, error) {
	after := max(n.cur.Seq, n.part.Horizon-1) // events before the horizon are not kept
	facts, err := n.r.Store.Log.Read(ctx, n.part.Name, after, n.c.Window)
	if err != nil {
		return again, err
	}

	facts = n.cur.within(facts)
	if len(facts) == 0 {
		n.cur.Seq = max(n.cur.Seq, n.cur.Last) // the last events of a replay may have expired
		return idle, nil
	}

	w := n.pick(facts)
	if len(w.picked) == 0 && !n.cur.position().before(w.end) {
		return n.full(ctx, facts[0].Seq)
	}
	return n.finish(ctx, w)
}

// finish handles what is picked, and moves the cursor, in one transaction with what is parked, and
// what waits. The lease is given back when the step has come to the head of the log as it was at
// the beginning of the run; what is placed since has set the flag, and move keeps the lease then.
// An earlier step may have cleared that flag: then the run goes on until it reads no more events.
func (n *run) finish(ctx context.Context, w *window) (next, error) {
	if err := n.handle(ctx, w); err != nil {
		return again, err
	}

	if w.crowded != nil && !n.cur.position().before(w.end) {
		return n.flushRows(ctx, []*pendingRow{w.crowded})
	}

	then := hold
	switch {
	case w.stop != nil:
		then = leave
	case w.end.seq >= n.part.Head && !n.placed:
		then = finish
	}

	what, err := n.move(ctx, then, w.compose)
	if err != nil {
		return again, err
	}

	w.report()
	return what, nil
}

// window is what a step does with the events up to end, the cursor's next position.
type window struct {
	n *run

	// picked are those that are selected, in the order of the log; whole: they have their payload.
	picked []seen
	whole  bool
	end    position

	// deep counts events beyond the depth limit, for the alarm.
	deep int

	// failed are to be parked; tried are those that are to be tried again, with the tries that they
	// had.
	failed []verdict
	tried  []tried

	// waiting are keys that wait until they are quiet; crowded is one that can have no more events,
	// and must be handled first.
	waiting []*pendingRow
	crowded *pendingRow
	stop    *Stop

	// partly: some events were not tried, perhaps before others that were handled.
	partly bool
}

// pick selects events, as many as can be parked in one transaction. It reads facts only. The step
// ends with a version whose files the filter may select, since these are steps of their own.
func (n *run) pick(facts []envelope.Event) *window {
	w := &window{n: n, end: n.cur.position()}
	room := w.room()
	for _, e := range facts {
		skip := n.decide(e)
		var all []seen
		if skip == "" {
			all = show(n.filter, e)
		}

		if skip == "" && w.isFull(len(all), room) {
			return w
		}

		w.end = position{seq: e.Seq}
		w.picked = append(w.picked, all...)
		switch {
		case skip == skipDepth:
			w.deep++
		case skip == "" && n.filter.SelectsFiles(e):
			w.end = position{seq: e.Seq - 1, files: &opened{Event: refOf(e)}}
			return w // they are the next step
		}
	}
	return w
}

// room is how many events a step can pick: in the worst case all of them are parked, each with a
// row in the transaction of the cursor.
func (w *window) room() int {
	cur := &w.n.cur
	if cur.Stop != nil && cur.Stop.Kind == Blocked {
		return 1 // what comes after the event that blocks was handled already
	}
	return min(maxSelected, MaxParked-int(cur.Parked))
}

// isFull reports whether the step must end before an event of the log that is seen as several.
// Alone, such an event always has room.
func (w *window) isFull(several, room int) bool {
	return room <= 0 || len(w.picked) > 0 && len(w.picked)+several > room
}

// full stops the cursor: no more events can be parked. A replay ends there.
func (n *run) full(ctx context.Context, seq int64) (next, error) {
	if n.replay != nil {
		return n.endPart(ctx, n.stop(Full, seq, fullReplay))
	}
	s := n.stop(Full, seq, fullReason)
	return n.move(ctx, leave, func(_ *table.Tx, c *cursor) { c.halt(s, n.now()) })
}

// handle calls the target with what is picked, or lets it wait until its key is quiet. Events of
// keys that have parked events are parked behind these; those that are parked already, since the
// cursor was put back, are left alone.
func (n *run) handle(ctx context.Context, w *window) error {
	if len(w.picked) == 0 {
		return nil
	}

	keys, err := n.parked(ctx)
	if err != nil {
		return err
	}

	var free []seen
	for _, e := range w.picked {
		k := key(n.c, e.Event)
		if head, ok := keys.heads[hash(k)]; ok {
			if !keys.has(k, e.ref) {
				w.failed = append(w.failed, verdict{unit: unitOf(k, e), behind: head})
			}
			continue
		}
		free = append(free, e)
	}

	if len(free) == 0 {
		return nil
	}

	if n.c.Coalesce != nil && n.c.Coalesce.Debounce > 0 {
		return n.wait(ctx, w, free)
	}

	if !w.whole {
		if free, err = n.read(ctx, refsOf(free)); err != nil {
			return err
		}
	}

	w.call(ctx, free)
	return nil
}

// wait puts events aside until their keys are quiet. A key that can have no more events is
// handled first: then the step ends before its next event.
func (n *run) wait(ctx context.Context, w *window, facts []seen) error {
	byKey := map[string]*pendingRow{}
	for _, e := range facts {
		k := key(n.c, e.Event)
		p := byKey[k]
		if p == nil {
			var err error
			if p, err = n.pending(ctx, k); err != nil {
				return err
			}
		}

		if p.full() {
			w.end = e.ref.before()
			if p.Rev > 0 && byKey[k] == nil {
				w.crowded = p
			}
			return nil
		}

		if byKey[k] == nil {
			byKey[k] = p
			w.waiting = append(w.waiting, p)
		}

		p.add(e.ref, n.c.Coalesce, n.now())
	}
	return nil
}

// call calls the target with events that have their payload.
func (w *window) call(ctx context.Context, events []seen) {
	units := w.n.units(events)
	for _, u := range units {
		u.tries = w.n.cur.tries(u.first())
	}
	w.settle(w.n.callAll(ctx, units, w.n.until))
}

// settle takes over what the calls came to. The cursor stays before an event that could not be
// tried, and before one that blocks. Events after that which were handled are handled again: at
// least once.
func (w *window) settle(o outcome) {
	w.partly = len(o.undone) > 0
	for _, u := range o.undone {
		w.back(u)
		if u.tries > 0 {
			w.tried = append(w.tried, tried{ID: u.first(), Tries: u.tries})
		}
	}

	if o.broken != nil {
		w.stop = w.n.stop(Unreachable, w.end.seq+1, o.broken.Error())
	}

	if w.n.c.OnFailure != Block {
		w.failed = append(w.failed, o.failed...)
		return
	}

	for _, v := range o.failed {
		if v.behind == "" && v.unit.before().before(w.end) {
			w.back(v.unit)
			w.stop = w.n.stop(Blocked, v.unit.events[0].Seq, v.about())
		}
	}
}

// back lets the cursor stay before a unit.
func (w *window) back(u *unit) {
	if u.before().before(w.end) {
		w.end = u.before()
	}
}

// compose puts the step into a transaction. It can be called several times, each with a fresh
// cursor, so it changes nothing but tx and the cursor.
func (w *window) compose(tx *table.Tx, c *cursor) {
	c.Seq, c.Files, c.Tried = w.end.seq, w.end.files, w.tried
	c.halt(w.stop, w.n.now())
	if w.partly {
		w.n.repeats(c)
	}

	w.n.park(tx, c, w.failed, w.end)
	for _, p := range w.waiting {
		if p.Rev == 0 {
			c.Pending++
		}
		p.put(tx)
		c.due(p.Due)
	}
}

// report remembers, after the commit, what was parked, and counts it. Before it, a repeated step
// would count twice.
func (w *window) report() {
	w.n.parkedNow(w.failed, w.end)
	if w.stop != nil && w.stop.Kind == Blocked {
		w.n.r.metric(MetricFailed, 1)
	}
	w.n.r.metric(MetricDepth, float64(w.deep))
}
