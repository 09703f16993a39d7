package queue

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"archivist/pkg/ingest"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/table"
)

// itemTime is the time for one repair or clean-up; after twice that it is cancelled. In production,
// an eighth of 50 s.
func (q *Queue) itemTime() time.Duration { return q.Rules.Timing.Scheduler / 8 }

// clean removes the work files of a failed or deleted job and frees their space. Meanwhile
// it holds the job's lease, and the job cannot be requeued until all files are removed.
// First it postpones the job's due time, so that a failure does not delay other jobs.
func (q *Queue) clean(ctx context.Context, row *Job, now time.Time, reason string) error {
	tx := q.Table.Begin(q.NewID())
	next := *row
	next.Work, next.Cleaning = q.Rules.Postpone(row.Work, ingest.Stage{}, now), true
	next.Take(tx.ID(), now, q.Rules.Timing.Scheduler+q.Rules.Timing.Margin)
	q.writeJob(tx, row, next)
	if err := tx.Commit(ctx); err != nil {
		return err
	}

	// Before the files are removed, which are needed to find that out.
	if err := q.checkStored(ctx, &row.Job); err != nil {
		return err
	}

	// A failed job is recorded by its requeue or its deletion. Nothing follows the removal of a
	// deleted one.
	if row.State == ingest.Deleted {
		if err := q.recordStored(ctx, &row.Job, systemActor); err != nil {
			return err
		}
	}

	all, err := q.Clean(ctx, row.Job.ID, now.Add(q.itemTime()))
	if err != nil {
		return errors.Join(err, q.uncleanable(ctx, row, err))
	}

	if !all { // the next sweep continues
		tx := q.Table.Begin(q.NewID())
		next := *row
		next.Release()
		// It made progress: it is due at once.
		next.Due, next.Repairs = q.Now().UnixMilli(), 0
		q.writeJob(tx, row, next)
		return tx.Commit(ctx)
	}

	by := origin{event: "job.cleaned", component: "sweep", reason: reason}
	return q.changeJob(ctx, row, q.Rules.Cleaned(row.Job), by)
}

// uncleanable notes why the work files of a job could not be removed, so that explain names it.
// They are tried again when they are due.
func (q *Queue) uncleanable(ctx context.Context, row *Job, why error) error {
	tx := q.Table.Begin(q.NewID())
	next := *row
	next.Release()
	next.Blocked = ingest.Cut(CauseOf(why), ingest.MaxReason)
	q.writeJob(tx, row, next)
	return tx.Commit(ctx)
}

// whyClean is why the work files of a job are removed when they are due.
func (q *Queue) whyClean(row *Job, now time.Time) string {
	if row.State == ingest.Deleted {
		return "the job was deleted"
	}
	if now.Sub(time.UnixMilli(row.Entered)) < q.Rules.FailedRetention {
		return "a person requested it"
	}
	return "the retention period of failed jobs has ended"
}

// cleanEarly removes work files of failed jobs, the oldest first, because waiting jobs need
// their space: lack has the bytes that each of them lacks, in their order. It removes as many
// as the first of these jobs needs that can be helped so, and none if none can: what a
// requeue would have to fetch again is not removed in vain.
//
// It leaves out jobs younger than FailedKeep, and what is due soon: that is the sweep's, and
// there are all whose clean-up failed before, so that these do not stand in the way. In the
// same place of the index are batches whose rows will be removed and jobs that were just
// deleted: there may be many.
func (q *Queue) cleanEarly(ctx context.Context, lack []int64, until time.Time) error {
	failed, err := q.cleanable(ctx)
	if err != nil {
		return err
	}

	all := int64(0)
	for _, w := range failed {
		all = ingest.AddSizes(all, w.Space)
	}

	helped := slices.IndexFunc(lack, func(bytes int64) bool { return bytes <= all })
	if helped < 0 {
		return nil
	}

	needed := lack[helped]
	for tried := 0; tried < min(len(failed), earlyJobs) && needed > 0 && q.Now().Before(until); tried++ {
		if w := failed[tried]; q.cleanJobEarly(ctx, w.ID) {
			needed -= w.Space
		}
	}
	return nil
}

// cleanable are the failed jobs whose work files may be removed early, the oldest first.
func (q *Queue) cleanable(ctx context.Context) (found []candidate, err error) {
	// The due time of a failed job is FailedRetention after its failure, so a range of due times is
	// one of ages.
	query := table.Query{
		Index: "work",
		PK:    ingest.WorkCleanUp,
		From:  dueRank(q.Now().Add(q.Rules.LongestPostponed(ingest.Stage{}))),
		To:    dueRank(q.Now().Add(q.Rules.FailedRetention - q.Settings.FailedKeep)),
		Limit: earlyPage,
	}
	if query.From > query.To {
		return nil, nil
	}

	for range earlyPages {
		var page []candidate
		next, err := q.Table.Page(ctx, query, &page)
		if err != nil {
			return nil, err
		}

		for _, w := range page {
			if w.PK == jobKey(w.ID).PK && q.kept(w.Entered) {
				found = append(found, w)
			}
		}

		if next == "" {
			break
		}

		query.Cursor = next
	}
	return found, nil
}

