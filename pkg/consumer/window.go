package consumer

import (
	"context"
	"time"

	"archivist/pkg/envelope"
	"archivist/pkg/table"
)

// maxSelected is how many events one step handles: each can need a row in the transaction
// of the cursor, which has at most table.MaxActions.
const maxSelected = 90

// MaxParked is how many rows of parked events a consumer can have in one partition. Then it
// stops: a person must look at it.
const MaxParked = 1000

// window reads the next events, handles those that are selected, and moves the cursor
// together with what failed.
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

// finish handles what is picked, and moves the cursor.
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
	case w.end.seq >= n.part.Head:
		then = finish
	}
	what, err := n.move(ctx, then, w.compose)
	if err != nil {
		return again, err
	}
	w.report()
	return what, nil
}

// window is what a step does with the events up to end.
type window struct {
	n       *run
	picked  []seen        // those that are selected
	whole   bool          // they have their payload
	end     position      // the cursor's next one
	deep    int           // events beyond the depth limit
	failed  []verdict     // to be parked
	tried   []tried       // of those that are to be tried again
	waiting []*pendingRow // keys that wait until they are quiet
	crowded *pendingRow   // it can have no more events, and must be handled first
	stop    *Stop
	partly  bool // some events were not tried, perhaps before others that were handled
}

// pick selects events, as many as can be parked in one transaction.
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

// room is how many events a step can pick.
func (w *window) room() int {
	cur := &w.n.cur
	if cur.Stop != nil && cur.Stop.Kind == Blocked {
		return 1 // what comes after the event that blocks was handled already
	}
	return min(maxSelected, MaxParked-int(cur.Parked))
}

// isFull reports whether the step must end before an event of the log that is seen as several. Alone,
// such an event always has room.
func (w *window) isFull(several, room int) bool {
	return room <= 0 || len(w.picked) > 0 && len(w.picked)+several > room
}

const fullReason = "as many events are parked as can be; look at their reasons, then redrive or discard them"

const fullReplay = "as many failures of this part are kept as can be, and the rest of it was not handled; correct " +
	"what fails, and begin again"

// full stops the cursor: no more events can be parked. A replay ends there.
func (n *run) full(ctx context.Context, seq int64) (next, error) {
	if n.replay != nil {
		return n.endPart(ctx, n.stop(Full, seq, fullReplay))
	}
	s := n.stop(Full, seq, fullReason)
	return n.move(ctx, leave, func(_ *table.Tx, c *cursor) { c.halt(s, n.now()) })
}

// handle calls the target with what is picked. Events of keys that have parked events are
// parked behind these.
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
	if n.c.Coalesce != nil && n.c.Coalesce.Quiet > 0 {
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

// call calls the target with events that have their payload.
func (w *window) call(ctx context.Context, events []seen) {
	units := w.n.units(events)
	for _, u := range units {
		u.tries = w.n.cur.tries(u.first())
	}
	w.settle(w.n.callAll(ctx, units, w.n.until))
}

// units are events as they are handled: each alone, or those of a key as one.
func (n *run) units(events []seen) []*unit {
	var all []*unit
	byKey := map[string]*unit{}
	for _, e := range events {
		k := key(n.c, e.Event)
		if n.c.Coalesce == nil {
			all = append(all, unitOf(k, e))
			continue
		}
		if u := byKey[k]; u != nil {
			u.add(e)
			continue
		}
		byKey[k] = unitOf(k, e)
		all = append(all, byKey[k])
	}
	if n.c.Coalesce == nil {
		return all
	}
	return merged(n.c, all)
}

// settle takes over what the calls came to. The cursor stays before an event that could not
// be tried, and before one that blocks.
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

// about is the reason, with what is presented if the event of the log is not the one that failed.
func (v verdict) about() string {
	if s := v.unit.events[0].ref.Shown; s != nil {
		return s.SubjectType + " " + s.SubjectID + ": " + v.reason
	}
	return v.reason
}

// compose puts the step into a transaction.
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

// tries is how often the event of that id was tried, in runs whose time was over.
func (c *cursor) tries(id string) int {
	for _, t := range c.Tried {
		if t.ID == id {
			return t.Tries
		}
	}
	return 0
}

// halt stops the cursor, if s is not nil, until it is tried again.
func (c *cursor) halt(s *Stop, now time.Time) {
	c.Stop = s
	if s != nil {
		c.Due = now.Add(s.wait()).UnixMilli()
	}
}

// due makes sure that the cursor is looked at no later than at a time.
func (c *cursor) due(at int64) {
	if c.Due == 0 || at < c.Due {
		c.Due = at
	}
}

// report remembers, after the commit, what was parked, and counts it.
func (w *window) report() {
	w.n.parkedNow(w.failed, w.end)
	if w.stop != nil && w.stop.Kind == Blocked {
		w.n.r.metric(MetricFailed, 1)
	}
	w.n.r.metric(MetricDepth, float64(w.deep))
}
