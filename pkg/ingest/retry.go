package ingest

import "time"

// StuckRepairs is the number of repairs without progress after which an item is stuck.
const StuckRepairs = 3

// Stuck reports whether an item that was just repaired will not continue by itself: the
// cause is known, or earlier repairs did not help.
func (w *Work) Stuck() bool { return w.Blocked != "" || w.Repairs >= StuckRepairs }

// Repair is the item after the sweep gave it a new execution.
func (r Rules) Repair(w Work, stage Stage, now time.Time) Work {
	w.Exec++
	return r.Postpone(w, stage, now)
}

// Postpone is the item with a later due time. The delay grows with each repair since its
// last progress.
func (r Rules) Postpone(w Work, stage Stage, now time.Time) Work {
	w.Repairs++
	w.Due = now.Add(backoff(r.Timing, r.Timing.Times(stage), w.Repairs)).UnixMilli()
	return w
}

// LongestPostponed is the longest time by which Postpone postpones a stage's item.
func (r Rules) LongestPostponed(stage Stage) time.Duration {
	return max(r.Timing.MaxBackoff, r.Timing.Times(stage).Grace)
}

// backoff is the delay until the sweep checks an item again, after so many repairs. It is the grace
// without a repair, and twice as long after each.
func backoff(t Timing, c Times, repairs int) time.Duration {
	d := c.Grace
	for range repairs {
		d *= 2
		if d >= t.MaxBackoff {
			return max(t.MaxBackoff, c.Grace)
		}
	}
	return d
}

// RetryWait is the longest random wait before a stage is tried again, after so many tries.
// It doubles up to a minute, or up to the time-out of a short stage.
func (t Timing) RetryWait(tries int) time.Duration {
	return min(time.Second<<min(tries, 6), t.Short)
}
