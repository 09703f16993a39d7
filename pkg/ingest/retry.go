package ingest

import "time"

// StuckRepairs is how many repairs in a row make an item stuck.
const StuckRepairs = 3

// Repair is the item after the sweep gave it a new execution.
func (r Rules) Repair(w Work, stage Stage, now time.Time) Work {
	w.Exec++
	return r.Postpone(w, stage, now)
}

// Postpone is the item whose next look by the sweep is later, the more so the
// more looks there were since its last progress.
func (r Rules) Postpone(w Work, stage Stage, now time.Time) Work {
	w.Repairs++
	w.Due = now.Add(backoff(r.Timing, r.Timing.Times(stage), w.Repairs)).UnixMilli()
	return w
}

// backoff is when the sweep looks again after the nth repair.
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

// RetryWait bounds the random wait before a stage is tried again, after so many tries:
// it doubles up to a minute, or to the time-out of a short stage.
func (t Timing) RetryWait(tries int) time.Duration {
	return min(time.Second<<min(tries, 6), t.Short)
}
