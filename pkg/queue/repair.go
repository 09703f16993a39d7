package queue

import (
	"archivist/pkg/ingest"
	"context"
	"time"
)

// repairJob gives a job that is past due a new execution at its state, and
// stops the old one. An execution that a person stopped fails the job.
func (q *Queue) repairJob(ctx context.Context, id string) error {
	row, err := q.Job(ctx, id)
	if err != nil {
		return err
	}
	now := q.Now()
	if now.UnixMilli() < row.Due {
		return nil
	}
	if row.Uncleaned() && !row.Live(now) {
		return q.clean(ctx, row, now, "its work files were kept long enough")
	}
	stage, working := ingest.StageOf(row.State)
	if !working || row.Parked {
		return nil
	}
	if row.Live(now) {
		return q.later(ctx, row, time.UnixMilli(row.Until).Add(q.Rules.Timing.Times(stage).Grace))
	}
	if err := q.failIfStopped(ctx, row); err != nil || row.State == ingest.Failed {
		return err
	}
	old := ExecutionName(row.Job.ID, row.Exec)
	is := row.Job
	is.Work = q.Rules.Repair(is.Work, stage, now)
	is.Blocked = q.blocker(ctx, MachineJob, old, is.Work)
	if err := q.changeJob(ctx, row, is, why{event: "job.repaired", component: "sweep", reason: noProgress(is.Work)}); err != nil {
		return err
	}
	q.repaired(ctx, MachineJob, old, is.Work)
	return nil
}

// repairBatch gives a batch that is past due a new execution at its step, or
// looks whether it can report.
func (q *Queue) repairBatch(ctx context.Context, id string) error {
	row, err := q.Batch(ctx, id)
	if err != nil {
		return err
	}
	now := q.Now()
	if place, _ := row.Batch.WorkKey(); place == "" || now.UnixMilli() < row.Due {
		return nil
	}
	is := row.Batch
	if is.State == ingest.BatchCompleted || is.State == ingest.BatchDeleted {
		return q.retire(ctx, row)
	}
	stage, working := ingest.StageOfBatch(is.State)
	if row.Live(now) {
		is.Due = time.UnixMilli(row.Until).Add(q.Rules.Timing.Times(stage).Grace).UnixMilli()
		return q.changeBatch(ctx, row, is, why{})
	}
	if !working {
		return q.lookAgain(ctx, row)
	}
	old := ExecutionName(is.ID, is.Exec)
	is.Work = q.Rules.Repair(is.Work, stage, now)
	is.Blocked = q.blocker(ctx, MachineBatch, old, is.Work)
	if err := q.changeBatch(ctx, row, is, why{event: "batch.repaired", component: "sweep", reason: noProgress(is.Work)}); err != nil {
		return err
	}
	q.repaired(ctx, MachineBatch, old, is.Work)
	return nil
}

// lookAgain tries to close a batch in Processing; if it cannot close yet, the
// next look is later.
func (q *Queue) lookAgain(ctx context.Context, row *Batch) error {
	if err := q.CloseBatch(ctx, row.Batch.ID); err != nil {
		return err
	}
	again, err := q.Batch(ctx, row.Batch.ID)
	if err != nil || again.State != ingest.BatchProcessing {
		if err == nil {
			q.Metric(Repairs, 1) // nobody told the batch that its last job closed
		}
		return err
	}
	is := again.Batch
	is.Repairs++
	return q.changeBatch(ctx, again, q.Rules.DueBatch(is, q.Now()), why{})
}

// repaired counts a repair, and stops the execution that it replaced.
func (q *Queue) repaired(ctx context.Context, machine, old string, w ingest.Work) {
	q.Metric(Repairs, 1)
	if w.Stuck() {
		q.Metric(Stuck, 1)
	}
	if err := q.Executions.Stop(ctx, machine, old, "replaced by the sweep"); err != nil {
		q.Log.Warn("the old execution was not stopped; what it says is superseded", "execution", old, "error", err)
	}
}

func (q *Queue) later(ctx context.Context, row *Job, at time.Time) error {
	tx := q.Table.Begin(q.NewID())
	next := *row
	next.Due = at.UnixMilli()
	q.writeJob(tx, row, next)
	return tx.Commit(ctx)
}

// failIfStopped fails a job whose execution a person stopped.
func (q *Queue) failIfStopped(ctx context.Context, row *Job) error {
	reason, stopped, err := q.Executions.StoppedByHand(ctx, MachineJob, ExecutionName(row.Job.ID, row.Exec))
	if err != nil || !stopped {
		return err
	}
	is := q.Rules.Failed(row.Job, "the execution was stopped by hand: "+reason, true, q.Now())
	return q.changeJob(ctx, row, is, why{event: "job.state", component: "sweep", reason: is.Message})
}

// Stopped is told that an execution of a job ended by a stop. It fails the job
// if that execution drives it, without waiting for the sweep.
func (q *Queue) Stopped(ctx context.Context, job string, exec int64) error {
	row, err := q.Job(ctx, job)
	if err != nil || row.Exec != exec || !row.Running() {
		return err
	}
	return q.failIfStopped(ctx, row)
}
