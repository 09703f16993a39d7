package consumer

import (
	"context"
	"time"

	"archivist/pkg/events/envelope"
	"archivist/pkg/kernel/fault"
)

// Bounds of Drain.
const (
	// drainRounds ends consumers that answer each other's events for ever. The depth limit ends
	// such cycles sooner, unless a consumer makes its changes without their cause.
	drainRounds = 10000
	// drainRun is the time that one run has; in this mode nobody waits for it.
	drainRun = 5 * time.Minute
)

// Drain places and handles events in this process until there is nothing to do: the local mode, for
// tests and for a program that has all producers and consumers (source: the object-model-events
// text, "local" mode). What waits until a key is quiet, for a schedule, or for a person, waits on.
// Consumers that wake each other without end are a Conflict.
func (r *Runtime) Drain(ctx context.Context) error {
	for range drainRounds {
		var placed []envelope.Event
		if r.Place != nil {
			var err error
			if placed, err = r.Place(ctx); err != nil {
				return err
			}
		}

		busy, err := r.drainOnce(ctx)
		if err != nil {
			return err
		}

		if len(placed) == 0 && !busy {
			return nil
		}
	}
	return fault.New(fault.Conflict,
		"after %d rounds there are still events to be handled: consumers wake each other",
		drainRounds)
}

// drainOnce runs each consumer that has something to do, and reports whether any had.
func (r *Runtime) drainOnce(ctx context.Context) (busy bool, err error) {
	list, err := r.Store.List(ctx)
	if err != nil {
		return false, err
	}

	partitions, err := r.Store.Log.Partitions(ctx)
	if err != nil {
		return false, err
	}

	for _, c := range list {
		if c.Paused || c.Mode == Scheduled {
			continue
		}
		for _, p := range partitions {
			did, err := r.drainCursor(ctx, c, p)
			if err != nil {
				return false, err
			}
			busy = busy || did
		}
	}

	did, err := r.drainReplays(ctx)
	return busy || did, err
}

// drainReplays runs all replays, and reports whether any did something: that is, whether a cursor
// was written.
func (r *Runtime) drainReplays(ctx context.Context) (busy bool, err error) {
	open, err := r.Store.openReplays(ctx)
	if err != nil {
		return false, err
	}

	for _, p := range open {
		if err := r.advance(ctx, p.ID); err != nil {
			return false, err
		}

		cursors, err := r.Store.cursors(ctx, p.run())
		if err != nil {
			return false, err
		}

		for _, cur := range cursors {
			if cur.finished() || cur.Stop != nil && cur.Due > r.now().UnixMilli() {
				continue
			}

			if _, err := r.Run(ctx, p.run(), cur.partition(), r.now().Add(drainRun)); err != nil {
				return false, err
			}

			after, err := r.Store.cursor(ctx, p.run(), cur.partition())
			if err != nil {
				return false, err
			}

			busy = busy || after.Rev != cur.Rev
		}
	}
	return busy, nil
}

// drainCursor runs a consumer in one partition, and reports whether it did something. A run that
// only took its lease and gave it back does not count: Drain would never be quiet.
func (r *Runtime) drainCursor(ctx context.Context, c Consumer, p envelope.Partition) (bool, error) {
	before, err := r.Store.cursor(ctx, c.Name, p.Name)
	if err != nil || !r.drainable(c, p, before) {
		return false, err
	}
	if _, err := r.Run(ctx, c.Name, p.Name, r.now().Add(drainRun)); err != nil {
		return false, err
	}
	after, err := r.Store.cursor(ctx, c.Name, p.Name)
	return before.position().before(after.position()) || after.Parked != before.Parked ||
		after.Pending != before.Pending || len(after.Orders) != len(before.Orders), err
}

// drainable reports whether a cursor has something to do at once.
func (r *Runtime) drainable(c Consumer, p envelope.Partition, cur cursor) bool {
	return cur.Stop == nil && cur.Seq < p.Head || r.owed(c, p, cur, 0)
}
