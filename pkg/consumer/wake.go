package consumer

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/guregu/dynamo/v2"

	"archivist/pkg/envelope"
	"archivist/pkg/fault"
)

// lostWake is after how long a wake-up that was sent counts as lost.
const lostWake = time.Minute

// Placed wakes the consumers that handle events which have got their place in the log: once
// each (consumer, partition), and not if a wake-up is on its way. It can be called with the
// same events again.
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

// catchUp wakes all cursors of a consumer that are behind or have something to do.
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

// wake sets the flag of a cursor, and sends a wake-up if it was not set.
func (r *Runtime) wake(ctx context.Context, consumer, partition string) error {
	now := r.now().UnixMilli()
	var c cursor
	err := r.Store.Table.Change(ctx, cursorKey(consumer, partition), r.Store.NewID(), func(u *dynamo.Update) {
		u.Set("woken_ms", now).If("attribute_not_exists(woken_ms) OR woken_ms <= ?", now-lostWake.Milliseconds())
	}, &c)
	if fault.Is(err, fault.Stale) {
		return nil // a wake-up is on its way
	}
	if err != nil || r.Wake == nil {
		return err
	}
	return r.Wake(ctx, consumer, partition)
}
