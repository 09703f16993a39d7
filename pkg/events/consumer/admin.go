package consumer

import (
	"context"
	"fmt"
	"slices"

	"archivist/pkg/kernel/definition"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/table"
)

// Pause stops a consumer: a run that is at work ends after its step. Its cursors stay, and events
// collect in the log. Pausing a paused consumer changes nothing.
func (s *Store) Pause(ctx context.Context, name string, by By) error {
	return s.setPaused(ctx, name, by, true, "consumer.paused")
}

// Resume lets a paused consumer go on from where it was. Of one that is not paused, cursors that
// are stopped are tried again at once. So it is also how a person says that the reason of a stop is
// removed.
func (s *Store) Resume(ctx context.Context, name string, by By) error {
	return s.setPaused(ctx, name, by, false, "consumer.resumed")
}

// setPaused writes whether a consumer is paused, with an event of that type. A Resume that neither
// changes the definition nor finds a stopped cursor has no event.
func (s *Store) setPaused(ctx context.Context, name string, by By, paused bool,
	eventType string) error {
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

// retry puts into tx that the stopped cursors of a consumer are due now, and returns how many. The
// reason of the stop stays until a run has tried. Those beyond maxOrdered are left to their own
// time, within an hour.
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

// Skip moves a cursor forward, past events that are not handled: the last is seq. Events of keys
// that wait until they are quiet are still handled. A run that is at work in the partition loses
// its lease; what it has called the target with is not undone. An Invalid means that the partition
// has no event of that seq yet, a NotFound that there is no such partition or consumer. A cursor
// that is there already stays.
func (s *Store) Skip(ctx context.Context, name, partition string, seq int64, by By) error {
	p, err := s.Log.Partition(ctx, partition)
	if err != nil {
		return err
	}

	if seq < 1 || seq > p.Head {
		return fault.New(fault.Invalid, "seq: %d: the partition %s has events up to %d", seq,
			partition, p.Head)
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

// Redrive lets runs handle parked events again: of each key that the selection names, all events
// from the oldest on, until one fails. They run before new events of their key. It returns in how
// many partitions events are selected. An Invalid means that the selection is none, or that its
// filter does not compile; a NotFound that the event it names is not parked; a Conflict that a
// partition has maxOrders unfinished ones.
func (s *Store) Redrive(ctx context.Context, name string, sel Selection,
	by By) (partitions int, err error) {
	return s.order(ctx, name, order{Select: sel}, by, "consumer.redriven")
}

// Discard gives parked events up: they are removed without being handled. Events that are
// parked behind them are redriven.
func (s *Store) Discard(ctx context.Context, name string, sel Selection,
	by By) (partitions int, err error) {
	return s.order(ctx, name, order{Select: sel, Discard: true}, by, "consumer.discarded")
}

// order gives an order to the cursors that have parked events. It only writes what is wanted: the
// next run, which has the lease, does it, so that a person and a run never move the same event. An
// equal order that has not begun is not given again.
func (s *Store) order(ctx context.Context, name string, o order, by By,
	eventType string) (partitions int, err error) {
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
				return "", change{}, fault.New(fault.Conflict,
					"%d redrives wait in the partition %s; try again when "+
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

// maxOrdered is in how many partitions one transaction can give an order: of table.MaxActions, the
// consumer's row and its event take two.
const maxOrdered = 90

// holding reads the cursors that have parked events which a selection may name. A filter is not
// evaluated here, since that needs the events: the run does it. If there are more than maxOrdered,
// those with orders are left out, so that the same request again comes to the others.
func (s *Store) holding(ctx context.Context, name string,
	sel Selection) (found []cursor, err error) {
	cursors, err := s.cursors(ctx, name)
	if err != nil {
		return nil, err
	}

	for _, cur := range cursors {
		if cur.Parked == 0 {
			continue
		}

		if sel.Event != "" {
			rows, err := readAll[parkedRow](ctx, s.Table,
				table.Query{PK: parkedPK(name, cur.partition())})
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
