package research

import (
	"time"

	"archivist/pkg/kernel/fault"
)

// Times are the durations of a deployment. They are the same for all its projects.
type Times struct {
	Lease     time.Duration // of a work item, from its assignment
	Queue     time.Duration // how long a work item stays in the queue of pending work
	Extension time.Duration // a live lease lasts at least so long after a result
	Most      time.Duration // of a lease, with all extensions
	Presence  time.Duration // a researcher that was not heard of for so long is absent
	Renewal   time.Duration // how often a researcher says that it is present
	Pass      time.Duration // the lease of one pass; its function has a shorter time-out
}

// Default are the times of a deployment that sets none. A lease is long enough for a recording of
// several hours with 100 clips, and a lost researcher costs one lease. The queue's time is short,
// so that a surplus of work items ends long before the leases. The presence outlasts two renewals
// that are lost or late, so that one lost request does not change how much work is handed out.
var Default = Times{
	Lease:     2 * time.Hour,
	Queue:     30 * time.Minute,
	Extension: 30 * time.Minute,
	Most:      12 * time.Hour,
	Presence:  90 * time.Second,
	Renewal:   30 * time.Second,
	Pass:      90 * time.Second,
}

// Check returns an Invalid if the times do not go together. A work item must leave the queue before
// its lease ends (source: the requirement, "Publishing a Work-Item"): else a message could be
// accepted whose pairs are assigned to another researcher. The template checks the same when it is
// made.
func (t Times) Check() error {
	switch {
	// The least that SQS takes ("SetQueueAttributes", MessageRetentionPeriod).
	case t.Queue < time.Minute:
		return fault.New(fault.Invalid,
			"the time to live of pending work is %s; it must be at least a minute", t.Queue)
	case t.Queue >= t.Lease:
		return fault.New(fault.Invalid,
			"the time to live of pending work (%s) must be shorter than the lease (%s)",
			t.Queue, t.Lease)
	case t.Extension <= 0 || t.Most < t.Lease:
		return fault.New(fault.Invalid,
			"the longest lease (%s) must not be shorter than the lease (%s), and the "+
				"extension (%s) must be positive", t.Most, t.Lease, t.Extension)
	case t.Renewal <= 0 || t.Presence < 2*t.Renewal:
		return fault.New(fault.Invalid, "the presence (%s) must last at least two renewals (%s)",
			t.Presence, t.Renewal)
	case t.Pass <= 0:
		return fault.New(fault.Invalid, "a pass of the assigner (%s) must take some time", t.Pass)
	}
	return nil
}
