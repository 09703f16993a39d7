package queue

import (
	"context"
	"time"

	"archivist/pkg/fault"
	"archivist/pkg/ingest"
	"archivist/pkg/table"
)

// clean removes the work files of a failed job and frees their space.
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
	by := origin{event: "job.cleaned", component: "sweep", reason: reason}
	return q.changeJob(ctx, row, q.Rules.Cleaned(row.Job), by)
}

// cleanEarly removes work files of jobs that failed some time ago, the oldest
// first, because a waiting job needs their space. One whose removal failed before
// has its own time.
func (q *Queue) cleanEarly(ctx context.Context, until time.Time) error {
	now := q.Now()
	var page []due
	to := dueRank(now.Add(q.Rules.FailedRetention - q.Settings.FailedKeep))
	query := table.Query{Index: "work", PK: ingest.WorkCleanUp, From: "0", To: to, Limit: earlyPage}
	if _, err := q.Table.Page(ctx, query, &page); err != nil {
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
		if err == nil && q.mayCleanEarly(row, now) {
			err = q.clean(ctx, row, now, "work files removed early: waiting jobs need the space")
		}
		if err != nil && !fault.Is(err, fault.Stale) && !fault.Is(err, fault.NotFound) {
			q.Log.Error("a failed job's space could not be freed; it is tried again later", "job", d.ID, "error", err)
			q.Metric(RepairErrors, 1)
		}
	}
	return nil
}

// mayCleanEarly reports whether a failed job has kept its work files long enough.
func (q *Queue) mayCleanEarly(row *Job, now time.Time) bool {
	kept := now.Sub(time.UnixMilli(row.Entered))
	return row.Uncleaned() && !row.Live(now) && row.Repairs == 0 && kept >= q.Settings.FailedKeep
}

// earlyPage is how many failed jobs one tick looks at for their space.
const earlyPage = 20
