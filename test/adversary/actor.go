package adversary

import (
	"context"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"archivist/pkg/kernel/table/tabletest"
)

// Actor is one process. Once it has died, each of its calls fails without an effect.
type Actor struct {
	World *World
	Name  string
	Rng   *rand.Rand
	Skew  time.Duration // of its clock
	Until time.Time     // when its function is ended; zero: never
	Met   int           // faults so far
	Owner any           // the simulation's own actor

	dead atomic.Bool // its calls may run at the same time
}

// Process returns a: a simulation's own actor embeds it.
func (a *Actor) Process() *Actor { return a }

// NewActor starts a process. Its clock differs from the bubble's by less than skew.
func (w *World) NewActor(name string, skew time.Duration) *Actor {
	a := &Actor{World: w, Name: name, Rng: rand.New(rand.NewPCG(w.Rng.Uint64(), 2))}
	if skew > 0 {
		a.Skew = time.Duration(a.Rng.Int64N(int64(2*skew))) - skew
	}
	return a
}

// Now is the time by the actor's clock.
func (a *Actor) Now() time.Time { return time.Now().Add(a.Skew) }

// Dead reports whether the process has died.
func (a *Actor) Dead() bool { return a.dead.Load() }

// Begin starts a function with that time-out, and returns until when it begins something.
func (a *Actor) Begin(most time.Duration) time.Time {
	if a.World.CutOff {
		a.Until = time.Now().Add(most)
	}
	return a.Now().Add(most - 15*time.Second)
}

// Acting is the simulation's own actor whose call runs now, nil if the call is late.
func Acting[A any](w *World) *A {
	if w.Acting == nil {
		return nil
	}
	return w.Acting.Owner.(*A)
}

// Do makes a call: every call of an actor goes through it. It waits for its turn, and gets
// the fault that the seed has for it.
func (a *Actor) Do(op string, call func() error) error {
	if a.over() {
		return ErrDead
	}
	if a.World.Latency > 0 && !a.World.Calm && op != awake {
		a.World.Sleep(a.latency(op))
	}
	t := a.turn(op)
	if a.over() {
		return ErrDead
	}
	if t != None {
		a.Met++
		a.World.Met(t.String())
		if a.World.Hit != nil {
			a.World.Hit(a)
		}
	}
	return a.meet(t, op, call)
}

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

// turn waits until the seed picks the call, and returns its fault.
func (a *Actor) turn(op string) Fault {
	p := &parked{actor: a, op: op, goOn: make(chan Fault)}
	a.World.mu.Lock()
	a.World.waiting = append(a.World.waiting, p)
	a.World.mu.Unlock()
	a.World.signal()
	return <-p.goOn
}

// latency of a call. It follows from the call alone, so that calls of one actor at the same
// time replay.
func (a *Actor) latency(op string) time.Duration {
	h := fnv.New64a()
	fmt.Fprintln(h, a.Name, op, time.Now().UnixNano())
	return time.Duration(h.Sum64() % uint64(a.World.Latency))
}

// over reports whether the process has died, or its time has ended. After a violation all calls fail: what is broken
// might never come to an end.
func (a *Actor) over() bool {
	late := !a.Until.IsZero() && !time.Now().Before(a.Until)
	if late && a.dead.CompareAndSwap(false, true) {
		a.World.Met("cut off at its time-out")
	}
	return a.dead.Load() || a.World.Failed()
}

// Wait sleeps like a client of the table that waits between its tries.
func (a *Actor) Wait(ctx context.Context, d time.Duration) error {
	if a.dead.Load() {
		return ErrDead
	}
	if end, ok := ctx.Deadline(); ok && time.Until(end) <= d {
		_ = a.Sleep(time.Until(end))
		return context.DeadlineExceeded
	}
	return a.Sleep(d)
}

// Sleep lets time pass, and then waits for its turn: two actors that wake at one instant must
// not run side by side, or a seed would not replay.
func (a *Actor) Sleep(d time.Duration) error {
	a.pass(d)
	return a.Do(awake, func() error { return nil })
}

// pass lets time pass. An actor whose time ends meanwhile waits for its turn to end, too.
func (a *Actor) pass(d time.Duration) {
	a.World.Sleep(d)
	if a.over() {
		a.turn(awake)
	}
}
