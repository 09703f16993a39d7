package researchsim

import (
	"context"
	"fmt"
	"testing"
	"time"

	"archivist/test/adversary"
)

// restSteps is the number of steps in which everything must come to rest after the faults have stopped.
const restSteps = 120

// simulate runs one seed and returns its world, with the first violation.
func simulate(t *testing.T, seed uint64, m mutant) *world {
	return adversary.Simulate(t, func() *world { return newWorld(seed, m) }, (*world).found, (*world).storm,
		(*world).settle, (*world).examine)
}

// crowd returns an empty crowd.
func (w *world) crowd(between time.Duration) *adversary.Crowd[*actor] {
	return &adversary.Crowd[*actor]{World: w.World, New: w.newActor, Between: between}
}

// found makes the project, and some episodes and clips, without faults.
func (w *world) found(ctx context.Context) {
	w.Calm = true
	w.crowd(1).Alone("founder", func(a *actor) {
		w.version = 1
		if err := a.store.Apply(ctx, w.project(w.s.maxWork), a.by()); err != nil {
			w.check.fail("the project was refused: %v", err)
		}
		for range 4 {
			a.curateOne(ctx, curated(a.Rng, time.Now()))
		}
	})
	w.Calm = false
}

// storm is the faulty part of a seed.
func (w *world) storm(ctx context.Context) {
	c := w.crowd(3 * time.Minute)
	c.Spawn("curator", w.s.rounds, func(a *actor) { a.say(ctx) })
	c.Spawn("person", w.s.rounds/2, func(a *actor) { a.act(ctx) })
	for i := range 2 {
		c.Spawn(fmt.Sprint("curated", i), w.s.rounds, func(a *actor) { a.curate(ctx) })
		c.Spawn(fmt.Sprint("pending", i), 2*w.s.rounds, func(a *actor) { a.archive(ctx) })
		c.Spawn(fmt.Sprint("completed", i), 2*w.s.rounds, func(a *actor) { a.complete(ctx) })
		c.Spawn(fmt.Sprint("researcher", i), 2*w.s.rounds, func(a *actor) { a.labour(ctx) })
	}
	c.Spawn("woken", w.s.rounds, func(a *actor) { a.woken(ctx) })
	for i := range 2 {
		if w.s.review {
			c.Spawn(fmt.Sprint("reviewer", i), w.s.rounds, func(a *actor) { a.review(ctx, true) })
		}
	}
	c.Run()
}

// settle stops the faults, loses every wake-up and work item that is under way, and lets one archivist
// and one researcher do the rest: each pair must become researched. Then a clip goes away: the counts must follow.
func (w *world) settle(ctx context.Context) {
	w.Calm, w.CutOff = true, false
	w.pending.Take()
	w.wakes.Take()
	w.Arrive()
	w.Sleep(5 * time.Minute) // of the fences of archivists that have died
	w.crowd(1).Alone("quiet", func(a *actor) {
		err := a.rest(ctx)
		if err == nil {
			a.withdraw(ctx)
			err = a.rest(ctx)
		}
		if err == nil {
			err = a.reviewAll(ctx)
		}
		if err == nil {
			err = a.shown(ctx)
		}
		if err == nil {
			err = w.folds()
		}
		if err != nil {
			w.check.fail("at the end: %v", err)
		}
	})
}

// covered is what must happen in 300 seeds.
var covered = []string{
	"CRASHES BEFORE", "CRASHES AFTER", "ANSWER LOST", "REPEATED", "REPEATED LATE", "SLOW", "THROTTLED", "CONFLICT",
	"MIXED REASONS", "cut off at its time-out",
	"work item lost", "work item doubled", "work item late", "record lost", "record doubled", "record late",
	"report lost", "report doubled", "report late", "wake-up lost", "wake-up doubled", "wake-up late",
	"researcher hangs", "researcher left", "left without a final report", "ended early", "final before others",
	"accepted again", "acceptance refused", "report known", "lease ended by its last result",
	"problem of episode failed", "problem of clip failed", "problem of episode rejected", "problem of clip rejected",
	"lease of pairs that have a result", "work item for another researcher", "person: decides, another false",
	"person: decides, another true",
	"person: pause", "person: resume", "person: another analysis", "person: revoke", "person: retry",
	"person: reviews, accepted true", "person: reviews, accepted false",
	"person: overrules a review",
	"review refused: decided otherwise", "review refused: replaced",
	"waveform: kept", "waveform: of an earlier recording", "waveform: too long",
	"rows read by the doctor",
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
