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

// Claim is an item that a worker holds: a job or a batch. The step changes a copy of it;
// only the worker writes the row, under the lease.
type Claim struct {
	Job   *ingest.Job   // the job, or nil
	Batch *ingest.Batch // the batch, or nil
	Until time.Time     // the end of the step's time budget

	q        *Queue
	item     item
	onCommit []func(*table.Tx) error
	remark   string
	refused  error // why the batch's jobs cannot be created
}

// row is the claimed job as it is stored.
func (c *Claim) row() *Job { return c.item.(*Job) }

// Checkpoint saves the step's changes of the job, under the same lease, with the rows that
// add puts into the transaction. After a Stale the step has to end: another worker has the
// job. A Stale with a *table.ConditionError that names a lock means that another job owns
// the lock, or is before this one in its line.
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

// Take is the unique id of this claim. It is not used again, even if the table is restored
// to an earlier time.
func (c *Claim) Take() string { return c.row().Holder }

// inTurn returns a Stale if the step adds a lock that another job owns, or for which other
// jobs are in line before this one.
func (c *Claim) inTurn(ctx context.Context) error {
	for _, name := range c.Job.Locks {
		if slices.Contains(c.row().Locks, name) {
			continue
		}
		owner, err := c.q.jobAhead(ctx, name, c.Job.ID)
		if err != nil {
			return err
		}
		if owner != "" {
			ce := &table.ConditionError{Keys: []table.Key{LockKey(name)}}
			return &fault.Error{Kind: fault.Stale, Msg: fmt.Sprintf("job %s is before job %s in the line for lock %s",
				owner, c.Job.ID, name), Err: ce}
		}
	}
	return nil
}

// CheckLease returns a Stale if the job's row was written since this worker wrote it.
func (c *Claim) CheckLease(ctx context.Context) error {
	now, err := c.q.Job(ctx, c.Job.ID)
	if err == nil && now.Rev != c.row().Rev {
		err = fault.New(fault.Stale, "this worker no longer holds job %s", c.Job.ID)
	}
	return err
}

// OnCommit adds rows to the transaction that ends the step, if the step succeeds.
func (c *Claim) OnCommit(add func(*table.Tx) error) { c.onCommit = append(c.onCommit, add) }

// Remark adds a sentence to the event at the end of the step.
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
