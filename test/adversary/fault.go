package adversary

import "errors"

// Fault is the fault of one call.
type Fault int

// The faults.
const (
	None Fault = iota
	CrashBefore
	CrashAfter
	LostAnswer
	Repeated
	RepeatedLate
	Slow
	Throttled
	Conflicted
	Mixed
)

// String returns the fault's name in histories.
func (t Fault) String() string {
	return []string{"", "CRASHES BEFORE", "CRASHES AFTER", "ANSWER LOST", "REPEATED", "REPEATED LATE", "SLOW",
		"THROTTLED", "CONFLICT", "MIXED REASONS"}[t]
}

// Throttling is a while in which requests to some partitions are throttled.
type Throttling struct {
	Of        string // how the names of the partitions begin; "": of none
	From, For int    // calls of the world: after how many it begins, and how many it lasts
}

// Errors of calls with faults.
var (
	ErrDead = errors.New("sim: this worker is dead")
	ErrLost = errors.New("sim: the answer was lost")
)

// drawn are the faults of which each call with a fault gets one.
var drawn = [...]Fault{CrashBefore, CrashAfter, LostAnswer, Repeated, RepeatedLate, Slow, Slow, Throttled, Conflicted,
	Mixed, Mixed}

// effect reports whether a fault is one of calls with an effect only.
func (t Fault) effect() bool { return t == LostAnswer || t == Repeated || t == RepeatedLate }

// transaction reports whether a fault is one of transactions only.
func (t Fault) transaction() bool { return t == Conflicted || t == Mixed }
