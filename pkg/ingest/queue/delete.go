package queue

import (
	"context"
	"fmt"

	"archivist/pkg/ingest"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/table"
)

// decideDelete deletes a failed or held job. It needs confirmation while the report of the
// job's batch is not written. A version that the job has stored stays in the archive, and is
// recorded first. A job in another state is a Conflict.
func decideDelete(ctx context.Context, q *Queue, row *Job,
	a ingest.Action) (d decision, err error) {
	job := row.Job
	d.next = job
	switch {
	case job.State == ingest.Deleted:
		d.unchanged, d.summary = true, fmt.Sprintf("job %s is already Deleted", job.ID)
		return d, nil
	case !job.Allows(ingest.ActDelete):
		return d, cannot(a, string(job.State), "Failed or Held", job.State.Becomes(),
			insteadOfDelete(job.State))
	}

	batch, err := q.Batch(ctx, job.Batch)
	if err != nil {
		return d, err
	}

	if err := q.checkStored(ctx, &job); err != nil {
		return d, err
	}

	// After checkStored, since the message of the job says whether its version is stored.
	d.next = q.Rules.Deleted(job,
		ingest.Decision{Reason: a.Reason, Actor: a.Actor}.String("deleted"), q.Now())
	d.by = origin{event: "job.state", actor: a.Actor, component: "admin", reason: a.Reason}
	d.summary = fmt.Sprintf("job %s is deleted; its history is kept", job.ID)
	if job.HasSpace {
		d.summary += ", and its work files are removed after " + ingest.Timestamp(d.next.Due)
	}

	if job.ObjectVersion > 0 {
		d.warnings = append(d.warnings,
			fmt.Sprintf("version %d of %s stays preserved", job.ObjectVersion, job.Primary))
	}

	if unreported(batch.State) {
		d.unconfirmed = fmt.Sprintf("batch %s is %s: its report will only say that job %s was deleted", batch.Batch.ID,
			batch.State, job.ID)
	}

	d.first = func(ctx context.Context) error { return q.recordStored(ctx, &job, a.Actor) }
	return d, nil
}

// insteadOfDelete is what to do with a job that cannot be deleted in its state.
func insteadOfDelete(s ingest.State) string {
	switch s {
	case ingest.Pending:
		return "Hold it first"
	case ingest.Completed:
		return "Its rows are removed with its batch"
	}
	return "Fail it first"
}

// unreported reports whether the report of a batch is not written yet.
func unreported(s ingest.BatchState) bool {
	return s != ingest.BatchFailed && s != ingest.BatchCompleted && s != ingest.BatchDeleted
}

// decideDeleteBatch deletes a failed or held batch with all its jobs. The sweep deletes the
// jobs and removes the rows.
func decideDeleteBatch(ctx context.Context, q *Queue, row *Batch,
	a ingest.Action) (d batchDecision, err error) {
	batch := row.Batch
	d.next = batch
	switch batch.State {
	case ingest.BatchDeleted:
		d.unchanged, d.summary = true, fmt.Sprintf("batch %s is already Deleted", batch.ID)
		return d, nil
	case ingest.BatchFailed, ingest.BatchHeld:
	case ingest.BatchCompleted:
		return d, cannot(a, string(batch.State), "Failed or Held", batch.State.Becomes(),
			"Its rows are removed after their retention; clean-up removes them now")
	case ingest.BatchReporting, ingest.BatchUpdateReporting:
		return d, cannot(a, string(batch.State), "Failed or Held", batch.State.Becomes(),
			"Wait for its report")
	default:
		return d, cannot(a, string(batch.State), "Failed or Held", batch.State.Becomes(),
			"Cancel it first, and wait for its report")
	}

	counts, err := q.Counts(ctx, batch.ID)
	if err != nil {
		return d, err
	}

	if open := counts.Open(); open > 0 {
		return d, fault.New(fault.Conflict,
			"batch %s has %s; wait until they have ended, or fail them first",
			batch.ID, ingest.Counted(open, "unfinished job"))
	}

	d.next = q.removed(batch, a)
	d.by = origin{event: "batch.state", actor: a.Actor, component: "admin", reason: a.Reason}
	d.summary = fmt.Sprintf("batch %s is deleted with %s; the history is kept", batch.ID,
		ingest.Counted(batch.Unpacked, "job"))
	d.unconfirmed = fmt.Sprintf("batch %s is %s with %s. After that, no job of it can be requeued or listed; "+
		"the depositor is not notified", batch.ID, batch.State,
		ingest.Counted(counts.Failed, "failed job"))

	// A job that is requeued meanwhile would lose its rows while it runs.
	d.also = append(d.also, noneOpen(batch.ID))
	return d, nil
}

// removed is a batch whose rows the sweep removes now, because a person has decided it. Removal
// tells the sweep that its failed jobs are to be deleted, too.
func (q *Queue) removed(b ingest.Batch, a ingest.Action) ingest.Batch {
	now := q.Now()
	b = q.Rules.EnterBatch(b, ingest.BatchDeleted, now)
	b.Due = now.UnixMilli()
	b.Removal = &ingest.Decision{Reason: a.Reason, Actor: a.Actor, At: b.Due}
	return b
}

// mayReopen returns a Conflict if a batch is Deleted, or is being cancelled, so that no job of it may
// be open again, and the part of a transaction that makes it depend on that it is not.
func (q *Queue) mayReopen(ctx context.Context, batch string) (func(*table.Tx) error, error) {
	row, err := q.Batch(ctx, batch)
	if err != nil {
		return nil, err
	}

	if row.State == ingest.BatchDeleted {
		return nil, fault.New(fault.Conflict, "batch %s is Deleted: its jobs are being removed", batch)
	}

	if why := row.Stops(); why != "" {
		return nil, fault.New(fault.Conflict,
			"%s, and its jobs are being ended; requeue the job once the batch has reported", why)
	}
	// The batch was read before: the condition holds at the moment of the commit, too.
	return func(tx *table.Tx) error {
		tx.Require(batchKey(batch), "batch_state <> ? AND ("+ingest.MayStart+")", ingest.BatchDeleted,
			ingest.BatchPending, ingest.BatchProcessing)
		return nil
	}, nil
}
