package queue

import (
	"context"
	"errors"
	"time"

	"archivist/pkg/fault"
	"archivist/pkg/ingest"
	"archivist/pkg/lease"
	"archivist/pkg/table"
)

// Clock runs the gates and the sweep, one at a time under one lease.
type Clock struct {
	Queue  *Queue
	Leases *lease.Store
}

// leaseName of the clock.
const leaseName = "clock"

// sweepEvery is how old the last sweep may be: then any tick sweeps. The minute's
// own tick is dropped when it meets another.
const sweepEvery = time.Minute

// swept is the row that says when the last sweep began.
type swept struct {
	table.Head
	At int64 `dynamo:"at_ms"`
}

var sweptKey = table.Key{PK: "LEASE#" + leaseName, SK: "SWEEP"} // beside the lease under which it is written

// Tick repairs what is past due, if sweep is set or the last sweep is too old,
// and lets waiting jobs through the gates. A Held means that another tick is under
// way: ask again later.
func (c *Clock) Tick(ctx context.Context, sweep bool) error {
	l, err := c.Leases.Acquire(ctx, leaseName, c.Queue.Rules.Timing.Clock+c.Queue.Rules.Timing.Margin)
	if err != nil {
		return err
	}
	began, most := c.Queue.Now(), c.Queue.Rules.Timing.Clock
	if sweep, err = c.sweeps(ctx, l, sweep); sweep && err == nil {
		err = c.Queue.Sweep(ctx, began.Add(most/4))
	}
	if err == nil {
		err = c.gates(ctx, l, began.Add(most*3/4))
	}
	if sweep {
		err = errors.Join(err, c.Queue.SweepMails(ctx, began.Add(most*13/16)))
	}
	if e := c.Leases.Release(ctx, l); err == nil && !fault.Is(e, fault.Lost) {
		err = e
	}
	return err
}

// sweeps reports whether this tick sweeps, and if so writes down when.
func (c *Clock) sweeps(ctx context.Context, l lease.Lease, asked bool) (bool, error) {
	row := swept{Head: head(sweptKey)}
	err := c.Queue.Table.Get(ctx, sweptKey, &row)
	if err != nil && !fault.Is(err, fault.NotFound) {
		return false, err
	}
	now := c.Queue.Now()
	if !asked && now.Sub(time.UnixMilli(row.At)) < sweepEvery {
		return false, nil
	}
	row.At = now.UnixMilli()
	tx := c.Queue.Table.Begin(c.Queue.NewID())
	if row.Rev == 0 {
		tx.Insert(&row)
	} else {
		tx.Save(&row)
	}
	l.Guard(tx)
	return true, tx.Commit(ctx)
}

// gates lets jobs on that wait inside first (they hold space), then new ones,
// until a time: who was not looked at is at the next tick.
func (c *Clock) gates(ctx context.Context, l lease.Lease, until time.Time) error {
	free, err := c.Queue.free(ctx)
	if err != nil {
		return err
	}
	for _, place := range []string{ingest.PlaceParked, ingest.PlaceProvisioning, ingest.PlacePending} {
		if err := c.gate(ctx, l, place, &free, until); err != nil {
			return err
		}
	}
	return nil
}

// candidate is a waiting job as the index shows it.
type candidate struct {
	table.Head
	ID         string `dynamo:"id"`
	Space      int64  `dynamo:"space_needed"`
	Known      bool   `dynamo:"size_known"`
	Entered    int64  `dynamo:"entered"`
	Collection string `dynamo:"coll"`
}

// want is what a candidate would take, as far as the index tells. A parked job
// holds its space already, a new one needs none yet.
func (w candidate) want(place string, now time.Time) ingest.Want {
	return ingest.Want{ID: w.ID, Collection: w.Collection, Space: w.Space, Known: w.Known, HasSpace: place != ingest.PlaceProvisioning,
		Waited: now.Sub(time.UnixMilli(w.Entered))}
}

