package consumer

import (
	"context"
	"errors"
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
		if c.Paused || c.Mode != Async {
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
