package console

import "time"

// How often a page asks for what has changed, in seconds: while something moves, and while it rests. While it gets the
// same answer, assets/console.js lets twice as much time pass after each, at most unchanged.
const (
	whileMoving  = 2
	whileResting = 30
	unchanged    = 300
)

// every is how often a page is asked for again, in seconds; 0 is never.
func (is view) every() int {
	switch {
	case is.Still:
		return 0
	case is.Moving:
		return whileMoving
	}
	return whileResting
}

// Asked is how many times a page that stays open for a time, and does not change, asks for what has changed; every is
// how often it would, in seconds, as the page says. It is the rule of assets/console.js: a tick before the end of the
// pause is left out.
func Asked(every int, open time.Duration) (times int) {
	pause, next := whileMoving, 0
	for tick := every; every > 0 && tick <= int(open.Seconds()); tick += every {
		if tick < next {
			continue
		}
		times++
		pause = min(2*pause, unchanged)
		next = tick + pause
	}
	return times
}
