package ingest

import (
	"fmt"
	"time"
)

// Deleted is a job that a person has deleted, or cancelled before it started. Its work
// files, if it has any, are removed as soon as no worker of it can be late.
func (r Rules) Deleted(j Job, reason string, now time.Time) Job {
	// Before enter, which changes Entered: a worker can be late since the job left its former
	// state.
	removal := r.CleanAt(&j, now)
	j.Checkpoint, j.Done, j.Cleaning, j.Hold = "", 0, false, nil
	j = release(r.enter(j, Deleted, now))
	j.Message = failure(j, reason)
	if j.HasSpace {
		j.Due = removal
	}
	return j
}

// CleanUp is a failed job whose work files are removed now, not at the end of
// FailedRetention. It is never later than it was due already.
func (r Rules) CleanUp(j Job, now time.Time) Job {
	j.Due, j.Repairs = min(j.Due, r.CleanAt(&j, now)), 0
	return j
}

// CleanAt is when the work files of a failed job can be removed, in milliseconds: at now,
// but not before every worker that lost the job has reached its time-out. Such a worker may
// still write work files, or store the job's version, which is found out from these files.
func (r Rules) CleanAt(j *Job, now time.Time) int64 {
	return max(now.UnixMilli(), j.Entered+r.Timing.Times(Stage{Long: true}).Grace.Milliseconds())
}

// Unrecorded reports whether the job's version is stored, but perhaps not yet recorded in
// the inventory. Record does that, after Storing.
func (j *Job) Unrecorded() bool {
	return j.ObjectVersion > 0 &&
		!isAfter(j.LastSuccessful, Storing)
}

// Decision is what a person has decided about a batch.
type Decision struct {
	Reason string `dynamo:"reason"`
	Actor  string `dynamo:"actor"`
	At     int64  `dynamo:"at_ms"` // milliseconds
	// Operation is the id of the bulk operation that carries it out, "" if there is none.
	Operation string `dynamo:"operation_id,omitempty"`
}

// String returns it as the reason of a change: "deleted by ada: a test" for done "deleted".
func (d Decision) String(done string) string {
	return fmt.Sprintf("%s by %s: %s", done, d.Actor, d.Reason)
}