// cleanJobEarly is cleanEarly for one job. It reports whether the space is free.
func (q *Queue) cleanJobEarly(ctx context.Context, id string) bool {
	now := q.Now()
	row, err := q.Job(ctx, id)
	if err == nil && !q.mayCleanEarly(row, now) {
		return false
	}

	if err == nil {
		err = q.clean(ctx, row, now, "work files removed early: waiting jobs need the space")
	}
	if err != nil && !fault.Is(err, fault.Stale) && !fault.Is(err, fault.NotFound) {
		q.Log.Error("a failed job's space could not be freed; it is tried again later", "job", id,
			"error", err)
		q.Metric(RepairErrors, 1)
	}
	return err == nil && !row.HasSpace
}

// kept reports whether a job that failed at a time has kept its work files long enough.
func (q *Queue) kept(since int64) bool {
	return q.Now().Sub(time.UnixMilli(since)) >= q.Settings.FailedKeep
}

// mayCleanEarly reports whether the work files of a job can be removed early. Repairs are not 0 of
// one whose clean-up has begun or failed.
func (q *Queue) mayCleanEarly(row *Job, now time.Time) bool {
	return row.State == ingest.Failed && row.HasSpace && !row.Live(now) && row.Repairs == 0 &&
		q.kept(row.Entered)
}

// Limits of what one tick checks for space to free: pages of the index, and failed jobs.
const (
	earlyPage  = 500
	earlyPages = 10
	earlyJobs  = 20
)

// decideCleanUp removes the work files of a failed job now, not after their retention. The
// sweep does it.
func decideCleanUp(_ context.Context, q *Queue, row *Job, a ingest.Action) (d decision, err error) {
	job := row.Job
	d.next = job
	switch {
	case job.State.Open():
		return d, cannot(a, string(job.State), "Failed", job.State.Becomes(),
			"It needs its work files")
	case !job.Uncleaned():
		d.unchanged, d.summary = true, fmt.Sprintf("job %s has no work files", job.ID)
		return d, nil
	}

	d.next = q.Rules.CleanUp(job, q.Now())
	if job.State == ingest.Deleted || job.Cleaning || d.next.Due == job.Due {
		d.unchanged, d.summary = true,
			fmt.Sprintf("the work files of job %s are already being removed", job.ID)
		return d, nil
	}

	d.by = origin{event: "job.cleaning", actor: a.Actor, component: "admin", reason: a.Reason}
	d.summary = fmt.Sprintf("the work files of job %s, %s, are removed after %s", job.ID,
		ingest.Bytes(job.SpaceNeeded),
		ingest.Timestamp(d.next.Due))

	d.warnings = []string{fmt.Sprintf("a requeue of job %s then starts from the beginning", job.ID)}
	d.then = func(ctx context.Context) { q.wake(ctx, []ingest.Wake{{Kind: ingest.LookGates}}) }
	return d, nil
}

// decideCleanUpBatch removes the rows of a completed batch now, not after their retention.
// For a failed batch it names the operation that removes the work files of its jobs.
func decideCleanUpBatch(ctx context.Context, q *Queue, row *Batch,
	a ingest.Action) (d batchDecision, err error) {
	batch := row.Batch
	d.next = batch
	switch batch.State {
	case ingest.BatchDeleted:
		d.unchanged, d.summary = true, fmt.Sprintf("batch %s is already Deleted", batch.ID)
		return d, nil
	case ingest.BatchFailed:
		d.unchanged = true
		d.summary = fmt.Sprintf("the rows of batch %s are kept; its failed jobs may have work files", batch.ID)
		d.offers = &ingest.Bulk{Name: ingest.ActCleanUp,
			Filter: ingest.Filter{Batch: batch.ID, State: ingest.Failed}}
		return d, nil
	case ingest.BatchCompleted:
	default:
		return d, cannot(a, string(batch.State), "Completed or Failed", batch.State.Becomes(),
			"Wait for its report")
	}

	d.next = q.removed(batch, a)
	d.by = origin{event: "batch.state", actor: a.Actor, component: "admin", reason: a.Reason}
	d.summary = fmt.Sprintf("the rows of batch %s and of %s are removed; their history is kept", batch.ID,
		ingest.Counted(batch.Unpacked, "job"))
	d.warnings = []string{"its jobs and their receipts can then no longer be listed"}
	return d, nil
}