// gate looks, in order, at the waiting jobs of one place and lets on those that
// fit. The index only finds them: each is read before it is decided.
func (c *Clock) gate(ctx context.Context, l lease.Lease, place string, free *ingest.Free, until time.Time) error {
	query := table.Query{Index: "work", PK: place, Limit: 100}
	for free.Slots > 0 && c.Queue.Now().Before(until) {
		var page []candidate
		next, err := c.Queue.Table.Page(ctx, query, &page)
		if err != nil {
			return err
		}
		for _, w := range page {
			if free.Slots <= 0 {
				return nil
			}
			chosen, left := ingest.Choose(*free, []ingest.Want{w.want(place, c.Queue.Now())})
			if len(chosen) == 0 {
				free.Space = left.Space // an impatient job keeps what there is
				continue
			}
			if err := c.let(ctx, l, place, w, free); err != nil {
				return err
			}
		}
		if query.Cursor = next; next == "" {
			return nil
		}
	}
	return nil
}

// let lets one job on if it fits and its locks are free, and takes what it got
// out of free. An error is one of the gates as a whole: that of one job is the
// job's own, and the others go on.
func (c *Clock) let(ctx context.Context, l lease.Lease, place string, w candidate, free *ingest.Free) error {
	q := c.Queue
	row, err := q.Job(ctx, w.ID)
	if fault.Is(err, fault.NotFound) {
		return nil
	}
	left := *free
	if err == nil {
		left, err = c.letOn(ctx, l, place, row, *free)
	}
	switch {
	case err == nil:
		*free = left
	case fault.Is(err, fault.Lost):
		if !q.holds(ctx, c.Leases, l) {
			return err // the lease passed on: what is free is no longer ours to say
		}
		// The job was changed meanwhile; the next tick sees it.
	default:
		if fault.Is(err, fault.Unavailable) {
			*free = left // it may have happened
		}
		q.Log.Error("a job could not be let through its gate; the others go on", "job", w.ID, "place", place, "error", err)
		q.Metric("GateErrors", 1)
		if fault.Is(err, fault.Invalid) && row != nil {
			c.failAtGate(ctx, l, row, err)
		}
	}
	return nil
}

// letOn commits a job's way through a gate, and returns what is free then.
func (c *Clock) letOn(ctx context.Context, l lease.Lease, place string, row *Job, free ingest.Free) (ingest.Free, error) {
	q := c.Queue
	if now, _ := row.Job.Place(); now != place {
		return free, nil // the index lags: it went on already
	}
	now := q.Now()
	want := ingest.Want{ID: row.Job.ID, Collection: row.Collection, HasSpace: true}
	is := q.Rules.Admit(row.Job, now)
	if place != ingest.PlacePending {
		if lock, _, err := q.taken(ctx, &row.Job); err != nil || lock != "" {
			return free, err
		}
		want = ingest.Want{ID: row.Job.ID, Collection: row.Collection, Space: row.SpaceNeeded, Known: row.SizeKnown, HasSpace: row.HasSpace, Waited: now.Sub(time.UnixMilli(row.Entered))}
		is = q.Rules.Provision(row.Job, now)
	}
	chosen, left := ingest.Choose(free, []ingest.Want{want})
	if len(chosen) == 0 {
		return free, nil // the index lags: it needs more by now
	}
	return left, q.changeJob(ctx, row, is, why{event: "job.state", component: "clock"}, func(tx *table.Tx) error { l.Guard(tx); return nil })
}

// failAtGate fails a job that can never go through its gate.
func (c *Clock) failAtGate(ctx context.Context, l lease.Lease, row *Job, cause error) {
	is := c.Queue.Rules.Failed(row.Job, cause.Error(), true, c.Queue.Now())
	err := c.Queue.changeJob(ctx, row, is, why{event: "job.state", component: "clock", reason: is.Message}, func(tx *table.Tx) error { l.Guard(tx); return nil })
	if err != nil {
		c.Queue.Log.Error("the job could not be failed; the next tick tries again", "job", row.Job.ID, "error", err)
	}
}

func (q *Queue) holds(ctx context.Context, s *lease.Store, l lease.Lease) bool {
	tx := q.Table.Begin(q.NewID())
	l.Guard(tx)
	return s.Now().Before(l.Until) && tx.Commit(ctx) == nil
}
