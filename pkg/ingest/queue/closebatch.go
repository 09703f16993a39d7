package queue

import (
	"context"
	"fmt"

	"archivist/pkg/ingest"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/fetch"
	"archivist/pkg/kernel/table"
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

		if fault.Is(err, fault.Stale) {
			continue
		}

		if counts.Open() > 0 {
			return err
		}

		row, err := q.Batch(ctx, id)
		if err != nil || row.State != ingest.BatchProcessing || !row.Sealed {
			return err
		}

		next := q.Rules.EnterBatch(row.Batch, ingest.BatchReporting, q.Now())
		err = q.changeBatch(ctx, row, next, origin{event: "batch.state", component: "queue"},
			noneOpen(id))
		if !fault.Is(err, fault.Stale) {
			return err
		}
	}
	return nil // the sweep tries again
}

// noneOpen makes a change depend on that all jobs of a batch have ended. The counts are read
// before; this holds at the moment of the commit.
func noneOpen(batch string) func(*table.Tx) error {
	return func(tx *table.Tx) error {
		tx.Require(countKey(batch), "n_processing = ? AND n_held = ?", 0, 0)
		return nil
	}
}

// stops reports whether the batch is to be cancelled because of its failed jobs. Without open jobs
// there is nothing left to cancel.
func (c *Counts) stops() bool {
	return c.StopAfter > 0 && c.FailedByThemselves() >= int64(c.StopAfter) && c.Open() > 0
}

// systemActor is the actor of what the system does by a rule that a person has set.
const systemActor = "archivist"

// stopBatch cancels a batch of which as many jobs have failed as its submission allows, if at least as many still
// are when it does. It writes only the batch's row, which every stage may. The sweep starts the operation that
// cancels the jobs.
func (q *Queue) stopBatch(ctx context.Context, id string, counts *Counts) error {
	row, err := q.Batch(ctx, id)
	if err != nil || row.Cancelled != nil || row.State != ingest.BatchPending &&
		row.State != ingest.BatchProcessing {
		return err
	}

	by := ingest.Decision{
		Actor: systemActor,
		At:    q.Now().UnixMilli(),
		Reason: fmt.Sprintf(
			"%s, and the submission has stopAfterFailures %s",
			ingest.Counted(counts.FailedByThemselves(), "failed job"),
			ingest.Number(counts.StopAfter)),
	}

	next := q.cancelled(row.Batch, by)
	// Due at once: the sweep of the next minute starts the operation.
	next.Due = by.At
	err = q.changeBatch(ctx, row, next, origin{
		event:     "batch.cancelled",
		actor:     systemActor,
		component: "queue",
		reason:    by.Reason,
	}, func(tx *table.Tx) error {
		tx.Require(countKey(id), "n_failed >= ? AND (attribute_not_exists(n_stopped) OR n_stopped <= ?)",
			counts.Failed, counts.Stopped)
		return nil
	})
	if err == nil {
		q.wake(ctx, []ingest.Wake{{Kind: ingest.LookGates}})
	}
	return err
}

// cancelled is a batch of which no more jobs are made. One that has no jobs fails.
func (q *Queue) cancelled(b ingest.Batch, by ingest.Decision) ingest.Batch {
	b.Cancelled = &by
	if b.State == ingest.BatchPending {
		return q.giveUp(b, by.String("cancelled"))
	}
	// It stays in Processing until its jobs have ended, and reports as usual.
	b.Message = by.String("cancelled")
	return b
}

// seal is a batch after its last job was created. From now on it can be closed.
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
	if b.Unpacked == 0 {
		b.Callback = fetch.Redact(b.Callback) // no job is notified
	}
	return q.Rules.EnterBatch(b, ingest.BatchFailed, q.Now())
}
