package adversary

import (
	"errors"
	"strings"

	"archivist/pkg/kernel/table/tabletest"
)

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

// Throttles reports whether requests to some partitions are throttled now.
func (w *World) Throttles() bool {
	t := w.Throttling
	return t.Of != "" && !w.Calm && t.From <= w.Calls && w.Calls < t.From+t.For
}

// Throttle is the error of a request to a partition, nil if that is not throttled now.
func (w *World) Throttle(partition string) error {
	if w.Throttles() && strings.HasPrefix(partition, w.Throttling.Of) {
		return tabletest.Throttled()
	}
	return nil
}

// Errors of calls with faults.
var (
	ErrDead = errors.New("sim: this worker is dead")
	ErrLost = errors.New("sim: the answer was lost")
)

// meet makes a call with its fault.
func (a *Actor) meet(t Fault, op string, call func() error) error {
	switch t {
	case CrashBefore:
		a.dead.Store(true)
		return ErrDead
	case CrashAfter:
		err := call()
		a.World.Log("  (effect %v)", err)
		a.dead.Store(true)
		return ErrDead
	case LostAnswer:
		_ = call()
		return ErrLost
	case Repeated:
		_ = call()
		return call()
	case RepeatedLate:
		a.World.late = append(a.World.late, call)
		return call()
	case Slow:
		a.pass(a.World.Delays[a.Rng.IntN(3)])
		return a.Do(op+" (slow)", call)
	case Throttled:
		return tabletest.Throttled()
	case Conflicted:
		return tabletest.Conflicted()
	case Mixed:
		return tabletest.Mixed(call(), func() bool { return a.Rng.IntN(2) == 0 })
	}
	return call()
}

// reads reports whether a call has no effect.
func (w *World) reads(op string) bool {
	if strings.HasPrefix(op, "GetItem") || strings.HasPrefix(op, "BatchGetItem") || op == "Query" {
		return true
	}
	for _, prefix := range w.Reads {
		if strings.HasPrefix(op, prefix) {
			return true
		}
	}
	return false
}

// pick is the fault of the next call.
func (w *World) pick(op string) Fault {
	rate := w.Rate()
	if w.Calm || w.Rng.IntN(100) >= rate || op == awake {
		return None
	}
	if w.Faults != nil {
		if of, own := w.Faults(op); own {
			return of[w.Rng.IntN(len(of))]
		}
	}
	switch f := drawn[w.Rng.IntN(len(drawn))]; {
	case f.effect() && w.reads(op):
		return Slow
	case f.transaction() && op != "TransactWriteItems":
		return None
	default:
		return f
	}
}

// drawn are the faults of which each call with a fault gets one.
var drawn = [...]Fault{CrashBefore, CrashAfter, LostAnswer, Repeated, RepeatedLate, Slow, Slow, Throttled, Conflicted,
	Mixed, Mixed}

// effect reports whether a fault is one of calls with an effect only.
func (t Fault) effect() bool { return t == LostAnswer || t == Repeated || t == RepeatedLate }

// transaction reports whether a fault is one of transactions only.
func (t Fault) transaction() bool { return t == Conflicted || t == Mixed }
