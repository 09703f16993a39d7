// Package storagesim runs the production code of the stages that touch the storage
// root against an adversary: some jobs on one object, workers that are late, crash, or
// repeat a call, people who fail and requeue jobs. At every call to S3 or to the table, a
// seed decides which process continues.
package storagesim

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing/synctest"
	"time"

	"archivist/pkg/ingest"
	"archivist/pkg/ingest/queue"
	"archivist/pkg/kernel/bucket/buckettest"
	"archivist/pkg/kernel/table/tabletest"
	"archivist/test/adversary"
)

// trouble is the fault that a call meets.
type trouble string

const (
	none         trouble = ""
	crashBefore  trouble = "crash before"
	crashAfter   trouble = "crash after"
	lostAnswer   trouble = "answer lost"
	repeated     trouble = "repeated"
	repeatedLate trouble = "repeated late"
	slow         trouble = "slow"
	refused      trouble = "refused"
)

var (
	errDead    = errors.New("storagesim: this worker is dead")
	errLost    = errors.New("storagesim: the answer was lost")
	errRefused = errors.New("storagesim: refused")
)

var timing = ingest.Timings["production"]

// life is how long a worker can still act after it received a message: longer than its
// lease. After that its calls have no effect.
var life = timing.Times(ingest.Stage{Long: true}).Visibility

// retention of a failed job's work files.
const retention = 24 * time.Hour

// call is one call of an actor that waits to be released.
type call struct {
	actor   *actor
	op, key string
	ready   func() bool // whether it can be released; nil: it can
	release chan trouble
}

func (c *call) String() string { return c.actor.name + " " + c.op + " " + c.key }

// lateCall is a repeated call that has not taken effect yet.
type lateCall struct {
	what string
	at   time.Time
	call func()
}

// message is one that was sent, and when it becomes visible.
type message struct {
	queue.Message
	from time.Time
}

// world is the state of one seed.
type world struct {
	*adversary.World
	fake   *tabletest.Fake
	twin   *buckettest.Twin
	mutant mutant
	check  *checker

	mu      sync.Mutex
	waiting []*call
	late    []lateCall
	sent    []message
	started map[string]bool
	stalled map[string]bool // jobs whose worker is slow
	actors  int
	poked   bool
	ids     int

	over bool  // actors must end
	harm *harm // what was damaged; nil: nothing yet
	// begun is when a copy, or a check of a root, began that has not ended.
	begun  map[string]time.Time
	wanted []submission // submissions still to make, in order
}

func newWorld(seed uint64, dir string, m mutant) *world {
	w := &world{World: adversary.New(seed, 7), fake: tabletest.New(), twin: buckettest.New(dir), mutant: m,
		started: map[string]bool{}, stalled: map[string]bool{}, begun: map[string]time.Time{}}
	w.twin.Small = 1 << 20
	w.check = newChecker(w)
	w.fake.Watch = w.check.rows
	w.wanted = submissions(w.Rng)
	return w
}

func (w *world) log(format string, args ...any) {
	w.Log(time.Now().Format("15:04:05 ")+format, args...)
}

func (w *world) newID() string { // in the shape of a ULID: unique and rising
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ids++
	return fmt.Sprintf("01M7ZBMEYHBB62YP6R%08d", w.ids)
}

// park waits until the schedule releases a call, and returns its fault.
func (a *actor) park(op, key string) trouble { return a.parkUntil(nil, op, key) }

func (a *actor) parkUntil(ready func() bool, op, key string) trouble {
	w := a.w
	for {
		w.mu.Lock()
		if a.dead || !a.end.IsZero() && time.Now().After(a.end) {
			a.dead = true
			w.mu.Unlock()
			return crashBefore
		}
		c := &call{actor: a, op: op, key: key, ready: ready, release: make(chan trouble)}
		w.waiting = append(w.waiting, c)
		w.mu.Unlock()
		t := <-c.release
		switch t {
		case crashBefore, crashAfter:
			w.mu.Lock()
			a.dead = t == crashBefore || a.dead
			w.mu.Unlock()
		case slow:
			a.stall()
			continue
		}
		return t
	}
}

