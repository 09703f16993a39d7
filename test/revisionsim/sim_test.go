package revisionsim

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"archivist/pkg/revisions/revision"
	"archivist/test/adversary"
)

// restSteps is the number of steps in which everything must come to rest after the faults have stopped. In each, the
// schedule starts a pass in each archive whose time has come.
const restSteps = 150

// examined is how many seeds have one in which the doctor also looks at what the faults have left, in the middle of
// everything.
const examined = 8

// simulate runs one seed and returns its world, with the first violation.
func simulate(t *testing.T, seed uint64, m mutant) (w *world) {
	synctest.Test(t, func(t *testing.T) {
		w = newWorld(seed, m)
		w.Log("%+v", w.s)
		ctx := context.Background()
		w.found(ctx)
		w.storm(ctx)
		if seed%examined == 0 {
			w.examine(ctx, "overdue") // passes were lost, and nothing was done about it yet
		}
		w.settle(ctx)
		w.examine(ctx)
	})
	return w
}

// crowd returns an empty crowd.
func (w *world) crowd(between time.Duration) *adversary.Crowd[*actor] {
	return &adversary.Crowd[*actor]{World: w.World, New: w.newActor, Between: between}
}

// found registers the archives, without faults.
func (w *world) found(ctx context.Context) {
	w.Calm = true
	w.crowd(1).Alone("founder", func(a *actor) {
		for i := range w.s.archives {
			name := string('x' + rune(i))
			r := &repository{}
			w.repos[name] = r
			for range 1 + a.Rng.IntN(3) {
				r.add(w, a.Rng, "")
			}
			err := a.addArchive(ctx, name, []int64{0, 1, 1, 2}[a.Rng.IntN(4)])
			if err != nil {
				w.check.fail("the archive was refused: %v", err)
			}
			for n := range r.commits {
				w.hooks.Send(hook{archive: name, Notice: revision.Notice{Revision: int64(n + 1)}})
			}
		}
	})
	w.Calm = false
}

// storm is the faulty part of a seed.
func (w *world) storm(ctx context.Context) {
	c := w.crowd(90 * time.Second)
	c.Spawn("author", w.s.rounds, func(a *actor) { a.author(ctx) })
	c.Spawn("hook", w.s.rounds, func(a *actor) { a.hook(ctx) })
	acts := w.s.rounds / 2
	if w.s.people {
		acts *= 3
	}
	c.Spawn("person", acts, func(a *actor) { a.act(ctx) })
	for i := range 2 {
		c.Spawn(fmt.Sprint("pass", i), 2*w.s.rounds, func(a *actor) { a.pass(ctx) })
		c.Spawn(fmt.Sprint("machine", i), 3*w.s.rounds, func(a *actor) { a.execute(ctx) })
	}
	c.Run()
}

// settle stops the faults, loses every message that is under way, and lets only the schedule start passes:
// everything must come to rest.
func (w *world) settle(ctx context.Context) {
	w.Calm, w.CutOff = true, false
	w.hooks.Take()
	w.wakes.Take()
	w.starts.Take()
	w.results.Take()
	w.Arrive()
	w.fake.Lag = nil
	clear(w.open)
	w.check.final = true
	for _, name := range slices.Sorted(maps.Keys(w.repos)) {
		r := w.repos[name]
		for w.plain(r); len(r.commits) < r.longest; { // what was notified is there (again)
			w.plain(r)
		}
	}
	w.crowd(1).Alone("quiet", func(a *actor) {
		err := a.rest(ctx)
		if w.check.err == nil && err != nil {
			w.check.fail("not at rest: %v", err)
		}
	})
}

// plain adds a last revision, whose tasks have no schedules: else nothing could come to rest.
func (w *world) plain(r *repository) {
	n := r.add(w, w.Rng, "")
	s := &spec{}
	for i, name := range names[:2] {
		s.tasks = append(s.tasks, &task{name: name, attempts: 1, timeout: 60, backoff: 30, manual: true})
		if i == 0 {
			s.tasks[0].waits = []wait{{task: name, prev: true}}
		}
	}
	r.commits[n-1].spec = s
}

