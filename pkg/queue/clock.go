package queue

import (
	"context"
	"errors"
	"time"

	"archivist/pkg/fault"
	"archivist/pkg/ingest"
	"archivist/pkg/lease"
	"archivist/pkg/table"
)

// Clock runs the gates and the sweep, one at a time under one lease.
type Clock struct {
	Queue  *Queue
	Leases *lease.Store
}

// leaseName of the clock.
const leaseName = "clock"

// Tick repairs what is past due, if sweep is set, and lets waiting jobs through
// the gates. A Held means that another tick is under way: ask again later.
func (c *Clock) Tick(ctx context.Context, sweep bool) error {
	l, err := c.Leases.Acquire(ctx, leaseName, c.Queue.Rules.Timing.Clock+c.Queue.Rules.Timing.Margin)
	if err != nil {
		return err
	}
	began, most := c.Queue.Now(), c.Queue.Rules.Timing.Clock
	if sweep {
		err = c.Queue.Sweep(ctx, began.Add(most/4))
	}
	if err == nil {
		err = c.gates(ctx, l, began.Add(most*3/4))
	}
	if sweep {
		err = errors.Join(err, c.Queue.SweepMails(ctx, began.Add(most*13/16)))
	}
	if e := c.Leases.Release(ctx, l); err == nil && !fault.Is(e, fault.Lost) {
		err = e
	}
	return err
}

// gates lets jobs on that wait inside first (they hold space), then new ones,
// until a time: who was not looked at is at the next tick.
func (c *Clock) gates(ctx context.Context, l lease.Lease, until time.Time) error {
	free, err := c.Queue.free(ctx)
	if err != nil {
		return err
	}
	for _, place := range []string{ingest.PlaceParked, ingest.PlaceProvisioning, ingest.PlacePending} {
		if err := c.gate(ctx, l, place, &free, until); err != nil {
			return err
		}
	}
	return nil
}

// candidate is a waiting job as the index shows it.
type candidate struct {
	table.Head
	ID         string `dynamo:"id"`
	Space      int64  `dynamo:"space_needed"`
	Known      bool   `dynamo:"size_known"`
	Entered    int64  `dynamo:"entered"`
	Collection string `dynamo:"coll"`
}

// want is what a candidate would take, as far as the index tells. A parked job
// holds its space already, a new one needs none yet.
func (w candidate) want(place string, now time.Time) ingest.Want {
	return ingest.Want{ID: w.ID, Collection: w.Collection, Space: w.Space, Known: w.Known, HasSpace: place != ingest.PlaceProvisioning,
		Waited: now.Sub(time.UnixMilli(w.Entered))}
}

// gate looks, in order, at the waiting jobs of one place and lets on those that
// fit. The index only finds them: each is read before it is decided.
func (c *Clock) gate(ctx context.Context, l lease.Lease, place string, free *ingest.Free, until time.Time) error {
	query := table.Query{Index: "work", PK: place, Limit: 100}
	for free.Slots > 0 && c.Queue.Now().Before(until) {
		var page []candidate
		next, err := c.Queue.Table.Page(ctx, query, &page)
		if err != nil {
			return err
		}
		for _, w := range page {
			if free.Slots <= 0 {
				return nil
			}
			chosen, left := ingest.Choose(*free, []ingest.Want{w.want(place, c.Queue.Now())})
			if len(chosen) == 0 {
				free.Space = left.Space // an impatient job keeps what there is
				continue
			}
			if err := c.let(ctx, l, place, w, free); err != nil {
				return err
			}
		}
		if query.Cursor = next; next == "" {
			return nil
		}
	}
	return nil
}