// stall makes a worker slow, sometimes past its lease.
func (a *actor) stall() {
	w := a.w
	w.mu.Lock()
	w.stalled[a.job] = true
	d := time.Duration(a.rng.Int64N(int64(time.Until(a.end) + time.Second)))
	w.mu.Unlock()
	time.Sleep(d)
	w.mu.Lock()
	delete(w.stalled, a.job)
	w.mu.Unlock()
}

// do makes one call with the fault that the schedule picks.
func (a *actor) do(op, key string, effect func() error) error {
	switch t := a.park(op, key); t {
	case crashBefore:
		return errDead
	case crashAfter:
		_ = effect()
		a.die()
		return errDead
	case lostAnswer:
		_ = effect()
		return errLost
	case repeated:
		_ = effect()
	case repeatedLate:
		a.w.mu.Lock()
		at := time.Now().Add(time.Duration(a.rng.Int64N(int64(time.Until(a.end) + time.Second))))
		a.w.late = append(a.w.late, lateCall{a.name + " " + op + " " + key, at, func() { _ = effect() }})
		a.w.mu.Unlock()
	case refused:
		return errRefused
	}
	return effect()
}

func (a *actor) die() {
	a.w.mu.Lock()
	defer a.w.mu.Unlock()
	a.dead = true
}

// sleep lets time pass, and then waits for the schedule: two actors that wake at the same
// time must not run at once, or a seed would not replay.
func (a *actor) sleep(d time.Duration) {
	time.Sleep(d)
	a.park("awake", "")
}

// pick chooses the fault of the next call.
func (w *world) pick(c *call) trouble {
	if w.Calm || c.op == "awake" || !c.actor.worker {
		return none
	}
	kind, ours := kindOf(c)
	most := 5
	if ours { // faults are more frequent where a call decides about a version
		most = 12
	}
	if rootInventory.MatchString(c.key) && kind == writes {
		most = 60
	}
	if w.Rng.IntN(100) >= most {
		return none
	}
	switch n := w.Rng.IntN(12); {
	case n == 0:
		return crashBefore
	case n == 1:
		return crashAfter
	case n == 2 && kind == writes:
		return lostAnswer
	case n == 3 && kind == writes:
		return repeated
	case n == 4 && kind == writes:
		return repeatedLate
	case n == 5:
		return refused
	case n >= 8 || n >= 6 && ours:
		return slow
	}
	return none
}

// run releases calls one by one until done returns true.
func (w *world) run(done func() bool) {
	for {
		synctest.Wait()
		w.mu.Lock()
		if w.check.err != nil || done() {
			w.mu.Unlock()
			return
		}
		if l := w.nextLate(); l != nil {
			w.mu.Unlock()
			w.log("%s takes effect late", l.what)
			l.call()
			continue
		}
		var can []*call
		for _, c := range w.waiting {
			if c.ready == nil || c.ready() {
				can = append(can, c)
			}
		}
		if len(can) == 0 {
			w.mu.Unlock()
			time.Sleep(500 * time.Millisecond)
			continue
		}
		slices.SortStableFunc(can, func(a, b *call) int {
			return cmp.Or(cmp.Compare(a.actor.name, b.actor.name), cmp.Compare(a.op, b.op), cmp.Compare(a.key, b.key))
		})
		c := can[w.Rng.IntN(len(can))]
		w.waiting = slices.DeleteFunc(w.waiting, func(o *call) bool { return o == c })
		w.mu.Unlock()
		t := w.pick(c)
		if c.op != "awake" {
			w.Calls++
			w.log("%s %s", c, t)
		}
		c.release <- t
	}
}

// nextLate is a repeated call that takes effect now, if any.
func (w *world) nextLate() *lateCall {
	i := slices.IndexFunc(w.late, func(l lateCall) bool { return !time.Now().Before(l.at) })
	if i < 0 {
		return nil
	}
	l := w.late[i]
	w.late = slices.Delete(w.late, i, i+1)
	return &l
}

// ctx of every actor: none is notified that its time is up.
var ctx = context.Background()
