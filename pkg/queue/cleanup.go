package queue

import (
	"context"
	"time"

	"archivist/pkg/fault"
	"archivist/pkg/ingest"
	"archivist/pkg/table"
)

// clean removes the work files of a failed job and frees their space. Meanwhile it holds
// the job's lease, and the job cannot be requeued until all files are removed. First it
// postpones the job's due time, so that a failure does not delay other jobs.
func (q *Queue) clean(ctx context.Context, row *Job, now time.Time, reason string) error {
	tx := q.Table.Begin(q.NewID())
	next := *row
	next.Work, next.Cleaning = q.Rules.Postpone(row.Work, ingest.Stage{}, now), true
	next.Take(tx.ID(), now, q.Rules.Timing.Scheduler+q.Rules.Timing.Margin)
	q.writeJob(tx, row, next)
	if err := tx.Commit(ctx); err != nil {
		return err
	}

	if err := q.checkStored(ctx, &row.Job); err != nil {
		return err
	}
	all, err := q.Clean(ctx, row.Job.ID, now.Add(q.itemTime()))
	if err != nil {
		return err
	}
	if !all { // the next sweep continues
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

// cleanEarly removes work files of failed jobs, the oldest first, because a waiting job
// needs their space. It leaves out jobs younger than FailedKeep, and those whose clean-up
// failed before: the sweep retries these at their due time.
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

// earlyPage is the number of failed jobs that one tick checks for space to free.
const earlyPage = 20
