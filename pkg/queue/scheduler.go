package queue

import (
	"context"
	"errors"

	"archivist/pkg/fault"
	"archivist/pkg/lease"
)

// Scheduler runs the gates and the sweep, one at a time under one lease.
type Scheduler struct {
	Queue  *Queue
	Leases *lease.Store
}

// leaseName is stored: under another name, the old and the new function of an upgrade
// would each hold a lease.
const leaseName = "clock"

// Tick repairs what is past due, if sweep is set or the last sweep is too old,
// admits waiting jobs, and sends the mails that are due. A Held means that another tick is
// running: try again later.
func (c *Scheduler) Tick(ctx context.Context, sweep bool) error {
	l, err := c.Leases.Acquire(ctx, leaseName, c.Queue.Rules.Timing.Scheduler+c.Queue.Rules.Timing.Margin)
	if err != nil {
		return err
	}
	began, most := c.Queue.Now(), c.Queue.Rules.Timing.Scheduler
	sweep, err = c.sweeps(ctx, l, sweep)
	if sweep && err == nil {
		err = c.Queue.Sweep(ctx, began.Add(most/4))
	}
	if err == nil {
		err = c.gates(ctx, l, began.Add(most*3/4))
	}
	if sweep {
		err = errors.Join(err, c.Queue.SweepMails(ctx, began.Add(most*13/16)))
	}
	if e := c.Leases.Release(ctx, l); err == nil && !fault.Is(e, fault.Stale) {
		err = e
	}
	return err
}

// holds reports whether the lease is still held.
func (q *Queue) holds(ctx context.Context, s *lease.Store, l lease.Lease) bool {
	tx := q.Table.Begin(q.NewID())
	l.Guard(tx)
	return s.Now().Before(l.Until) && tx.Commit(ctx) == nil
}
