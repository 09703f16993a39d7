package consumer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"archivist/pkg/definition"
	"archivist/pkg/envelope"
	"archivist/pkg/fault"
	"archivist/pkg/table"
)

// errUnchanged ends a change that would change nothing.
var errUnchanged = fmt.Errorf("consumer: nothing to change")

// act makes a change of a consumer with its event, in one transaction. decide returns the
// event's type and detail, and puts more rows into tx; it is called again if another change
// was first. The same request again changes nothing.
func (s *Store) act(ctx context.Context, name string, by By,
	decide func(tx *table.Tx, r *row) (eventType string, detail change, err error)) error {
	if err := by.checkReason(); err != nil {
		return err
	}
	for range changeTries {
		r, err := s.row(ctx, name)
		switch {
		case err != nil:
			return err
		case r.State != active:
			return missing(name)
		case by.Request != "" && slices.Contains(r.Requests, by.Request):
			return nil
		}
		tx := s.Table.Begin(s.NewID())
		eventType, detail, err := decide(tx, &r)
		if err == errUnchanged {
			return nil
		}
		if err == nil {
			err = s.put(tx, &r, eventType, by, detail)
		}
		if err == nil {
			err = tx.Commit(ctx)
		}
		if !fault.Is(err, fault.Stale) {
			return err
		}
	}
	return busy(name)
}

// Pause stops a consumer: a run that is at work ends after its step. Its cursors stay.
func (s *Store) Pause(ctx context.Context, name string, by By) error {
	return s.setPaused(ctx, name, by, true, "consumer.paused")
}

// Resume lets a paused consumer go on from where it was. Of one that is not paused, cursors
// that are stopped are tried again at once.
func (s *Store) Resume(ctx context.Context, name string, by By) error {
	return s.setPaused(ctx, name, by, false, "consumer.resumed")
}

func (s *Store) setPaused(ctx context.Context, name string, by By, paused bool, eventType string) error {
	return s.act(ctx, name, by, func(tx *table.Tx, r *row) (string, change, error) {
		c, err := r.consumer()
		if err != nil {
			return "", change{}, err
		}
		retried := 0
		if !paused {
			if retried, err = s.retry(ctx, tx, name); err != nil {
				return "", change{}, err
			}
		}
		if c.Paused == paused && retried == 0 {
			return "", change{}, errUnchanged
		}
		c.Paused = paused
		r.Changed = s.Now().UnixMilli()
		return eventType, change{}, r.set(c.Definition)
	})
}

// retry makes the stopped cursors of a consumer due, and returns how many.
func (s *Store) retry(ctx context.Context, tx *table.Tx, name string) (n int, err error) {
	cursors, err := s.cursors(ctx, name)
	if err != nil {
		return 0, err
	}
	now := s.Now()
	for i := range cursors {
		if cur := &cursors[i]; cur.resting(now) && n < maxOrdered {
			cur.Due = now.UnixMilli()
			cur.put(tx)
			n++
		}
	}
	return n, nil
}

// Skip moves a cursor forward, past events that are not handled: the last is seq. Events of
// keys that wait until they are quiet are still handled.
func (s *Store) Skip(ctx context.Context, name, partition string, seq int64, by By) error {
	p, err := s.Log.Partition(ctx, partition)
	if err != nil {
		return err
	}
	if seq < 1 || seq > p.Head {
		return fault.New(fault.Invalid, "seq: %d: the partition %s has events up to %d", seq, partition, p.Head)
	}
	return s.act(ctx, name, by, func(tx *table.Tx, _ *row) (string, change, error) {
		cur, err := s.cursor(ctx, name, partition)
		if err != nil {
			return "", change{}, err
		}
		if cur.Seq >= seq {
			return "", change{}, errUnchanged
		}
		cur.jump(seq, p, s.Now().UnixMilli())
		cur.put(tx)
		return "consumer.skipped", change{Partition: partition, To: fmt.Sprintf("seq:%d", seq)}, nil
	})
}

// jump puts a cursor at a place, as a person wants. A run that is at work loses its lease.
func (c *cursor) jump(seq int64, p envelope.Partition, now int64) {
	if seq > c.Seq {
		c.Skips = append(slices.Clone(c.Skips), span{After: c.Seq, To: seq})
		c.Skips = c.Skips[max(0, len(c.Skips)-maxSkips):]
	} else if seq < c.Seq {
		c.Skips = nil
		c.Begin = min(c.Begin, seq)
	}
	c.Release()
	c.Started, c.Epoch = true, p.Epoch
	c.Seq, c.Files, c.Tried, c.Stop, c.Moved, c.Due, c.From = seq, nil, nil, nil, now, now, 0
}

