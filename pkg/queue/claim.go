package queue

import (
	"context"
	"fmt"
	"slices"
	"time"

	"archivist/pkg/fault"
	"archivist/pkg/ingest"
	"archivist/pkg/table"
)

// Claim is an item that a worker holds: a job, or a batch. The step changes its copy;
// only the worker writes it, under the lease.
type Claim struct {
	Job   *ingest.Job   // the job, or nil
	Batch *ingest.Batch // the batch, or nil
	Until time.Time     // the end of the step's time budget

	q        *Queue
	item     item
	onCommit []func(*table.Tx) error
	remark   string
	refused  error // why the batch's jobs cannot be made
}

// row is the claimed job as it is stored.
func (c *Claim) row() *Job { return c.item.(*Job) }

// Checkpoint saves the job as the step has changed it, under the same lease, with the
// rows that add puts into the transaction. After a Stale the step has to end: another
// worker has the job. A Stale with a *table.ConditionError that names a lock means
// that it is not this job's turn for the lock.
func (c *Claim) Checkpoint(ctx context.Context, add ...func(*table.Tx)) error {
	if err := c.inTurn(ctx); err != nil {
		return err
	}
	row := c.row()
	tx := c.q.Table.Begin(c.q.NewID())
	next := *row
	next.Job = *c.Job
	c.q.writeJob(tx, row, next)
	reserve(tx, row.Job, *c.Job, nil)
	for _, a := range add {
		a(tx)
	}
	return tx.Commit(ctx)
}

// Take is the id of this take of the job: no other worker has the same, nor has one
// of a time before the table was restored to an earlier moment.
func (c *Claim) Take() string { return c.row().Holder }

// inTurn returns a Stale if the step takes a lock that is another job's, or for which
// others are queued before this one.
func (c *Claim) inTurn(ctx context.Context) error {
	for _, name := range c.Job.Locks {
		if slices.Contains(c.row().Locks, name) {
			continue
		}
		owner, err := c.q.before(ctx, name, c.Job.ID)
		if err != nil {
			return err
		}
		if owner != "" {
			ce := &table.ConditionError{Keys: []table.Key{LockKey(name)}}
			return &fault.Error{Kind: fault.Stale, Msg: fmt.Sprintf("job %s comes before job %s for %s", owner,
				c.Job.ID, name), Err: ce}
		}
	}
	return nil
}

// CheckLease returns a Stale once the job's row is no longer as this worker left it.
func (c *Claim) CheckLease(ctx context.Context) error {
	now, err := c.q.Job(ctx, c.Job.ID)
	if err == nil && now.Rev != c.row().Rev {
		err = fault.New(fault.Stale, "job %s was taken from this worker", c.Job.ID)
	}
	return err
}

// OnCommit puts rows into the transaction that ends the step, if it ends well.
func (c *Claim) OnCommit(add func(*table.Tx) error) { c.onCommit = append(c.onCommit, add) }

// Remark puts a sentence into the event that ends the step.
func (c *Claim) Remark(text string) { c.remark = text }

// Unpack makes the batch's next jobs under the lease, and saves the warnings of its
// manifest; see Queue.Unpack.
func (c *Claim) Unpack(ctx context.Context, jobs []ingest.Job, expected int) error {
	row := c.item.(*Batch)
	row.Warnings = c.Batch.Warnings
	err := c.q.Unpack(ctx, row, jobs, expected)
	if fault.Is(err, fault.Invalid) {
		c.refused = err
	}
	*c.Batch = row.Batch
	return err
}
