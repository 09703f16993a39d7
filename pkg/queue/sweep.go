package queue

import (
	"context"
	"time"

	"archivist/pkg/fault"
	"archivist/pkg/ingest"
	"archivist/pkg/table"
)

// due is an item past its due time as the index shows it.
type due struct {
	table.Head
	ID string `dynamo:"id"`
}

// Sweep looks at the items that are past due, oldest first in each shard, and
// repairs them; then, with a time of its own, at those whose rows or work files
// are to be removed. It begins no repair after a time. Each minute another shard
// is the first.
func (q *Queue) Sweep(ctx context.Context, until time.Time) error {
	for i := range ingest.DueShards {
		shard := (int(q.Now().Unix()/60) + i) % ingest.DueShards
		if err := q.sweepPlace(ctx, ingest.DuePK(shard), until); err != nil {
			return err
		}
	}
	return q.sweepPlace(ctx, ingest.WorkCleanUp, q.Now().Add(q.itemTime()))
}

// itemTime is how long one repair or clean-up works; at twice that it is cut off.
func (q *Queue) itemTime() time.Duration { return q.Rules.Timing.Scheduler / 8 }

// sweepPlace looks at what is past due in one place of the index "work". What
// fails is looked at again later, so that it never keeps the others waiting.
func (q *Queue) sweepPlace(ctx context.Context, place string, until time.Time) error {
	var page []due
	_, err := q.Table.Page(ctx, table.Query{Index: "work", PK: place, From: "0", To: dueRank(q.Now()), Limit: q.Settings.SweepPage}, &page)
	if err != nil {
		return err
	}
	for _, d := range page {
		if !q.Now().Before(until) {
			return nil
		}
		err := q.repair(ctx, d)
		if err == nil || fault.Is(err, fault.Stale) || fault.Is(err, fault.NotFound) {
			continue
		}
		q.Log.Error("a repair failed; it is tried again later", "id", d.ID, "error", err)
		q.Metric(RepairErrors, 1)
		if err := q.postpone(ctx, d); err != nil {
			q.Log.Error("the repair could not be put off", "id", d.ID, "error", err)
		}
	}
	return nil
}

func (d due) isBatch() bool { return d.PK == batchKey(d.ID).PK }

// repair looks at one item. A dependency that does not answer cannot use up the
// time of the others: a repair and its postponement end within three quarters of a
// sweep's time. A clean-up has twice the time in which it works.
func (q *Queue) repair(ctx context.Context, d due) error {
	limit := q.itemTime()
	if d.WorkPK == ingest.WorkCleanUp {
		limit *= 2
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	if d.isBatch() {
		return q.repairBatch(ctx, d.ID)
	}
	return q.repairJob(ctx, d.ID)
}

// postpone moves the due time of an item on whose repair failed, further each
// time, if the repair has not done so itself.
func (q *Queue) postpone(ctx context.Context, d due) error {
	ctx, cancel := context.WithTimeout(ctx, q.itemTime()/2)
	defer cancel()
	tx := q.Table.Begin(q.NewID())
	if d.isBatch() {
		row, err := q.Batch(ctx, d.ID)
		if err != nil {
			return err
		}
		if q.Now().UnixMilli() < row.Due {
			return nil
		}
		stage, _ := ingest.StageOfBatch(row.State)
		next := *row
		next.Work = q.Rules.Postpone(row.Work, stage, q.Now())
		q.writeBatch(tx, row, next)
		return tx.Commit(ctx)
	}
	row, err := q.Job(ctx, d.ID)
	if err != nil {
		return err
	}
	if q.Now().UnixMilli() < row.Due {
		return nil
	}
	stage, _ := ingest.StageOf(row.State)
	next := *row
	next.Work = q.Rules.Postpone(row.Work, stage, q.Now())
	q.writeJob(tx, row, next)
	return tx.Commit(ctx)
}

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

// clean removes the work files of a job that failed and gives their space back.
// It holds the job's lease meanwhile, and the job cannot be requeued until all is
// removed. The next look is put off first: whatever happens, others have their turn.
func (q *Queue) clean(ctx context.Context, row *Job, now time.Time, reason string) error {
	tx := q.Table.Begin(q.NewID())
	next := *row
	next.Work, next.Cleaning = q.Rules.Postpone(row.Work, ingest.Stage{}, now), true
	next.Take(tx.ID(), now, q.Rules.Timing.Scheduler+q.Rules.Timing.Margin)
	q.writeJob(tx, row, next)
	if err := tx.Commit(ctx); err != nil {
		return err
	}
	if err := q.lookStored(ctx, &row.Job); err != nil {
		return err
	}
	all, err := q.Clean(ctx, row.Job.ID, now.Add(q.itemTime()))
	if err != nil {
		return err
	}
	if !all { // the next sweep goes on
		tx := q.Table.Begin(q.NewID())
		next := *row
		next.Release()
		next.Due, next.Repairs = q.Now().UnixMilli(), 0
		q.writeJob(tx, row, next)
		return tx.Commit(ctx)
	}
	return q.changeJob(ctx, row, q.Rules.Cleaned(row.Job), why{event: "job.cleaned", component: "sweep", reason: reason})
}

// lookStored asks the storage once more about a job that failed at Storing: its
// worker may have committed after it was failed by hand, and then died. Without the
// work files nobody could tell.
func (q *Queue) lookStored(ctx context.Context, j *ingest.Job) error {
	if q.Stored == nil || j.LastSuccessful != ingest.Processing || j.ObjectVersion != 0 {
		return nil
	}
	is := *j
	if err := q.Stored(ctx, &is); err != nil || is.ObjectVersion == 0 {
		return err
	}
	*j = q.Rules.Preserved(*j, is.ObjectVersion)
	return nil
}

// cleanEarly removes work files of jobs that failed some time ago, the oldest
// first, because a waiting job needs their space. One whose removal failed before
// has its own time.
func (q *Queue) cleanEarly(ctx context.Context, until time.Time) error {
	now := q.Now()
	var page []due
	to := dueRank(now.Add(q.Rules.FailedRetention - q.Settings.FailedKeep))
	_, err := q.Table.Page(ctx, table.Query{Index: "work", PK: ingest.WorkCleanUp, From: "0", To: to, Limit: earlyPage}, &page)
	if err != nil {
		return err
	}
	for _, d := range page {
		if !q.Now().Before(until) {
			return nil
		}
		if d.isBatch() {
			continue
		}
		row, err := q.Job(ctx, d.ID)
		kept := func() time.Duration { return now.Sub(time.UnixMilli(row.Entered)) }
		if err == nil && row.Uncleaned() && !row.Live(now) && row.Repairs == 0 && kept() >= q.Settings.FailedKeep {
			err = q.clean(ctx, row, now, "its space is needed by jobs that wait")
		}
		if err != nil && !fault.Is(err, fault.Stale) && !fault.Is(err, fault.NotFound) {
			q.Log.Error("a failed job's space could not be given back; it is tried again later", "job", d.ID, "error", err)
			q.Metric(RepairErrors, 1)
		}
	}
	return nil
}

// earlyPage is how many failed jobs one tick looks at for their space.
const earlyPage = 20

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

// dueRank is the greatest rank in the index of what is due at now.
func dueRank(now time.Time) string { return ingest.DueSK(now.UnixMilli()) + "~" }
