package queue

import (
	"context"
	"time"
)

// The system's own metrics. They are put only when there is something to tell.
const (
	Repairs       = "Repairs"       // repairs by the sweep
	RepairErrors  = "RepairErrors"  // repairs and clean-ups that failed
	GateErrors    = "GateErrors"    // jobs that could not be let through their gate
	MissingRows   = "MissingRows"   // rows of jobs that were not there
	MailFailures  = "MailFailures"  // tries of mails that failed
	FailedJobs    = "FailedJobs"    // jobs that became Failed
	Crashes       = "Crashes"       // workers that ended without giving their lease back
	Stuck         = "Stuck"         // repairs of items that do not go on by themselves
	Refused       = "Refused"       // calls that AWS refused for want of a permission
	OldestWaiting = "OldestWaiting" // seconds
	SpaceUsed     = "SpaceUsed"     // percent
)

// Measure puts the metrics that say how the queue is, as opposed to those that count
// what happened: how long the oldest job has waited, in seconds, and how much of the
// work space is granted, in percent. What is 0 is not put: an idle system has no
// metrics to pay for.
func (q *Queue) Measure(ctx context.Context) error {
	oldest, err := q.oldest(ctx)
	if err != nil {
		return err
	}
	if oldest.ID != "" {
		q.Metric(OldestWaiting, max(1, q.Now().Sub(time.UnixMilli(oldest.Entered)).Seconds()))
	}
	free, err := q.free(ctx)
	if err != nil {
		return err
	}
	if used := free.Capacity - free.Space; used > 0 {
		q.Metric(SpaceUsed, float64(used)/float64(free.Capacity)*100)
	}
	return nil
}
