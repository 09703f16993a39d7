package queue

import (
	"context"
	"fmt"

	"archivist/pkg/ingest"
)

// decideUpdateReport lets a failed batch report what has changed since its last report. It is
// refused while jobs of the batch are open, which the transaction checks too.
func decideUpdateReport(ctx context.Context, q *Queue, row *Batch,
	a ingest.Action) (d batchDecision, err error) {
	counts, err := q.Counts(ctx, row.Batch.ID)
	if err != nil {
		return d, err
	}

	if row.State == ingest.BatchUpdateReporting {
		d.summary, d.unchanged = fmt.Sprintf("batch %s is already making its report", row.Batch.ID),
			true
		return d, nil
	}

	if d.next, err = q.Rules.UpdateReport(row.Batch, counts, q.Now()); err != nil {
		return d, err
	}

	d.by = origin{event: "batch.state", actor: a.Actor, component: "admin", reason: a.Reason}
	d.summary = fmt.Sprintf("batch %s reports what has changed since its last report: its jobs are now %s",
		row.Batch.ID, ended(counts))
	// A job that is requeued meanwhile makes the commit a Stale, and the action is decided again.
	d.also = append(d.also, noneOpen(row.Batch.ID))
	return d, nil
}
