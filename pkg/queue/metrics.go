package queue

import (
	"context"
	"time"
)

// The system's own metrics. They are put only when they are not 0.
const (
	Repairs       = "Repairs"       // repairs by the sweep
	RepairErrors  = "RepairErrors"  // repairs and clean-ups that failed
	GateErrors    = "GateErrors"    // jobs that could not be admitted because of an error
	MissingRows   = "MissingRows"   // reservation rows of jobs that were missing
	MailFailures  = "MailFailures"  // failed tries of mails
	FailedJobs    = "FailedJobs"    // jobs that became Failed
	Crashes       = "Crashes"       // workers that ended without releasing their lease
	Stuck         = "Stuck"         // repairs of items that do not continue by themselves
	Refused       = "Refused"       // calls that AWS refused because a permission is missing
	OldestWaiting = "OldestWaiting" // seconds
	SpaceUsed     = "SpaceUsed"     // percent
)

// Measure puts the metrics of the queue's current state; the others count events. They are
// how long the oldest job has waited, in seconds, and how much of the work space is
// granted, in percent. A 0 is not put, so that an idle system does not pay for metrics.
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