// reset is a change of cursors that is being made. No run begins meanwhile.
type reset struct {
	ID        string `dynamo:"id"`
	Partition string `dynamo:"log_partition,omitempty"` // "": all
	To        string `dynamo:"target"`                  // as in Definition.Start
	At        int64  `dynamo:"at_ms"`
}

// maxResets is how many changes of cursors can be unfinished.
const maxResets = 10

// Reset puts the cursor in a partition, or all cursors ("" as the partition), at a place:
// "latest", "horizon", "cursor", "seq:N" or "time:…". Events after it are handled again. What
// is parked stays parked. After the log was restored from a backup, it is how a consumer goes on.
func (s *Store) Reset(ctx context.Context, name, partition, to string, by By) error {
	at, err := parseReset(to)
	if err != nil {
		return fault.New(fault.Invalid, "to: %w", err)
	}
	if at.seq > 0 && partition == "" {
		return fault.New(fault.Invalid, "to: %q: each partition has seqs of its own; name the partition", to)
	}
	if partition != "" {
		if _, err := s.Log.Partition(ctx, partition); err != nil {
			return err
		}
	}
	err = s.act(ctx, name, by, func(_ *table.Tx, r *row) (string, change, error) {
		if len(r.Resets) >= maxResets {
			return "", change{}, fault.New(fault.Conflict, "%d resets of consumer %s are not finished; try again in a "+
				"minute", len(r.Resets), name)
		}
		r.Resets = append(slices.Clone(r.Resets), reset{ID: s.NewID(), Partition: partition, To: to,
			At: s.Now().UnixMilli()})
		return "consumer.reset", change{Partition: partition, To: to}, nil
	})
	if err != nil {
		return err
	}
	err = s.finishResets(ctx, name)
	if errors.Is(err, errUnfinished) {
		return nil // the clock goes on with it
	}
	return err
}

// resetTime is for how long a request moves cursors; the clock does the rest.
const resetTime = 15 * time.Second

// movedAtOnce is how many cursors of a reset are moved together: what a crash undoes.
const movedAtOnce = 10

// errUnfinished is the error of resets whose time is over.
var errUnfinished = fault.New(fault.Unavailable, "the cursors are still being moved; this goes on by itself, within "+
	"minutes")

// finishResets moves the cursors as the resets of a consumer want, for a limited time.
func (s *Store) finishResets(ctx context.Context, name string) error {
	return s.advanceResets(ctx, name, s.Now().Add(resetTime))
}

// advanceResets moves the cursors as the resets of a consumer want, in their order. It can
// be repeated from any point of a crash, and by two callers at once. After until it ends with
// errUnfinished; what is moved by then stays moved.
func (s *Store) advanceResets(ctx context.Context, name string, until time.Time) error {
	for range maxResets * changeTries {
		r, err := s.row(ctx, name)
		if err != nil || r.State != active || len(r.Resets) == 0 {
			return err
		}
		err = s.moveCursors(ctx, name, r.Resets[0], until)
		if err == nil {
			r.Resets = slices.Clone(r.Resets[1:])
			tx := s.Table.Begin(s.NewID())
			tx.Save(&r)
			err = tx.Commit(ctx)
		}
		if err != nil && !fault.Is(err, fault.Stale) {
			return err
		}
	}
	return busy(name)
}

// moveCursors makes one reset. A search for a time can take long in each partition: the cursors
// are written as they are found.
func (s *Store) moveCursors(ctx context.Context, name string, to reset, until time.Time) error {
	at, err := parseReset(to.To)
	if err != nil {
		return err
	}
	partitions, err := s.Log.Partitions(ctx)
	if err != nil {
		return err
	}
	var all []cursor
	for _, p := range partitions {
		if to.Partition != "" && p.Name != to.Partition {
			continue
		}
		cur, err := s.cursor(ctx, name, p.Name)
		if err != nil {
			return err
		}
		if cur.Reset == to.ID {
			continue // moved before a crash, or by an earlier call
		}
		if s.Now().After(until) {
			return cmp.Or(s.putCursors(ctx, all), errUnfinished)
		}
		place := cursor{Seq: min(cur.Seq, p.Head), From: cur.From}
		if to.To != AtCursor {
			place, err = s.startOf(ctx, name, p, at)
		}
		if err != nil {
			return err
		}
		cur.jump(place.Seq, p, s.Now().UnixMilli())
		cur.From, cur.Reset = place.From, to.ID
		all = append(all, cur)
		if len(all) < movedAtOnce {
			continue
		}
		if err := s.putCursors(ctx, all); err != nil {
			return err
		}
		all = nil
	}
	return s.putCursors(ctx, all)
}

