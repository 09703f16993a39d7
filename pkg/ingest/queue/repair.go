package queue

import (
	"context"
	"fmt"

	"archivist/pkg/ingest"
)

// repair gives a job that is past due a new execution at its state, and stops the old
// one. An execution that a person stopped fails the job.
func (row *Job) repair(ctx context.Context, q *Queue) error {
	now := q.Now()
	if row.Uncleaned() && !row.Live(now) {
		return q.clean(ctx, row, now, "work files removed: "+q.whyClean(row, now))
	}

	// Its wait has ended: it goes to its gate, since it has no execution.
	if row.Deferred() {
		by := origin{
			event:     "job.state",
			component: "sweep",
			reason:    "the wait that the source asked for has ended",
		}
		return q.changeJob(ctx, row, q.Rules.Ready(row.Job), by)
	}

	if row.State == ingest.Held {
		return row.holdEnds(ctx, q)
	}

	stage, working := row.stage()
	if !working {
		return nil
	}

	if row.Live(now) {
		return q.waitForLease(ctx, row, stage)
	}

	if err := q.failIfStopped(ctx, row); err != nil || row.State == ingest.Failed {
		return err
	}

	old := ExecutionName(row.Job.ID, row.Exec)
	return q.restart(ctx, MachineJob, old, stage, row.Work, func(w ingest.Work, by origin) error {
		next := row.Job
		next.Work = w
		by.event = "job.repaired"
		return q.changeJob(ctx, row, next, by)
	})
}

// repair gives a batch that is past due a new execution at its step, or checks whether it
// can report, or removes its rows.
func (row *Batch) repair(ctx context.Context, q *Queue) error {
	now := q.Now()
	// The index lags: nothing is to be done with the batch any more.
	if place, _ := row.Batch.WorkKey(); place == "" {
		return nil
	}

	if row.State == ingest.BatchHeld {
		return row.holdEnds(ctx, q)
	}

	if row.State == ingest.BatchCompleted || row.State == ingest.BatchDeleted {
		return q.retire(ctx, row)
	}

	stage, working := row.stage()
	if row.Live(now) {
		return q.waitForLease(ctx, row, stage)
	}

	if !working {
		return q.tryClose(ctx, row)
	}

	old := ExecutionName(row.Batch.ID, row.Exec)
	return q.restart(ctx, MachineBatch, old, stage, row.Work, func(w ingest.Work, by origin) error {
		next := row.Batch
		next.Work = w
		by.event = "batch.repaired"
		return q.changeBatch(ctx, row, next, by)
	})
}

// restart gives an item a new execution, records the cause if it is known, and stops the
// old one. Many repairs raise an alarm.
func (q *Queue) restart(ctx context.Context, machine, old string, stage ingest.Stage, w ingest.Work,
	change func(w ingest.Work, by origin) error) error {
	w = q.Rules.Repair(w, stage, q.Now())
	w.Blocked = q.blocker(ctx, machine, old, w)
	if err := change(w, origin{component: "sweep", reason: noProgress(w)}); err != nil {
		return err
	}

	q.Metric(Repairs, 1)
	if w.Stuck() {
		q.Metric(Stuck, 1)
	}

	// After the commit: if it is not stopped, its answers are superseded by the new number.
	q.stop(ctx, machine, old, "replaced by a new execution")
	return nil
}

// waitForLease moves an item's due time behind the end of its worker's lease. The worker may still
// succeed. If it has died, its message comes back before.
func (q *Queue) waitForLease(ctx context.Context, it item, stage ingest.Stage) error {
	grace := q.Rules.Timing.Times(stage).Grace
	return q.rewrite(ctx, it, func(row common) { row.Due = row.Until + grace.Milliseconds() })
}

// tryClose tries to close a batch in Processing. If it cannot close yet, its due time is
// postponed. One that was cancelled, and whose operation is missing or left some jobs, gets another
// operation.
func (q *Queue) tryClose(ctx context.Context, row *Batch) error {
	if err := q.CloseBatch(ctx, row.Batch.ID); err != nil {
		return err
	}

	again, err := q.Batch(ctx, row.Batch.ID)
	if err != nil || again.State != ingest.BatchProcessing {
		if err == nil {
			q.Metric(Repairs, 1) // the wake-up after its last job was lost
		}
		return err
	}

	if started, err := q.cancelOpen(ctx, again); started || err != nil {
		return err
	}

	next := again.Batch
	next.Repairs++
	return q.changeBatch(ctx, again, q.Rules.DueBatch(next, q.Now()), origin{})
}

// failIfStopped fails a job whose execution a person stopped. Otherwise the sweep would start it
// again, against what the person wanted.
func (q *Queue) failIfStopped(ctx context.Context, row *Job) error {
	reason, stopped, err := q.Executions.StoppedByHand(ctx, MachineJob,
		ExecutionName(row.Job.ID, row.Exec))
	if err != nil || !stopped {
		return err
	}

	message := fmt.Sprintf("an operator stopped its execution in AWS (%s). Requeue the job to continue it", reason)
	next := q.Rules.Failed(row.Job, message, true, q.Now())
	return q.changeJob(ctx, row, next, origin{
		event:     "job.state",
		component: "sweep",
		reason:    next.Message,
	})
}

// Stopped is called when an execution of a job was stopped. It fails the job if that
// execution drives it, without waiting for the sweep. It is only faster: without it, the sweep
// finds out when the job is due.
func (q *Queue) Stopped(ctx context.Context, job string, exec int64) error {
	row, err := q.Job(ctx, job)
	if err != nil || row.Exec != exec || !row.Running() {
		return err
	}
	return q.failIfStopped(ctx, row)
}

// dueOperation reads an operation that is past its due time; nil if it is not.
func (q *Queue) dueOperation(ctx context.Context, id string) (*Operation, error) {
	row, err := q.Operation(ctx, id)
	if err != nil || row.State != ingest.OperationRunning || q.Now().UnixMilli() < row.Due {
		return nil, err
	}
	return row, nil
}

// repairOperation gives an operation without progress a new execution. An execution that a
// person stopped interrupts the operation.
func (q *Queue) repairOperation(ctx context.Context, id string) error {
	row, err := q.dueOperation(ctx, id)
	if err != nil || row == nil {
		return err
	}

	why, stopped, err := q.Executions.StoppedByHand(ctx, MachineAdmin, row.RunBy())
	if err != nil {
		return err
	}

	if stopped {
		by := origin{
			event:     "operation.interrupted",
			component: "sweep",
			reason:    fmt.Sprintf("an operator stopped its execution in AWS (%s)", why),
		}
		return q.changeOperation(ctx, row, q.interrupted(row.Operation), by)
	}
	return q.restart(ctx, MachineAdmin, row.RunBy(), ingest.Stage{}, row.Work,
		func(w ingest.Work, by origin) error {
			next := row.Operation
			next.Work = w
			by.event = "operation.repaired"
			return q.changeOperation(ctx, row, next, by)
		})
}

// postponeOperation moves the due time of an operation whose repair failed.
func (q *Queue) postponeOperation(ctx context.Context, id string) error {
	row, err := q.dueOperation(ctx, id)
	if err != nil || row == nil {
		return err
	}
	next := row.Operation
	next.Work = q.Rules.Postpone(next.Work, ingest.Stage{}, q.Now())
	return q.changeOperation(ctx, row, next, origin{})
}
