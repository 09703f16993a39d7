package queue

import (
	"archivist/pkg/fault"
	"archivist/pkg/ingest"
	"archivist/pkg/table"
	"context"
	"fmt"
	"slices"
	"time"
)

// Claim is an item that a worker has taken. The step changes its copies; only
// the worker writes them, under the lease.
type Claim struct {
	Job   *ingest.Job   // the job, or nil
	Batch *ingest.Batch // the batch, or nil
	Until time.Time     // the step's time budget

	q     *Queue
	job   *Job
	batch *Batch
	also  []func(*table.Tx) error

	remark  string
	invalid error // why the batch's jobs cannot be made
}

// Checkpoint saves the item as the step has changed it, under the same lease,
// with the rows that add puts into the transaction. After a Lost the step has
// to end: somebody else has the item. A Lost with a *table.ConditionError that names
// a lock means that it is not this job's turn for the lock.
func (h *Claim) Checkpoint(ctx context.Context, add ...func(*table.Tx)) error {
	if err := h.inTurn(ctx); err != nil {
		return err
	}
	tx := h.q.Table.Begin(h.q.NewID())
	next := *h.job
	next.Job = *h.Job
	h.q.writeJob(tx, h.job, next)
	reserve(tx, h.job.Job, *h.Job, nil)
	for _, a := range add {
		a(tx)
	}
	return tx.Commit(ctx)
}

// Take is the id of this take of the job: no other worker has the same, nor has one
// of a time before the table was restored to an earlier moment.
func (h *Claim) Take() string { return h.job.Holder }

// inTurn returns a Lost if the step takes a lock that is another's, or before which
// others stand in line.
func (h *Claim) inTurn(ctx context.Context) error {
	for _, name := range h.Job.Locks {
		if slices.Contains(h.job.Locks, name) {
			continue
		}
		owner, err := h.q.before(ctx, name, h.Job.ID)
		if err != nil {
			return err
		}
		if owner != "" {
			ce := &table.ConditionError{Keys: []table.Key{LockKey(name)}}
			return &fault.Error{Kind: fault.Stale, Msg: fmt.Sprintf("job %s comes before job %s for %s", owner, h.Job.ID, name), Err: ce}
		}
	}
	return nil
}

// CheckLease returns a Lost once the job's row is no longer as this worker left it.
func (h *Claim) CheckLease(ctx context.Context) error {
	now, err := h.q.Job(ctx, h.job.Job.ID)
	if err == nil && now.Rev != h.job.Rev {
		err = fault.New(fault.Stale, "job %s has passed on", h.job.Job.ID)
	}
	return err
}

// OnCommit puts rows into the transaction that ends the step, if it ends well.
func (h *Claim) OnCommit(add func(*table.Tx) error) { h.also = append(h.also, add) }

// Remark puts a sentence into the event that ends the step.
func (h *Claim) Remark(text string) { h.remark = text }

// Unpack makes the batch's next jobs under the lease; see Queue.Unpack.
func (h *Claim) Unpack(ctx context.Context, jobs []ingest.Job, expected int) error {
	err := h.q.Unpack(ctx, h.batch, jobs, expected)
	if fault.Is(err, fault.Invalid) {
		h.invalid = err
	}
	*h.Batch = h.batch.Batch
	return err
}
