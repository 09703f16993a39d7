package states

import (
	"math"
	"math/rand/v2"
	"time"
)

// attempts is how often a state is tried again. The default is the language's.
func (r retrier) attempts() int {
	if r.MaxAttempts == nil {
		return 3
	}
	return *r.MaxAttempts
}

// longest is the longest delay: a year, which is also the longest that an execution may take.
const longest = 365 * 24 * time.Hour

// delay is the time before the state is tried again, after it was already tried again n times.
// The interval is a second by default, and doubles; jitter FULL takes any time up to it.
func (r retrier) delay(n int) time.Duration {
	interval, rate := 1.0, 2.0
	if r.IntervalSeconds != nil {
		interval = *r.IntervalSeconds
	}

	if r.BackoffRate != nil {
		rate = *r.BackoffRate
	}

	seconds := min(interval*math.Pow(rate, float64(n)), longest.Seconds())
	if r.MaxDelaySeconds != nil {
		seconds = min(seconds, *r.MaxDelaySeconds)
	}

	if r.JitterStrategy == "FULL" {
		seconds *= rand.Float64()
	}
	return time.Duration(seconds * float64(time.Second))
}
