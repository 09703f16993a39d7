package queue

import (
	"context"

	"archivist/pkg/fault"
	"archivist/pkg/ingest"
)

// retireChunk is the number of job rows that one transaction removes.
const retireChunk = 50

// retire removes the rows of a Completed batch whose retention has ended. The batch becomes
// Deleted, then its jobs' rows are removed from the last to the first, and at the end its
// own. Events stay. It continues where an earlier sweep stopped, and works for the time of
// one item.
func (q *Queue) retire(ctx context.Context, row *Batch) error {
	until := q.Now().Add(q.itemTime())
	if row.State == ingest.BatchCompleted {
		next := q.Rules.EnterBatch(row.Batch, ingest.BatchDeleted, q.Now())
		next.Due = q.Now().UnixMilli()
		if err := q.changeBatch(ctx, row, next, origin{event: "batch.state", component: "sweep",
			reason: "the retention period has ended; the event history is kept"}); err != nil {
			return err
		}
	}
	for row.Unpacked > 0 {
		if !q.Now().Before(until) {
			return nil // the next sweep continues
		}
		if err := q.retireJobs(ctx, row); err != nil {
			return err
		}
	}
	var counts Counts
	if err := q.Table.Get(ctx, countKey(row.Batch.ID), &counts); err != nil {
		return err
	}
	tx := q.Table.Begin(q.NewID())
	tx.Remove(row)
	tx.Remove(&counts)
	return tx.Commit(ctx)
}

// retireJobs removes the last of the remaining job rows, and records that on the batch.
func (q *Queue) retireJobs(ctx context.Context, row *Batch) error {
	tx := q.Table.Begin(q.NewID())
	left := max(0, row.Unpacked-retireChunk)
	for n := left + 1; n <= row.Unpacked; n++ {
		job, err := q.Job(ctx, ingest.JobID(row.Batch.ID, n))
		if fault.Is(err, fault.NotFound) {
			continue
		}
		if err != nil {
			return err
		}
		tx.Remove(job)
	}
	next := row.Batch
	next.Unpacked, next.Due, next.Repairs = left, q.Now().UnixMilli(), 0
	if err := q.putBatch(tx, row, next, origin{}); err != nil {
		return err
	}
	return tx.Commit(ctx)
}
