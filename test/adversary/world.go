// Package adversary runs processes against faults, for simulations: each call of a process
// may crash, be repeated, get lost or arrive late, in an order that a seed decides.
//
// Every process is an Actor, a goroutine in a bubble (testing/synctest) with a time of its
// own. Each of its calls waits in Do, and World.Run picks the next call and its fault. So a
// seed replays exactly.
package adversary

import (
	"cmp"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing/synctest"
	"time"

	"archivist/pkg/kernel/table/tabletest"
)

// parked is a call that waits for its turn.
type parked struct {
	actor *Actor
	op    string
	goOn  chan Fault
}

// World is what the actors of one seed share.
type World struct {
	Rng     *rand.Rand
	Calm    bool             // faults have stopped
	Latency time.Duration    // of a call, at most; 0: calls take no time
	Delays  [3]time.Duration // how long a call with the fault Slow takes
	Rate    func() int       // percentage of calls with a fault
	Reads   []string         // how the names of calls without an effect begin, beside those of the table
	CutOff  bool             // functions are ended at their time-outs, as in Lambda
	// Throttling is a while in which requests to some partitions are throttled.
	Throttling Throttling
	// Faults, if set, chooses the fault of some calls in another way than the others'.
	Faults func(op string) (of []Fault, own bool)
	// Hit, if set, is called for each fault that an actor meets.
	Hit func(*Actor)
	// Failed reports whether the seed has shown a violation: then all calls fail.
	Failed func() bool

	Acting  *Actor // whose call runs now; nil: a call that arrives late
	Calls   int
	History []Step

	mu      sync.Mutex
	ids     int
	seen    map[string]int
	waiting []*parked
	ready   chan struct{}  // an actor waits, or has ended
	late    []func() error // repeated calls that have not arrived yet
}

// New returns the world of a seed, with the stream of random numbers of that simulation.
func New(seed, stream uint64) *World {
	return &World{Rng: rand.New(rand.NewPCG(seed, stream)), seen: map[string]int{}, ready: make(chan struct{}, 1)}
}

// Step is one line of a seed's history.
type Step struct {
	Actor, Op string
	Fault     Fault
}

// String returns the line.
func (s Step) String() string {
	if s.Actor == "" {
		return s.Op
	}
	return fmt.Sprintf("%s %s %s", s.Actor, s.Op, s.Fault)
}

// Story writes the history for people.
func (w *World) Story(to io.Writer) {
	for _, s := range w.History {
		fmt.Fprintln(to, s)
	}
}

// Differ compares two histories of one seed, and returns "" if they are the same.
func Differ(a, b []Step) string {
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return fmt.Sprintf("differs at step %d: %q, then %q", i, a[i], b[i])
		}
	}
	if len(a) != len(b) {
		return fmt.Sprintf("%d steps, then %d", len(a), len(b))
	}
	return ""
}

// Log adds a line to the history. An actor whose last call has timed out may do so while
// another has its turn.
func (w *World) Log(format string, args ...any) { w.record(Step{Op: fmt.Sprintf(format, args...)}) }

func (w *World) record(s Step) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.History = append(w.History, s)
}

// Met counts what happened, so that a run can report what it covered.
func (w *World) Met(what string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.seen[what]++
}

// Seen is what happened, and how often.
func (w *World) Seen() map[string]int { return w.seen }

// NewID is like an ULID: unique and rising.
func (w *World) NewID() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ids++
	return fmt.Sprintf("ID%06d", w.ids)
}

// Sleep sleeps in the time of the bubble. Who wakes by a timer is ordered after whoever ran
// before only by the lock; without it, the race detector reports what ran in sequence.
func (w *World) Sleep(d time.Duration) {
	order := func() {
		w.mu.Lock()
		defer w.mu.Unlock()
	}
	order()
	time.Sleep(d)
	order()
}

// Arrive lets all repeated calls arrive that are still late.
func (w *World) Arrive() {
	for _, call := range w.late {
		_ = call()
	}
	w.late = nil
}

// run runs calls one by one until every actor has ended.
func (w *World) run(done *int, actors int) {
	for {
		synctest.Wait()
		if w.Failed() {
			w.Calm = true
		}
		w.mu.Lock()
		if *done == actors && len(w.waiting) == 0 {
			w.mu.Unlock()
			return
		}
		if len(w.waiting) == 0 {
			w.mu.Unlock()
			<-w.ready
			continue
		}
		if len(w.late) > 0 && w.Rng.IntN(4) == 0 {
			call := w.late[0]
			w.late = w.late[1:]
			w.Acting = nil
			w.mu.Unlock()
			w.Log("a repeated call arrives late: %v", call())
			continue
		}
		slices.SortStableFunc(w.waiting, func(a, b *parked) int {
			return cmp.Or(strings.Compare(a.actor.Name, b.actor.Name), strings.Compare(a.op, b.op))
		})
		i := w.Rng.IntN(len(w.waiting))
		p := w.waiting[i]
		w.waiting = slices.Delete(w.waiting, i, i+1)
		w.Acting = p.actor
		w.mu.Unlock()
		t := w.pick(p.op)
		w.Calls++
		w.record(Step{p.actor.Name, p.op, t})
		p.goOn <- t
	}
}

// leaves counts an actor that has ended.
func (w *World) leaves(done *int) {
	w.mu.Lock()
	*done++
	w.mu.Unlock()
	w.signal()
}

func (w *World) signal() {
	select {
	case w.ready <- struct{}{}:
	default:
	}
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

// awake is the call of an actor that a timer has woken.
const awake = "awake"
