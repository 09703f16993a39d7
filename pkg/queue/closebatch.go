package queue

import (
	"archivist/pkg/fault"
	"archivist/pkg/fetch"
	"archivist/pkg/ingest"
	"archivist/pkg/table"
	"context"
)

// CloseBatch moves a sealed batch without open jobs to Reporting. It is tried
// by whoever closed a job, by the sealer and by the sweep; one of them does it.
func (q *Queue) CloseBatch(ctx context.Context, id string) error {
	for range 3 { // after a Lost somebody else did it, or a job was requeued, or only a mail was recorded
		counts, err := q.Counts(ctx, id)
		if err != nil || counts.Open() > 0 {
			return err
		}
		row, err := q.Batch(ctx, id)
		if err != nil || row.State != ingest.BatchProcessing || !row.Sealed {
			return err
		}
		is := q.Rules.EnterBatch(row.Batch, ingest.BatchReporting, q.Now())
		err = q.changeBatch(ctx, row, is, why{event: "batch.state", component: "queue"}, func(tx *table.Tx) error {
			tx.Require(countKey(id), "n_processing = ? AND n_held = ?", 0, 0)
			return nil
		})
		if !fault.Is(err, fault.Stale) {
			return err
		}
	}
	return nil // the sweep looks again
}

// seal is a batch of which no more jobs will be made.
func (q *Queue) seal(b ingest.Batch) ingest.Batch {
	b.Sealed, b.Expected = true, b.Unpacked
	return q.Rules.EnterBatch(b, ingest.BatchProcessing, q.Now())
}

// giveUp is a batch of which some jobs, or none, were made when it turned out that
// no more can be, or that no report can be made. One with jobs waits for them and
// reports: a batch never ends before its jobs.
func (q *Queue) giveUp(b ingest.Batch, reason string) ingest.Batch {
	b.Message, b.URL = reason, fetch.Redact(b.URL) // it is not fetched again
	if b.State == ingest.BatchPending && b.Unpacked > 0 {
		b.Incomplete = reason
		return q.seal(b)
	}
	return q.Rules.EnterBatch(b, ingest.BatchFailed, q.Now())
}

// endBatch closes a batch whose report is saved, or whose manifest is no good.
// It is Completed only if no job failed, seen in the same transaction.
func (q *Queue) endBatch(ctx context.Context, h *Claim, res ingest.Result) error {
	if res.Outcome == ingest.StepFail {
		is := q.giveUp(*h.Batch, res.Reason)
		err := q.changeBatch(ctx, h.batch, is, why{event: "batch.state", component: "unpack", reason: res.Reason}, h.also...)
		if err == nil {
			*h.Batch = is
		}
		return err
	}
	counts, err := q.Counts(ctx, h.Batch.ID)
	if err != nil {
		return err
	}
	to := ingest.BatchFailed
	also := h.also
	if h.Batch.Incomplete == "" && counts.Failed == 0 && counts.Open() == 0 {
		to = ingest.BatchCompleted
		also = append(also, func(tx *table.Tx) error {
			tx.Require(countKey(h.Batch.ID), "n_failed = ? AND n_processing = ? AND n_held = ?", 0, 0, 0)
			return nil
		})
	}
	is := *h.Batch
	is.Message = h.Batch.Incomplete
	is = q.Rules.EnterBatch(is, to, q.Now())
	err = q.changeBatch(ctx, h.batch, is, why{event: "batch.state", component: "report", reason: is.Message}, also...)
	if err == nil {
		*h.Batch = is
	}
	return err
}
