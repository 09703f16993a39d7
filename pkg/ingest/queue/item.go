package queue

import (
	"context"
	"fmt"
	"slices"
	"time"

	"archivist/pkg/ingest"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/lease"
	"archivist/pkg/kernel/table"
)

// item is the row of a job or a batch, which an execution drives. Workers, the sweep and
// the records of refused calls treat both alike; the differences are here.
type item interface {
	// common is what both have. Only rewrite changes the row.
	common() common
	// rewrite puts the row into tx after change, on the condition that it was not written
	// since it was read.
	rewrite(q *Queue, tx *table.Tx, change func(row common))
	// stage is the stage that works on the item now, if any.
	stage() (ingest.Stage, bool)
	// judge returns the answer to the token of a message to a stage. Continue means that
	// the item waits for that stage, by that execution.
	judge(m Message, s ingest.Stage) ingest.Answer
	// stopAtHold holds an item that is about to start if a hold is active for it.
	stopAtHold(ctx context.Context, q *Queue) (held bool, err error)
	// claim makes the copy that a step may change.
	claim() *Claim
	// exhaust fails the item because its stage was tried too often.
	exhaust(ctx context.Context, q *Queue, s ingest.Stage) (ingest.Answer, error)
	// finish commits how a step ended.
	finish(ctx context.Context, c *Claim, s ingest.Stage, res ingest.Result) (verdict, error)
	// recordLost records what a worker did before it lost the item.
	recordLost(ctx context.Context, c *Claim) error
	// repair does what is due for an item that is past its due time.
	repair(ctx context.Context, q *Queue) error
	// logged are the item's ids, as log lines have them.
	logged() []any
}

// common is what the rows of jobs and batches have in common. Message points into the row: why the
// last try failed.
type common struct {
	*ingest.Work
	*lease.On
	Message *string
}

// verdict is what to do with a message: answer its token and delete it, or keep it for
// later.
type verdict struct {
	answer ingest.Answer
	cause  string        // why the stage failed, for the execution's history
	keep   time.Duration // if not 0, the message is hidden for this time, and then handled again
}

// Claim is an item that a worker holds: a job or a batch. The step changes a copy of it;
// only the worker writes the row, under the lease.
type Claim struct {
	Job   *ingest.Job   // the job, or nil
	Batch *ingest.Batch // the batch, or nil
	Until time.Time     // the end of the step's time budget

	q        *Queue
	item     item
	onCommit []func(context.Context, *table.Tx) error
	remark   string
	refused  error // why the batch's jobs cannot be created
	// uncompleted: see Uncompleted.
	uncompleted bool
}

var _, _ item = (*Job)(nil), (*Batch)(nil)

// item reads a job, or else a batch.
func (q *Queue) item(ctx context.Context, job, batch string) (item, error) {
	if batch != "" {
		return q.Batch(ctx, batch)
	}
	return q.Job(ctx, job)
}

// rewrite commits a change of the common part of a job or batch.
func (q *Queue) rewrite(ctx context.Context, it item, change func(row common)) error {
	tx := q.Table.Begin(q.NewID())
	it.rewrite(q, tx, change)
	return tx.Commit(ctx)
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
	put := func(tx *table.Tx, missing missingRows) error {
		next := *row
		next.Job = *c.Job
		c.q.writeJob(tx, row, next)
		reserve(tx, row.Job, *c.Job, missing)
		for _, a := range add {
			a(tx)
		}
		return nil
	}
	return c.q.change(ctx, &row.Job, put, nil, func() []ingest.Wake { return nil })
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
			return &fault.Error{
				Kind: fault.Stale,
				Msg: fmt.Sprintf("job %s is before job %s in the line for lock %s",
					owner, c.Job.ID, name),
				Err: ce,
			}
		}
	}
	return nil
}

// CheckLease returns a Stale if the job's row was written since this worker wrote it. A missing row
// is a NotFound.
func (c *Claim) CheckLease(ctx context.Context) error {
	now, err := c.q.Job(ctx, c.Job.ID)
	if err == nil && now.Rev != c.row().Rev {
		err = fault.New(fault.Stale, "this worker no longer holds job %s", c.Job.ID)
	}
	return err
}

// OnCommit adds rows to the transaction that ends the step, if the step succeeds. The context is that of the
// transaction: that of the step has ended by then.
func (c *Claim) OnCommit(add func(context.Context, *table.Tx) error) {
	c.onCommit = append(c.onCommit, add)
}

// added are the rows of OnCommit, for a transaction that is committed with a context.
func (c *Claim) added(ctx context.Context) (rows []func(*table.Tx) error) {
	for _, add := range c.onCommit {
		rows = append(rows, func(tx *table.Tx) error { return add(ctx, tx) })
	}
	return rows
}

// Uncompleted says that the report has jobs which failed or are open. The batch does not become Completed then, even
// if a requeue has completed them since their lines were read: its state says what its report says, and the action
// update-report brings both up to date.
func (c *Claim) Uncompleted() { c.uncompleted = true }

// Remark adds a sentence to the event at the end of the step.
func (c *Claim) Remark(text string) { c.remark = text }
