package sim

import (
	"errors"
	"fmt"
	"hash/fnv"
	"strings"
	"time"

	"archivist/pkg/table/tabletest"
)

// trouble is the fault of one call.
type trouble int

const (
	none trouble = iota
	crashBefore
	crashAfter
	lostAnswer
	repeated
	repeatedLate
	slow
	throttled
	conflicted
	mixed
)

func (t trouble) String() string {
	return []string{"", "CRASHES BEFORE", "CRASHES AFTER", "ANSWER LOST", "REPEATED", "REPEATED LATE", "SLOW",
		"THROTTLED", "CONFLICT", "MIXED REASONS"}[t]
}

var (
	errDead = errors.New("sim: this worker is dead")
	errLost = errors.New("sim: the answer was lost")
)

// do makes a call of an actor: every call goes through it. It waits for its turn, and gets
// the fault that the seed has for it.
func (a *actor) do(op string, call func() error) error {
	if a.over() {
		return errDead
	}
	if a.w.s.latency > 0 && !a.w.calm && op != "awake" {
		a.w.sleep(a.latency(op))
	}
	p := &parked{actor: a, op: op, goOn: make(chan trouble)}
	a.w.mu.Lock()
	a.w.waiting = append(a.w.waiting, p)
	a.w.mu.Unlock()
	a.w.signal()
	t := <-p.goOn
	if a.over() {
		return errDead
	}
	if t != none {
		a.met++
		a.w.check.met(t.String())
		if a.ticks {
			a.w.check.tick.troubled = true // it may give up a job, and continues with the others
		}
	}
	return a.meet(t, op, call)
}

// latency of a call. It follows from the call alone, so that calls of one actor at the same
// time replay.
func (a *actor) latency(op string) time.Duration {
	h := fnv.New64a()
	fmt.Fprintln(h, a.name, op, time.Now().UnixNano())
	return time.Duration(h.Sum64() % uint64(a.w.s.latency))
}

// over reports whether the process has died, or its time has ended.
func (a *actor) over() bool {
	late := !a.until.IsZero() && !time.Now().Before(a.until)
	if late && a.dead.CompareAndSwap(false, true) {
		a.w.check.met("cut off at its time-out")
	}
	return a.dead.Load()
}

func (a *actor) meet(t trouble, op string, call func() error) error {
	switch t {
	case crashBefore:
		a.dead.Store(true)
		return errDead
	case crashAfter:
		err := call()
		a.w.log("  (effect %v)", err)
		a.dead.Store(true)
		return errDead
	case lostAnswer:
		_ = call()
		return errLost
	case repeated:
		_ = call()
		return call()
	case repeatedLate:
		a.w.late = append(a.w.late, call)
		return call()
	case slow:
		a.w.sleep([]time.Duration{3 * time.Second, timing.Short + 10*time.Second,
			timing.Long + timing.Return}[a.rng.IntN(3)])
		return a.do(op+" (slow)", call)
	case throttled:
		return tabletest.Throttled()
	case conflicted:
		return tabletest.Conflicted()
	case mixed:
		return tabletest.Mixed(call(), func() bool { return a.rng.IntN(2) == 0 })
	}
	return call()
}

// pick is the fault of the next call.
func (w *world) pick(p *parked) trouble {
	rate := w.s.rate
	if w.s.late && !w.check.late {
		rate = 2
	}
	if w.calm || w.rng.IntN(100) >= rate || p.op == "awake" {
		return none
	}
	if p.op == "clean" {
		// a clean-up is cancelled before its lease ends
		return []trouble{none, crashBefore, crashAfter, throttled}[w.rng.IntN(4)]
	}
	read := strings.HasPrefix(p.op, "GetItem") || p.op == "Query" || strings.HasPrefix(p.op, "look up") ||
		strings.HasPrefix(p.op, "read") || strings.HasPrefix(p.op, "GET") || strings.HasPrefix(p.op, "ask")
	switch n := w.rng.IntN(11); {
	case n == 0:
		return crashBefore
	case n == 1:
		return crashAfter
	case n == 2 && !read:
		return lostAnswer
	case n == 3 && !read:
		return repeated
	case n == 4 && !read:
		return repeatedLate
	case n <= 6:
		return slow
	case n == 7:
		return throttled
	case n == 8 && p.op == "TransactWriteItems":
		return conflicted
	case n >= 9 && p.op == "TransactWriteItems":
		return mixed
	}
	return none
}

// throttles refuses calls to the partitions that are throttled now.
func (w *world) throttles(partition string) error {
	hot := w.s.refuses == refusesRows && w.calm && partition == "JOB#"+w.check.oldest
	if hot || w.throttling() && strings.HasPrefix(partition, w.s.throttled) {
		w.check.tick.troubled = true // the running tick may give up a job, and continues with the others
		return tabletest.Throttled()
	}
	return nil
}

func (w *world) throttling() bool {
	return w.s.throttled != "" && !w.calm && w.s.from <= w.calls && w.calls < w.s.to
}
