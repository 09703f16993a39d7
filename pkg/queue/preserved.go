package queue

import (
	"context"
	"time"

	"archivist/pkg/fault"
	"archivist/pkg/ingest"
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
		next := row.Job
		next.Primary = ark // it may have been minted after the moment to which the table was restored
		next = q.Rules.Preserved(next, version)
		err = q.changeJob(ctx, row, next, origin{event: "job.preserved", component: "store", reason: next.Message})
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
	found := *j
	if err := q.Stored(ctx, &found); err != nil || found.ObjectVersion == 0 {
		return err
	}
	*j = q.Rules.Preserved(*j, found.ObjectVersion)
	return nil
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
