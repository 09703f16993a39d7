package queue

import (
	"archivist/pkg/fault"
	"archivist/pkg/ingest"
	"context"
	"time"
)

// Preserved notes on a failed job that its version is committed: its worker did so
// after the job was taken from it. A job that says so already, or goes on, is left
// as it is.
func (q *Queue) Preserved(ctx context.Context, id, ark string, version int) error {
	for range actTries {
		row, err := q.Job(ctx, id)
		if fault.Is(err, fault.NotFound) {
			return nil
		}
		if err != nil || row.State != ingest.Failed || row.ObjectVersion != 0 {
			return err
		}
		is := row.Job
		is.Primary = ark // it may have been minted after the moment to which the table was restored
		is = q.Rules.Preserved(is, version)
		err = q.changeJob(ctx, row, is, why{event: "job.preserved", component: "store", reason: is.Message})
		if !fault.Is(err, fault.Stale) {
			return err
		}
	}
	return busy(id)
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

// tooLate is what a worker has to say of a job that was taken from it: whether its
// version is committed.
func (q *Queue) tooLate(ctx context.Context, h *Claim) error {
	if h.Job.ObjectVersion == 0 || h.Job.NoChange {
		return nil
	}
	return q.Preserved(ctx, h.Job.ID, h.Job.Primary, h.Job.ObjectVersion)
}

// JobEnded reports whether a job writes nothing any more: it has ended, or waits, and
// for so long that a worker which it was taken from has reached the time-out of its
// function. A job that is gone is over.
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

// Ended reports whether every worker that was at work at a time must have ended.
func (q *Queue) Ended(at int64) bool {
	quiet := q.Rules.Timing.Times(ingest.Stage{Long: true}).Grace
	return q.Now().Sub(time.UnixMilli(at)) >= quiet
}
