package eventsim

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"archivist/test/adversary"
)

// quiet is the time in which everything must come to rest after the faults have stopped, and
// restSteps the number of ticks.
const (
	quiet     = 8 * time.Hour
	restSteps = 200
)

// simulate runs one seed and returns its world, with the first violation.
func simulate(t *testing.T, seed uint64, m mutant) *world {
	return adversary.Simulate(t, func() *world { return newWorld(seed, m) }, (*world).found, (*world).storm,
		(*world).settle, (*world).examine)
}

// crowd returns an empty crowd.
func (w *world) crowd(between time.Duration) *adversary.Crowd[*actor] {
	return &adversary.Crowd[*actor]{World: w.World, New: w.newActor, Between: between}
}

// found makes the consumers, without faults.
func (w *world) found(ctx context.Context) {
	w.Calm = true
	w.crowd(1).Alone("founder", func(a *actor) { a.apply(ctx) })
	w.Calm = false
}

// storm is the faulty part of a seed.
func (w *world) storm(ctx context.Context) {
	c := w.crowd(90 * time.Second)
	for i := range 2 {
		c.Spawn(fmt.Sprintf("producer%d", i), w.s.rounds, func(a *actor) { a.produce(ctx) })
	}
	c.Spawn("admin", w.s.rounds, func(a *actor) { a.administrate(ctx) })
	for i := range 2 {
		c.Spawn(fmt.Sprintf("relay%d", i), w.s.rounds, func(a *actor) { a.relay(ctx) })
		c.Spawn(fmt.Sprintf("consumer%d", i), 2*w.s.rounds, func(a *actor) { a.consume(ctx) })
	}
	c.Spawn("tick", w.s.rounds/2, func(a *actor) { a.tick(ctx) })
	c.Run()
}

// settle stops the faults, at once or after a while, loses every pending wake-up, and runs
// only the sweep and the ticks: everything must come to rest. Then the targets work again and
// what is parked is redriven, and everything must come to rest again, with nothing left.
func (w *world) settle(ctx context.Context) {
	if w.s.stormy > 0 {
		c := w.crowd(4 * time.Minute)
		c.Spawn("tick", 2*w.s.stormy, func(a *actor) { a.tick(ctx) })
		c.Spawn("consumer", 3*w.s.stormy, func(a *actor) { a.consume(ctx) })
		c.Run()
	}
	w.Calm = true
	w.stream.Take()
	w.invocations.Take()
	w.fake.Lag = nil
	w.Arrive()
	w.target.heal()
	w.rest(ctx)
}

// rest runs the tick until everything rests.
func (w *world) rest(ctx context.Context) {
	w.crowd(1).Alone("quiet", func(a *actor) {
		a.resumeAll(ctx)
		for step, until := 0, time.Now().Add(quiet); step < restSteps && time.Now().Before(until); step++ {
			a.tick(ctx)
			for _, r := range w.invocations.Take() {
				a.runOne(ctx, r.consumer, r.partition)
			}
			a.Until = time.Time{}
			if w.check.err != nil || w.check.atRest() == nil {
				break
			}
			a.redriveAll(ctx)
			w.Sleep(2 * time.Minute)
		}
	})
	if err := w.check.atRest(); w.check.err == nil && err != nil {
		w.check.fail("not at rest: %v", err)
	}
}

// atRest names what has not come to rest.
func (c *checker) atRest() error {
	for _, pk := range slices.Sorted(maps.Keys(c.subjects)) {
		for _, s := range c.subjects[pk] {
			if s.seq == 0 {
				return fmt.Errorf("%s has no place", s.row.Key())
			}
		}
	}
	for _, s := range specs {
		if err := c.consumers[s.name].atRest(); err != nil {
			return err
		}
	}
	return nil
}

// covered is what must happen in 300 seeds.
var covered = []string{
	"CRASHES BEFORE", "CRASHES AFTER", "ANSWER LOST", "REPEATED", "REPEATED LATE", "SLOW", "THROTTLED", "CONFLICT",
	"MIXED REASONS", "cut off at its time-out",
	"stream record lost", "stream record doubled", "stream record late",
	"invocation lost", "invocation doubled", "invocation late",
	"target throws", "target refuses an event", "target refuses a key for a time",
	"ordered: parked", "unordered: parked", "coalescing: parked", "coalescing: pending", "coalesced",
	"ordered: stopped: blocked", "lease taken from a dead or slow run", "log split",
	"effects of ordered again", "effects of unordered again", "effects of coalescing again",
	"skipped by an admin", "discarded by an admin",
	"admin: pause", "admin: resume", "admin: redefine", "admin: redrive", "admin: discard", "admin: skip",
	"admin: reset to horizon", "admin: reset to latest", "admin: split", "rows read by the doctor",
}

// suite is the tests with one mutant, or without.
func suite(t *testing.T, m mutant) adversary.Suite {
	return adversary.Suite{Covered: covered, Simulate: func(seed uint64) (*adversary.World, error) {
		w := simulate(t, seed, m)
		return w.World, w.check.err
	}}
}

// TestSimulation: no seed violates an invariant.
func TestSimulation(t *testing.T) { suite(t, mutant{}).Explore(t) }

// TestReplay: a seed gives the same history each time.
func TestReplay(t *testing.T) { suite(t, mutant{}).Replays(t, 15) }

// TestMutants: each way to break a rule is caught within 1,000 seeds.
func TestMutants(t *testing.T) { adversary.Catch(t, 1000, mutants, suite) }
