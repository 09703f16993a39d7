package queue

import (
	"context"
	"fmt"

	"archivist/pkg/ingest"
	"archivist/pkg/kernel/fault"
)

// decideCancel ends an unfinished job of a cancelled batch. One that has not started is
// deleted, any other fails. A job that has ended stays as it is.
func decideCancel(ctx context.Context, q *Queue, row *Job,
	a ingest.Action) (d decision, err error) {
	job, why := row.Job, ingest.Decision{Reason: a.Reason, Actor: a.Actor}.String("cancelled")
	switch {
	case !job.State.Open():
		d.next, d.unchanged, d.summary = job, true,
			fmt.Sprintf("job %s is already %s", job.ID, job.State)
		return d, nil
	// By the table of states, only a job that has not started can become Deleted.
	case ingest.CheckJob(job.State, ingest.Deleted) != nil:
		d, err = q.stopJob(ctx, row, a, why)
		d.next.Cancelled = true
		return d, err
	}

	d.next = q.Rules.Deleted(job, why, q.Now())
	d.next.Cancelled = true
	d.by = origin{event: "job.state", actor: a.Actor, component: "admin", reason: a.Reason}
	d.summary = fmt.Sprintf("job %s is deleted: it has not started", job.ID)
	return d, nil
}

// decideCancelBatch cancels the unfinished jobs of a batch: no more jobs are made of it, and
// a bulk operation cancels those that it has. Then the batch reports as usual.
func decideCancelBatch(ctx context.Context, q *Queue, row *Batch,
	a ingest.Action) (d batchDecision, err error) {
	batch := row.Batch
	d.next = batch
	counts, err := q.Counts(ctx, batch.ID)
	if err != nil {
		return d, err
	}

	running, err := q.isCancelling(ctx, &batch)
	if err != nil {
		return d, err
	}

	open := counts.Open()
	switch {
	// A second cancel while the operation runs changes nothing, and returns the same operation.
	case running, batch.Cancelled != nil && open == 0:
		d.unchanged, d.operation = true, batch.Cancelled.Operation
		d.summary = fmt.Sprintf("batch %s was %s", batch.ID, batch.Cancelled.String("cancelled"))
		return d, nil
	case batch.State != ingest.BatchPending && batch.State != ingest.BatchProcessing:
		return d, cannot(a, string(batch.State), "Pending or Processing", batch.State.Becomes(),
			insteadOfCancel(batch.State))
	case open == 0 && batch.Sealed:
		d.unchanged, d.summary = true, fmt.Sprintf("all jobs of batch %s have ended", batch.ID)
		return d, nil
	}

	d.next = q.cancelled(batch, ingest.Decision{
		Reason: a.Reason,
		Actor:  a.Actor,
		At:     q.Now().UnixMilli(),
	})

	d.by = origin{event: "batch.cancelled", actor: a.Actor, component: "admin", reason: a.Reason}
	d.summary = fmt.Sprintf("batch %s is cancelled with %s: what has not started is deleted, "+
		"what has started fails; then it reports", batch.ID, ingest.Counted(open, "unfinished job"))
	// Otherwise there is nothing to end: the batch itself fails, or is sealed and reports.
	if open > 0 {
		operation, begin, run := q.cancelJobs(&d.next)
		d.also = append(d.also, begin)
		d.then = run
		if !a.DryRun {
			d.operation = operation
		}
	}
	return d, nil
}

// insteadOfCancel is what to do with a batch that cannot be cancelled in its state.
func insteadOfCancel(s ingest.BatchState) string {
	switch s {
	case ingest.BatchHeld:
		return "It has not started: delete it"
	case ingest.BatchFailed:
		return "Jobs that were requeued can be failed"
	}
	return "Its jobs have ended"
}

// isCancelling reports whether the operation that cancels the jobs of a batch is running. The rows
// of an operation expire: one that is gone does not run.
func (q *Queue) isCancelling(ctx context.Context, b *ingest.Batch) (bool, error) {
	if b.Cancelled == nil || b.Cancelled.Operation == "" {
		return false, nil
	}
	row, err := q.Operation(ctx, b.Cancelled.Operation)
	if fault.Is(err, fault.NotFound) {
		return false, nil
	}
	return err == nil && row.State == ingest.OperationRunning, err
}

// cancelJobs names, on a cancelled batch, a new bulk operation that cancels its unfinished
// jobs. begin inserts the operation, run starts its execution after the commit. The id of the
// operation is on the batch, so that a repeat does not start another one.
func (q *Queue) cancelJobs(b *ingest.Batch) (operation string, begin part,
	run func(ctx context.Context)) {
	by := *b.Cancelled
	by.Operation, begin, run = q.addOperation(ingest.Operation{
		Reason: by.Reason,
		Actor:  by.Actor,
		Bulk:   ingest.Bulk{Name: ingest.ActCancel, Filter: ingest.Filter{Batch: b.ID}},
	})
	b.Cancelled = &by
	return by.Operation, begin, run
}

// cancelOpen starts the operation that cancels the jobs of a batch that stopBatch cancelled, or
// another one if the first has left some. It reports whether there was one to start.
func (q *Queue) cancelOpen(ctx context.Context, row *Batch) (bool, error) {
	if row.Cancelled == nil {
		return false, nil
	}

	next := row.Batch
	if row.Cancelled.Operation != "" {
		left, err := q.cancelLeft(ctx, &row.Batch)
		if err != nil || !left {
			return false, err
		}
		// The wait until the next look grows with each operation that was needed.
		next.Repairs++
	}

	next = q.Rules.DueBatch(next, q.Now())
	_, begin, run := q.cancelJobs(&next)
	err := q.changeBatch(ctx, row, next, origin{}, begin)
	if err == nil {
		run(ctx)
	}
	return true, err
}

// cancelLeft reports whether the operation that cancels the jobs of a batch has ended, and has left
// some: it gives up those whose rows could not be read or written for a while. No gate admits them, so
// nothing else would end them. One that was interrupted is continued by a person.
func (q *Queue) cancelLeft(ctx context.Context, b *ingest.Batch) (bool, error) {
	o, err := q.Operation(ctx, b.Cancelled.Operation)
	if err != nil && !fault.Is(err, fault.NotFound) || err == nil && o.State != ingest.OperationDone {
		return false, err
	}
	counts, err := q.Counts(ctx, b.ID)
	return err == nil && counts.Open() > 0, err
}
