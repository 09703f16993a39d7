package ingest

import "time"

// Rules are the settings of the rules.
type Rules struct {
	Timing Timing
	// Aging, if not 0, is how long a job waits until that counts as one step of priority,
	// so that jobs of low priority do not starve.
	Aging time.Duration
	// FailedRetention is how long a failed job keeps its work files and their
	// space, so that a requeue need not fetch again.
	FailedRetention time.Duration
	// Retention is how long the rows of a Completed batch and its jobs are kept; 0 is
	// without end. Their events stay.
	Retention time.Duration
}

func (r Rules) grace(stage Stage) int64 { return r.Timing.Times(stage).Grace.Milliseconds() }
