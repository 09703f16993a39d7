package queue

import (
	"context"
	"errors"
	"time"

	"archivist/pkg/ingest"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/lease"
	"archivist/pkg/kernel/passes"
	"archivist/pkg/kernel/table"
)

// Scheduler runs the gates and the sweep, one at a time under one lease.
type Scheduler struct {
	Queue  *Queue
	Leases *lease.Store
}

// Tick repairs what is past due, if sweep is set or the last sweep is too old,
// admits waiting jobs, and sends the mails that are due. A Held means that another tick is
// running: try again later.
func (c *Scheduler) Tick(ctx context.Context, sweep bool) error {
	timing := c.Queue.Rules.Timing
	busy, err := passes.Under(ctx, c.Leases, leaseName, timing.Scheduler+timing.Margin, func(l lease.Lease) error {
		began := c.Queue.Now()
		sweeps, err := c.sweeps(ctx, l, sweep)
		if err != nil {
			return err
		}
		return c.parts(ctx, l, sweeps, began, timing.Scheduler)
	})
	if busy {
		return fault.New(fault.Held, "another tick of the scheduler is running; try again later")
	}
	return err
}

// parts are the parts of a tick. One that fails, e.g. because a partition is throttled, does
// not stop the others; each has a time of its own.
func (c *Scheduler) parts(ctx context.Context, l lease.Lease, sweep bool, began time.Time, most time.Duration) error {
	// Of the 50 s in production, the sweep has 12.5, the gates what is left until 37.5, and mails
	// until 40.6: the rest is for what is under way then.
	var errs []error
	if sweep {
		errs = append(errs, c.Queue.Sweep(ctx, began.Add(most/4)))
	}

	errs = append(errs, c.gates(ctx, l, began.Add(most*3/4)))
	if sweep {
		errs = append(errs, c.Queue.SweepMails(ctx, began.Add(most*13/16)))
	}
	return errors.Join(errs...)
}

// sweepEvery is the age of the last sweep from which any tick sweeps. The tick of each
// minute is dropped if another tick is running.
const sweepEvery = time.Minute

// swept is the row with the start of the last sweep.
type swept struct {
	table.Head
	At int64 `dynamo:"at_ms"`
	// Whole says that nothing is missing in the lists of all collections: see whole.
	Whole bool `dynamo:"lists_whole,omitempty"`
}

var sweptKey = table.Key{PK: "LEASE#" + leaseName, SK: "SWEEP"} // next to the lease under which it is written

// sweeps reports whether this tick sweeps, and if so records its time.
func (c *Scheduler) sweeps(ctx context.Context, l lease.Lease, asked bool) (bool, error) {
	row, err := c.Queue.swept(ctx)
	if err != nil {
		return false, err
	}

	now := c.Queue.Now()
	if !asked && now.Sub(time.UnixMilli(row.At)) < sweepEvery {
		return false, nil
	}

	row.At = now.UnixMilli()
	row.Whole = row.Whole || row.Rev == 0 // the table is new
	tx := c.Queue.Table.Begin(c.Queue.NewID())
	put(tx, &row, row.Rev)
	l.Guard(tx)
	return true, tx.Commit(ctx)
}

// swept reads the row of the last sweep; zero if there was none.
func (q *Queue) swept(ctx context.Context) (swept, error) {
	row := swept{Head: head(sweptKey)}
	err := q.Table.Get(ctx, sweptKey, &row)
	if fault.Is(err, fault.NotFound) {
		err = nil
	}
	return row, err
}

// lastSweep is when the last sweep began; zero if there was none.
func (q *Queue) lastSweep(ctx context.Context) (time.Time, error) {
	row, err := q.swept(ctx)
	if err != nil || row.At == 0 {
		return time.Time{}, err
	}
	return time.UnixMilli(row.At), nil
}

// gates admits waiting jobs until a time: first the parked jobs, which may hold space, then
// those at gate 2, then new ones. The next tick checks jobs that this one did not reach.
func (c *Scheduler) gates(ctx context.Context, l lease.Lease, until time.Time) error {
	active, err := c.Queue.active(ctx)
	if err != nil || active.paused(theQueue) != nil {
		return err
	}

	free, err := c.Queue.free(ctx)
	if err != nil {
		return err
	}

	p := pass{
		q:       c.Queue,
		leases:  c.Leases,
		lease:   l,
		free:    free,
		holds:   active,
		behind:  map[string]string{},
		first:   map[string]bool{},
		stopped: map[string]bool{},
	}

	var errs []error
	for i, place := range gates {
		// Many that cannot continue leave time to those behind them.
		p.until = c.Queue.Now().Add(until.Sub(c.Queue.Now()) / time.Duration(len(gates)-i))
		err := p.gate(ctx, place)
		if fault.Is(err, fault.Stale) {
			return err // another tick has the lease: what is free is not known any more
		}

		errs = append(errs, err)
		if place == ingest.WorkParked && p.free.Slots > 0 {
			p.findRoots(ctx)
		}
	}

	if len(p.lack) > 0 {
		errs = append(errs, c.Queue.cleanEarly(ctx, p.lack, c.Queue.Now().Add(c.Queue.itemTime()/2)))
	}
	return errors.Join(errs...)
}