// rest makes passes when the schedule would, and lets what they start succeed. It returns what does not rest.
func (a *actor) rest(ctx context.Context) error {
	a.w.Sleep(times.Pass + 10*time.Second) // of the lease of a pass that has died
	for step := 0; step < restSteps && a.w.check.err == nil; step++ {
		a.w.check.late = step > restSteps/2
		a.helps(ctx)
		due, err := a.store.Waiting(ctx, 10)
		if err != nil {
			return err
		}
		for _, name := range due {
			if !a.w.mutant.still {
				a.passIn(ctx, name)
			}
		}
		for range 20 {
			a.execute(ctx)
			a.record(ctx)
		}
		if a.w.check.atRest() == nil && a.heals(ctx) {
			continue
		}
		if a.w.check.atRest() == nil {
			a.w.Met(fmt.Sprintf("rest within %d steps", (step/25+1)*25))
			return a.w.check.whole()
		}
		a.w.Sleep(a.w.check.nextWake())
	}
	return a.w.check.atRest()
}

// covered is what must happen in 300 seeds.
var covered = []string{
	"CRASHES BEFORE", "CRASHES AFTER", "ANSWER LOST", "REPEATED", "REPEATED LATE", "SLOW", "THROTTLED", "CONFLICT",
	"MIXED REASONS", "cut off at its time-out",
	"hook lost", "hook doubled", "hook late", "wake-up lost", "wake-up doubled", "wake-up late", "execution lost",
	"execution doubled", "execution late", "result lost", "result doubled", "result late", "cancel flag lost",
	"archive cannot be read", "revisions replaced", "history shortened", "hook: far ahead",
	"pass: busy", "pass: more", "pass: error Stale",
	"execution: dies", "execution: broken before it began", "execution: it has ended already",
	"execution: it may not begin", "execution: it was told, and ends", "execution: commits", "result: too late",
	"result: success after it was told to end",
	"person: cancel", "person: run", "person: run with force", "person: pause", "person: resume", "person: restart",
	"person: skip", "person: delete", "person: add again", "person: backfill", "person: change settings",
	"archive: active", "archive: paused", "archive: stopped", "archive: deleting", "archive: deleted",
	"revision: committed", "revision: invalid", "revision: skipped",
	"edge planned: ", "edge planned: none", "edge planned: satisfied", "edge planned: impossible", "edge: exact, none",
	"edge decided: satisfied", "edge decided: impossible", "edge decided: overtaken",
	"state: blocked", "state: awaiting", "state: ready", "state: dispatched", "state: running", "state: retry-wait",
	"state: succeeded", "state: failed", "state: cancelled", "state: superseded", "state: skipped",
	"skipped: because of an edge", "skipped: because of its filter", "filter: true", "filter: false",
	"superseded: from awaiting", "superseded: from blocked", "superseded: from ready", "superseded: from dispatched",
	"superseded: from running", "superseded: overtaken", "superseded: with what it awaits",
	"superseded: overtaken by one of which each is wanted", "superseded: overtaken by one with another name",
	"state: manual", "manual: started", "manual: superseded", "manual: cancelled", "manual: after a rerun",
	"edge: on one that may fail, failed", "edge: on one that may fail, succeeded", "inputs: of this revision",
	"inputs: of an earlier one", "inputs: none", "inputs: of a run", "parameters: set", "parameters: missing",
	"told: superseded", "told: cancelled", "awaiting: 0 superseded", "awaiting: 1 superseded",
	"start: by commit", "start: by manual", "start: by schedule", "start: with a lock",
	"start: beside another revision", "kept: commit", "kept: manual", "kept: schedule",
	"run with dependents: succeeded", "run with dependents: failed", "run with dependents: followed",
	"unstarted: retry-wait", "person: run what failed", "rows read by the doctor",
	"metric TasksLost", "metric TasksResent", "metric ArchivesStopped", "metric RevisionsUnreadable",
}

// suite is the tests with one mutant, or without.
func suite(t *testing.T, m mutant) adversary.Suite {
	return adversary.Suite{Covered: covered, Simulate: func(seed uint64) (*adversary.World, error) {
		w := simulate(t, seed, m)
		if w.check.err != nil && !strings.Contains(w.check.err.Error(), m.rule) {
			return w.World, nil // another rule was broken first
		}
		return w.World, w.check.err
	}}
}

// TestSimulation: no seed violates an invariant.
func TestSimulation(t *testing.T) { suite(t, mutant{}).Explore(t) }

// TestReplay: a seed gives the same history each time.
func TestReplay(t *testing.T) { suite(t, mutant{}).Replays(t, 8) }

// TestMutants: each way to break a rule is caught within 1,000 seeds.
func TestMutants(t *testing.T) { adversary.Catch(t, 1000, mutants, suite) }
