package queue

import (
	"cmp"
	"context"

	"archivist/pkg/fault"
	"archivist/pkg/fetch"
	"archivist/pkg/ingest"
	"archivist/pkg/table"
)

// CloseBatch moves a sealed batch without open jobs to Reporting, and cancels one of which
// too many jobs have failed. It is called after the end
// of each job, after sealing, and by the sweep; one of these calls succeeds.
func (q *Queue) CloseBatch(ctx context.Context, id string) error {
	for range 3 { // a Stale: another call did it, a job was requeued, or only a mail was recorded
		counts, err := q.countRow(ctx, id)
		if err != nil {
			return err
		}
		if counts.stops() {
			err = q.stopBatch(ctx, id, &counts)
		}
		if counts.Open() > 0 {
			return err
		}
		row, err := q.Batch(ctx, id)
		if err != nil || row.State != ingest.BatchProcessing || !row.Sealed {
			return err
		}
		next := q.Rules.EnterBatch(row.Batch, ingest.BatchReporting, q.Now())
		err = q.changeBatch(ctx, row, next, origin{event: "batch.state", component: "queue"}, noneOpen(id))
		if !fault.Is(err, fault.Stale) {
			return err
		}
	}
	return nil // the sweep tries again
}

// seal is a batch after its last job was created.
func (q *Queue) seal(b ingest.Batch) ingest.Batch {
	b.Sealed, b.Expected = true, b.Unpacked
	return q.Rules.EnterBatch(b, ingest.BatchProcessing, q.Now())
}

// giveUp is a batch whose other jobs, or whose report, cannot be created. A batch that has
// jobs waits for them and reports: a batch never ends before its jobs.
func (q *Queue) giveUp(b ingest.Batch, reason string) ingest.Batch {
	b.Message, b.URL = reason, fetch.Redact(b.URL) // it is not fetched again
	if b.State == ingest.BatchPending && b.Unpacked > 0 {
		b.Incomplete = reason
		return q.seal(b)
	}
	return q.Rules.EnterBatch(b, ingest.BatchFailed, q.Now())
}

// end ends a batch whose report is saved, or whose manifest cannot be used. It becomes
// Completed only if no job has failed, which the same transaction checks.
func (row *Batch) end(ctx context.Context, c *Claim, res ingest.Result) error {
	next, by, more := c.q.giveUp(*c.Batch, res.Reason), origin{event: "batch.state", component: "unpack",
		reason: res.Reason}, c.onCommit
	if res.Outcome != ingest.StepFail {
		var err error
		if next, more, err = c.q.reported(ctx, c); err != nil {
			return err
		}
		by.component, by.reason = "report", cmp.Or(next.Message, c.remark)
	}
	err := c.q.changeBatch(ctx, row, next, by, more...)
	if err == nil {
		*c.Batch = next
	}
	return err
}

// reported is a batch whose report is saved, with the other parts of its transaction.
func (q *Queue) reported(ctx context.Context, c *Claim) (next ingest.Batch, more []func(*table.Tx) error, err error) {
	next, more = *c.Batch, c.onCommit
	counts, err := q.Counts(ctx, next.ID)
	if err != nil {
		return next, more, err
	}
	to := ingest.BatchFailed
	if next.Incomplete == "" && counts.Failed == 0 && counts.Open() == 0 && !cutShort(&next, counts) {
		to = ingest.BatchCompleted
		more = append(more, func(tx *table.Tx) error {
			tx.Require(countKey(next.ID), "n_failed = ? AND n_processing = ? AND n_held = ?", 0, 0, 0)
			return nil
		})
	}
	next.Message = next.CutShort()
	return q.Rules.EnterBatch(next, to, q.Now()), more, nil
}

// cutShort reports whether jobs of a batch were deleted because it was cancelled.
func cutShort(b *ingest.Batch, c ingest.Counts) bool { return b.Cancelled != nil && c.Deleted > 0 }
