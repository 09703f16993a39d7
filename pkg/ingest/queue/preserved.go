package queue

import (
	"context"
	"time"

	"archivist/pkg/ingest"
	"archivist/pkg/kernel/fault"
)

// Preserved records on a failed or deleted job that its version is committed: its worker
// committed it after it had lost the job. A job that has a version already, or that is in
// another state, stays unchanged. The clean-up of a deleted job records the version.
func (q *Queue) Preserved(ctx context.Context, id, ark string, version int) error {
	return q.Table.Again(ctx, "job "+id, func() error {
		row, err := q.Job(ctx, id)
		if fault.Is(err, fault.NotFound) {
			return nil
		}

		if err != nil || !isGivenUp(row.State) || row.ObjectVersion != 0 {
			return err
		}

		next := row.Job
		next.Primary = ark // it may have been minted after the time to which the table was restored
		next = q.Rules.Preserved(next, version)
		return q.changeJob(ctx, row, next, origin{
			event:     "job.preserved",
			component: "store",
			reason:    next.Message,
		})
	})
}

// isGivenUp reports whether no worker finishes a job: one of any other state records its version by
// itself.
func isGivenUp(s ingest.State) bool { return s == ingest.Failed || s == ingest.Deleted }

// checkStored checks the storage once more for a job that failed at Storing: its worker may
// have committed the version after an operator failed the job, and then died. After the
// work files are removed that can no longer be found out.
func (q *Queue) checkStored(ctx context.Context, j *ingest.Job) error {
	if q.Stored == nil || j.LastSuccessful != ingest.Processing || j.ObjectVersion != 0 {
		return nil
	}
	found := *j
	if err := q.Stored(ctx, &found); err != nil || found.ObjectVersion == 0 {
		return err
	}
	*j = q.Rules.Preserved(*j, found.ObjectVersion)
	return nil
}

// recordStored records the version that a job has stored, before nothing refers to it any
// more. A local id that belongs to another object cannot be recorded; the rest is.
func (q *Queue) recordStored(ctx context.Context, j *ingest.Job, actor string) error {
	if q.Record == nil || !j.Unrecorded() {
		return nil
	}
	err := q.Record(ctx, j.Primary, actor)
	if fault.Is(err, fault.Conflict) {
		q.Log.Warn("not all rows of a stored version could be written", "job", j.ID, "ark",
			j.Primary, "error", err)
		return nil
	}
	return err
}

// JobEnded reports whether nothing writes for a job any more: it has ended or waits, and
// for so long that a worker that lost it has reached the time-out of its function. A job
// whose row was removed has ended. Without a row there is nothing that could be requeued.
func (q *Queue) JobEnded(ctx context.Context, id string) (bool, error) {
	row, err := q.Job(ctx, id)
	if fault.Is(err, fault.NotFound) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	return !row.Running() && q.Ended(row.Entered), nil
}

// Ended reports whether every worker that ran at a time must have ended. at is in milliseconds
// since 1970. The time is the grace of a long stage: longer than any time-out of a function, and
// than the return of its message.
func (q *Queue) Ended(at int64) bool {
	quiet := q.Rules.Timing.Times(ingest.Stage{Long: true}).Grace
	return q.Now().Sub(time.UnixMilli(at)) >= quiet
}