// runnable reads a consumer that may run now; nil if it is missing, paused or being reset.
func (s *Store) runnable(ctx context.Context, name string) (*Consumer, error) {
	r, err := s.row(ctx, name)
	if fault.Is(err, fault.NotFound) || err == nil && (r.State != active || len(r.Resets) > 0 || r.Rebuild != "") {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	c, err := r.consumer()
	if err != nil || c.Paused {
		return nil, err
	}
	return &c, nil
}

// Redrive lets runs handle parked events again: of each key that the selection names, all
// events from the oldest on, until one fails. They run before new events of their key. It
// returns in how many partitions events are selected.
func (s *Store) Redrive(ctx context.Context, name string, sel Selection, by By) (partitions int, err error) {
	return s.order(ctx, name, order{Select: sel}, by, "consumer.redriven")
}

// Discard gives parked events up: they are removed without being handled. Events that are
// parked behind them are redriven.
func (s *Store) Discard(ctx context.Context, name string, sel Selection, by By) (partitions int, err error) {
	return s.order(ctx, name, order{Select: sel, Discard: true}, by, "consumer.discarded")
}

// order gives an order to the cursors that have parked events.
func (s *Store) order(ctx context.Context, name string, o order, by By, eventType string) (partitions int, err error) {
	if err := o.Select.check(); err != nil {
		return 0, err
	}
	err = s.act(ctx, name, by, func(tx *table.Tx, _ *row) (string, change, error) {
		cursors, err := s.holding(ctx, name, o.Select)
		if err != nil {
			return "", change{}, err
		}
		o.ID, partitions = s.NewID(), len(cursors)
		changed := false
		for i := range cursors {
			cur := &cursors[i]
			if slices.ContainsFunc(cur.Orders, o.equals) {
				continue
			}
			if len(cur.Orders) >= maxOrders {
				return "", change{}, fault.New(fault.Conflict, "%d redrives wait in the partition %s; try again when "+
					"they are done", len(cur.Orders), cur.partition())
			}
			cur.Orders = append(slices.Clone(cur.Orders), o)
			cur.Due, changed = s.Now().UnixMilli(), true
			cur.put(tx)
		}
		if !changed {
			return "", change{}, errUnchanged
		}
		return eventType, change{Selection: o.Select.String()}, nil
	})
	return partitions, err
}

// equals reports whether another order does the same, and has not begun.
func (o order) equals(other order) bool {
	return o.Select == other.Select && o.Discard == other.Discard && !other.Known
}

// maxOrdered is in how many partitions one transaction can give an order.
const maxOrdered = 90

// holding reads the cursors that have parked events which a selection may name.
func (s *Store) holding(ctx context.Context, name string, sel Selection) (found []cursor, err error) {
	cursors, err := s.cursors(ctx, name)
	if err != nil {
		return nil, err
	}
	for _, cur := range cursors {
		if cur.Parked == 0 {
			continue
		}
		if sel.Event != "" {
			rows, err := readAll[parkedRow](ctx, s.Table, table.Query{PK: parkedPK(name, cur.partition())})
			if err != nil {
				return nil, err
			}
			if !slices.ContainsFunc(rows, func(row parkedRow) bool { return row.has(sel.Event) }) {
				continue
			}
		}
		found = append(found, cur)
	}
	switch {
	case sel.Event != "" && len(found) == 0:
		return nil, fault.New(fault.NotFound, "the event %s is not parked by consumer %s",
			definition.Clip(sel.Event, 100), name)
	case len(found) > maxOrdered: // the rest has its turn when the same is asked for again
		found = slices.DeleteFunc(found, func(cur cursor) bool { return len(cur.Orders) > 0 })
		found = found[:min(len(found), maxOrdered)]
	}
	return found, nil
}

func (row *parkedRow) has(event string) bool {
	return slices.ContainsFunc(row.Refs, func(f ref) bool { return f.ID == event })
}

// check refuses a selection that does not say what it selects.
func (sel Selection) check() error {
	set := 0
	for _, is := range []bool{sel.All, sel.Event != "", sel.Filter != ""} {
		if is {
			set++
		}
	}
	if set != 1 {
		return fault.New(fault.Invalid, "select: %d of all, event and filter are set; expected one", set)
	}
	return checkFilter(sel.Filter)
}

// String describes the selection.
func (sel Selection) String() string {
	switch {
	case sel.Event != "":
		return "event " + sel.Event
	case sel.Filter != "":
		return "filter " + sel.Filter
	}
	return "all"
}