// let lets one job on if it fits and its locks are free, and takes what it got
// out of free.
func (c *Clock) let(ctx context.Context, l lease.Lease, place string, w candidate, free *ingest.Free) error {
	q := c.Queue
	row, err := q.Job(ctx, w.ID)
	if fault.Is(err, fault.NotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	if now, _ := row.Job.Place(); now != place {
		return nil // the index lags: it went on already
	}
	now := q.Now()
	want := ingest.Want{ID: w.ID, Collection: row.Collection, HasSpace: true}
	is := q.Rules.Admit(row.Job, now)
	if place != ingest.PlacePending {
		if lock, _, err := q.taken(ctx, &row.Job); err != nil || lock != "" {
			return err
		}
		want = ingest.Want{ID: w.ID, Collection: row.Collection, Space: row.SpaceNeeded, Known: row.SizeKnown, HasSpace: row.HasSpace, Waited: now.Sub(time.UnixMilli(row.Entered))}
		is = q.Rules.Provision(row.Job, now)
	}
	chosen, left := ingest.Choose(*free, []ingest.Want{want})
	if len(chosen) == 0 {
		return nil // the index lags: it needs more by now
	}
	err = q.changeJob(ctx, row, is, why{event: "job.state", component: "clock"}, func(tx *table.Tx) error { l.Guard(tx); return nil })
	switch {
	case fault.Is(err, fault.Lost) && !q.holds(ctx, c.Leases, l):
		return err // the lease passed on: what is free is no longer ours to say
	case fault.Is(err, fault.Lost):
		return nil // the job was changed meanwhile; the next tick sees it
	case err == nil:
		*free = left
	}
	return err
}

func (q *Queue) holds(ctx context.Context, s *lease.Store, l lease.Lease) bool {
	tx := q.Table.Begin(q.NewID())
	l.Guard(tx)
	return s.Now().Before(l.Until) && tx.Commit(ctx) == nil
}

// due is an item past its due time as the index shows it.
type due struct {
	table.Head
	ID string `dynamo:"id"`
}

// Sweep looks at the items that are past due, oldest first in each shard, and
// repairs them. It begins no repair after a time; one takes a quarter of the
// clock's time at most. Each minute another shard is the first.
func (q *Queue) Sweep(ctx context.Context, until time.Time) error {
	for i := range ingest.DueShards {
		shard := (int(q.Now().Unix()/60) + i) % ingest.DueShards
		var page []due
		to := dueRank(q.Now())
		_, err := q.Table.Page(ctx, table.Query{Index: "work", PK: ingest.DuePlace(shard), From: "0", To: to, Limit: q.Settings.SweepPage}, &page)
		if err != nil {
			return err
		}
		for _, d := range page {
			if !q.Now().Before(until) {
				return nil
			}
			var err error
			if d.PK == batchKey(d.ID).PK {
				err = q.repairBatch(ctx, d.ID)
			} else {
				err = q.repairJob(ctx, d.ID)
			}
			if err != nil && !fault.Is(err, fault.Lost) && !fault.Is(err, fault.NotFound) {
				q.Log.Warn("a repair failed; the next sweep tries again", "id", d.ID, "error", err)
			}
		}
	}
	return nil
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
		return q.clean(ctx, row, now)
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
	if err := q.changeJob(ctx, row, is, why{event: "job.repaired", component: "sweep", reason: "no progress by its due time"}); err != nil {
		return err
	}
	q.repaired(ctx, MachineJob, old)
	return nil
}

// clean removes the work files of a job that failed long ago and gives their
// space back. It holds the job's lease meanwhile, so that a requeue cannot begin
// to fetch what is being removed, and takes a quarter of the clock's time at most.
func (q *Queue) clean(ctx context.Context, row *Job, now time.Time) error {
	tx := q.Table.Begin(q.NewID())
	next := *row
	next.Take(tx.ID(), now, q.Rules.Timing.Clock+q.Rules.Timing.Margin)
	q.writeJob(tx, row, next)
	if err := tx.Commit(ctx); err != nil {
		return err
	}
	if err := q.lookStored(ctx, &row.Job); err != nil {
		return err
	}
	all, err := q.Clean(ctx, row.Job.ID, now.Add(q.Rules.Timing.Clock/4))
	if err != nil {
		return err
	}
	if !all { // it stays due: the next sweep goes on
		tx := q.Table.Begin(q.NewID())
		next := *row
		next.Release()
		q.writeJob(tx, row, next)
		return tx.Commit(ctx)
	}
	return q.changeJob(ctx, row, q.Rules.Cleaned(row.Job), why{event: "job.cleaned", component: "sweep", reason: "its work files were kept long enough"})
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

func (q *Queue) repaired(ctx context.Context, machine, old string) {
	q.Metric("Repairs", 1)
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
	if place, _ := row.Batch.Place(); place == "" || now.UnixMilli() < row.Due {
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
	if err := q.changeBatch(ctx, row, is, why{event: "batch.repaired", component: "sweep", reason: "no progress by its due time"}); err != nil {
		return err
	}
	q.repaired(ctx, MachineBatch, old)
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
			q.Metric("Repairs", 1) // nobody told the batch that its last job closed
		}
		return err
	}
	is := again.Batch
	is.Repairs++
	return q.changeBatch(ctx, again, q.Rules.DueBatch(is, q.Now()), why{})
}

// dueRank is the greatest rank in the index of what is due at now.
func dueRank(now time.Time) string { return ingest.DueRank(now.UnixMilli()) + "~" }
