package componentsim

import (
	"context"
	"fmt"
	"testing"
	"time"

	"archivist/pkg/components/component"
	"archivist/pkg/events/consumer"
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

// found makes the consumer and most components, without faults.
func (w *world) found(ctx context.Context) {
	w.Calm = true
	w.crowd(1).Alone("founder", func(a *actor) { a.found(ctx) })
	w.Calm = false
}

// storm is the faulty part of a seed.
func (w *world) storm(ctx context.Context) {
	c := w.crowd(90 * time.Second)
	c.Spawn("producer", w.s.rounds, func(a *actor) { a.produce(ctx) })
	c.Spawn("relay", w.s.rounds, func(a *actor) { a.relay(ctx) })
	c.Spawn("consumer", w.s.rounds, func(a *actor) { a.consume(ctx) })
	for i := range 2 {
		c.Spawn(fmt.Sprint("person", i), w.s.rounds, func(a *actor) { a.act(ctx) })
		c.Spawn(fmt.Sprint("tick", i), w.s.rounds/2, func(a *actor) { a.tick(ctx) })
		c.Spawn(fmt.Sprint("machine", i), 2*w.s.rounds, func(a *actor) { a.execute(ctx) })
		c.Spawn(fmt.Sprint("worker", i), 3*w.s.rounds, func(a *actor) { a.labour(ctx) })
	}
	c.Run()
}

// settle stops the faults, at once or after a while, loses every pending wake-up, and runs only the
// ticks and what they start: everything must come to rest.
func (w *world) settle(ctx context.Context) {
	if w.s.stormy > 0 {
		c := w.crowd(4 * time.Minute)
		c.Spawn("tick", 2*w.s.stormy, func(a *actor) { a.tick(ctx) })
		c.Spawn("machine", 3*w.s.stormy, func(a *actor) { a.execute(ctx) })
		c.Spawn("worker", 3*w.s.stormy, func(a *actor) { a.labour(ctx) })
		c.Run()
	}
	w.Calm = true
	w.stream.Take()
	w.consumers.Take()
	w.executions.Take()
	w.lanes.Take()
	w.answers.Take()
	w.wakes.Take()
	w.fake.Lag = nil
	w.Arrive()
	w.rest(ctx)
}

// rest runs the tick until everything rests. Then a definition is changed, and everything must come to
// rest again: items to which nothing else happens, too.
func (w *world) rest(ctx context.Context) {
	w.crowd(1).Alone("quiet", func(a *actor) {
		for _, days := range []int{8, 9} {
			if err := a.calm(ctx, days); w.check.err == nil && err != nil {
				w.check.fail("not at rest: %v", err)
			}
		}
	})
	if w.check.deep {
		w.Met("depth limit")
	}
	if n := w.metrics[component.MetricReconciled]; n > 0 && !w.s.lag {
		w.check.fail("the reconciliation repaired %v rows", n)
	}
	if w.metrics[consumer.MetricDepth] > 0 {
		w.Met("metric of the depth limit")
	}
}

// calm makes the steps after which everything has to rest, and returns what does not.
func (a *actor) calm(ctx context.Context, days int) error {
	for step, until := 0, time.Now().Add(quiet); step < restSteps && time.Now().Before(until); step++ {
		a.Until = time.Time{} // of the tick before: a person has no time-out
		a.restore(ctx, days)
		a.tick(ctx)
		a.finish(ctx)
		if a.w.check.err != nil || a.w.check.atRest() == nil {
			break
		}
		a.w.Sleep(time.Duration(min(step+1, 10)) * 2 * time.Minute)
	}
	if a.w.check.err != nil {
		return a.w.check.err // then there is not all that is compared
	}
	a.reconcile(ctx, time.Now().Add(time.Hour))
	return a.w.check.atRest()
}

// covered is what must happen in 300 seeds.
var covered = []string{
	"CRASHES BEFORE", "CRASHES AFTER", "ANSWER LOST", "REPEATED", "REPEATED LATE", "SLOW", "THROTTLED", "CONFLICT",
	"MIXED REASONS", "cut off at its time-out",
	"stream record lost", "stream record doubled", "stream record late",
	"invocation lost", "invocation doubled", "invocation late",
	"execution lost", "execution doubled", "execution late", "work lost", "work doubled", "work late",
	"answer lost", "answer doubled", "answer late",
	"wake-up lost", "wake-up doubled", "wake-up late",
	"claim taken from a dead or slow worker", "claim given back", "run interrupted",
	"work: not yet", "work: failure", "work: again", "work: error", "work: unavailable",
	"work of intake", "work of shape", "work of facts", "work of figures", "work of index", "work of patient",
	"work of ping", "work of pong", "depth limit", "metric of the depth limit",
	"person: create", "person: change", "person: forget", "person: register", "person: force", "person: stop",
	"person: revoke", "person: restart", "person: prioritize", "person: release", "person: pause", "person: resume",
	"person: apply", "person: redefine", "person: delete", "person: interrupt", "person: start", "event item.release",
	"two events of a subject in one millisecond", "rows read by the doctor",
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
func TestReplay(t *testing.T) { suite(t, mutant{}).Replays(t, 8) }

// TestMutants: each way to break a rule is caught within 300 seeds.
func TestMutants(t *testing.T) { adversary.Catch(t, 300, mutants, suite) }
