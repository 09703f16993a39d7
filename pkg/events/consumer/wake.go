package consumer

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/guregu/dynamo/v2"

	"archivist/pkg/events/envelope"
	"archivist/pkg/kernel/fault"
)

// Placed wakes the consumers that handle events which have got their place in the log: once each
// (consumer, partition), and not if a wake-up is on its way. It can be called with the same events
// again. One consumer's error does not keep the others from being woken: errors are joined, and the
// caller's repetition is harmless.
func (r *Runtime) Placed(ctx context.Context, events []envelope.Event) error {
	if len(events) == 0 {
		return nil
	}

	list, err := r.Store.List(ctx)
	if err != nil {
		return err
	}

	var errs []error
	for _, c := range list {
		if c.Paused {
			continue
		}

		if changed(c, events) {
			errs = append(errs, r.catchUp(ctx, c))
		}

		if c.Mode != Async {
			continue
		}

		f, err := r.filter(c.Filter)
		if err != nil {
			errs = append(errs, err)
			continue
		}

		woken := map[string]bool{}
		for _, e := range events {
			why := decide(c, f, e, 0)
			if woken[e.Partition] || why != "" && why != skipDepth { // that one is an alarm
				continue
			}
			woken[e.Partition] = true
			errs = append(errs, r.wake(ctx, c.Name, e.Partition))
		}
	}
	return errors.Join(errs...)
}

// changed reports whether one of the events is about the consumer: a person made, resumed,
// reset or redrove it.
func changed(c Consumer, events []envelope.Event) bool {
	return slices.ContainsFunc(events, func(e envelope.Event) bool {
		return e.Subject.Type == subject("").Type.String() && e.Subject.ID == c.Name
	})
}

// catchUp wakes all cursors of a consumer that are behind or have something to do, at once: a
// person has changed it, and expects to see something happen.
func (r *Runtime) catchUp(ctx context.Context, c Consumer) error {
	partitions, err := r.Store.Log.Partitions(ctx)
	if err != nil {
		return err
	}
	at, err := r.Store.places(ctx, c.Name)
	if err != nil {
		return err
	}
	return r.wakeDue(ctx, c, partitions, at, 0)
}

// wake sets the flag of a cursor, and sends a wake-up if it was not set, or is so old that it
// counts as lost. The flag is set first: an event that is placed while the wake-up is on its way
// sends no other, and the run clears the flag before it reads the log. The write has no condition
// on the revision, and makes a cursor that is not there.
func (r *Runtime) wake(ctx context.Context, consumer, partition string) error {
	now := r.now().UnixMilli()
	var c cursor
	err := r.Store.Table.Change(ctx, cursorKey(consumer, partition), r.Store.NewID(),
		func(u *dynamo.Update) {
			u.Set("woken_ms", now).If("attribute_not_exists(woken_ms) OR woken_ms <= ?",
				now-r.lost().Milliseconds())
		}, &c)
	if fault.Is(err, fault.Stale) {
		return nil // a wake-up is on its way
	}

	if err != nil || r.Wake == nil {
		return err
	}
	return r.Wake(ctx, consumer, partition)
}

// idleWait is after how long a cursor is moved past events that its filter does not select,
// and past those of which no wake-up told: the relay may have died before it sent them.
const idleWait = 5 * time.Minute

// wakeDue wakes the cursors of a consumer that have something to do. One that is only behind
// waits until it has not moved for so long.
func (r *Runtime) wakeDue(ctx context.Context, c Consumer, partitions []envelope.Partition,
	at map[string]cursor,
	patience time.Duration) error {
	var errs []error
	for _, p := range partitions {
		if cur := at[p.Name]; r.owed(c, p, cur, patience) {
			errs = append(errs, r.wake(ctx, c.Name, p.Name))
		}
	}
	return errors.Join(errs...)
}

// owed reports whether a cursor needs a run that nobody has begun. patience is for how long one
// that is only behind must not have moved. The order of the cases matters: what holds a cursor up
// comes before what would wake it.
func (r *Runtime) owed(c Consumer, p envelope.Partition, cur cursor, patience time.Duration) bool {
	now := r.now()
	since := func(ms int64) time.Duration { return now.Sub(time.UnixMilli(ms)) }
	switch {
	case cur.Live(now):
		return false
	case cur.Stop != nil && cur.Stop.Kind == OldEpoch:
		return false // a person must act
	case cur.Stop != nil:
		return since(cur.Due) >= 0 // without a due time, the run that tried it again has died or failed
	case cur.Woken > 0:
		return since(cur.Woken) >= r.lost()
	case cur.Holder != "": // its run died
		return true
	case cur.Due > 0 && since(cur.Due) >= 0:
		return true
	case c.Mode == Scheduled:
		return false
	}
	return cur.Seq < p.Head && since(cur.Moved) >= patience
}
