package sim

import (
	"context"
	"fmt"
	"testing"
	"time"

	"archivist/pkg/ingest"
	"archivist/test/adversary"
)

// quiet is the time in which everything must come to rest after the faults have stopped:
// some repairs after the longest backoff.
const quiet = 8 * time.Hour

// simulate runs one seed and returns its world, with the first violation.
func simulate(t *testing.T, seed uint64, m mutant) *world {
	return adversary.Simulate(t, func() *world { return newWorld(seed, m) }, (*world).storm, (*world).settle,
		(*world).deliverMails, (*world).retire)
}

// crowd returns an empty crowd.
func (w *world) crowd(between time.Duration) *adversary.Crowd[*actor] {
	return &adversary.Crowd[*actor]{World: w.World, New: w.newActor, Between: between}
}

// storm is the faulty part of a seed.
func (w *world) storm(ctx context.Context) {
	c := w.crowd(90 * time.Second)
	submitted := 0
	for i := range 2 {
		c.Spawn(fmt.Sprintf("admin%d", i), w.s.rounds, func(a *actor) { a.administrate(ctx, &submitted) })
	}
	c.Spawn("scheduler", w.s.rounds, func(a *actor) { a.tick(ctx, true) })
	c.Spawn("woken", w.s.rounds, func(a *actor) {
		if w.wakes > 0 {
			w.wakes = 0
			a.tick(ctx, a.Rng.IntN(4) == 0)
		}
	})
	for i := range 3 {
		c.Spawn(fmt.Sprintf("worker%d", i), w.s.rounds, func(a *actor) { a.workOff(ctx, 2) })
	}
	c.Run()
}

// workOff handles up to n messages.
func (a *actor) workOff(ctx context.Context, n int) {
	for range n {
		if m, ok := a.w.arrive(a.Rng); ok {
			a.handle(ctx, m)
		}
	}
}

// settle stops the faults, at once or after a while, loses every pending message, and runs
// only the sweep and workers: everything must come to rest. Then the dependencies work
// again, failed jobs are requeued, and everything must come to rest again.
func (w *world) settle(ctx context.Context) {
	if w.s.stormy > 0 {
		c := w.crowd(4 * time.Minute)
		c.Spawn("scheduler", w.s.stormy, func(a *actor) { a.tick(ctx, true) })
		c.Spawn("worker", 2*w.s.stormy, func(a *actor) { a.workOff(ctx, 3) })
		c.Run()
	}
	w.Calm, w.calmed = true, time.Now()
	w.sent = nil
	w.fake.Lag = nil
	w.Arrive()
	w.rest(ctx, func(a *actor) { w.lift(ctx, a) })
	if err := w.check.unreported(); w.check.err == nil && err != nil {
		w.check.fail("not reported: %v", err)
	}
	if w.s.again > 0 || w.s.refuses != "" {
		w.rest(ctx, func(a *actor) { w.restoreDependency(ctx, a) })
	}
	if w.s.again > 0 {
		w.rest(ctx, func(a *actor) { w.updateReports(ctx, a) })
	}
	for _, j := range w.check.jobs {
		if j.State == ingest.Completed {
			w.Met("job completed")
		}
	}
}

// restoreDependency makes the dependency work again, and requeues the failed jobs.
func (w *world) restoreDependency(ctx context.Context, a *actor) {
	w.Log("the dependency %s works again", w.s.refuses)
	w.s.refuses = ""
	_ = a.Sleep(w.s.again)
	a.tick(ctx, true) // it may start to remove work files
	w.lift(ctx, a)
	for _, id := range w.check.sorted() {
		if w.check.jobs[id].State == ingest.Failed && w.s.again > 0 {
			a.requeue(ctx, id)
		}
	}
}

// updateReports lets the failed batches report what has changed.
func (w *world) updateReports(ctx context.Context, a *actor) {
	for _, id := range w.check.sortedBatches() {
		if w.check.batches[id].State == ingest.BatchFailed {
			_ = a.perform(ctx, ingest.Action{Name: ingest.ActUpdateReport,
				Target: ingest.Target{Kind: ingest.TargetBatch, ID: id}, Reason: "again", Actor: a.Name,
				Role: ingest.Administrator})
		}
	}
}

// requeue puts a failed job back, without a request id.
func (a *actor) requeue(ctx context.Context, id string) {
	_ = a.perform(ctx, ingest.Action{Name: ingest.ActRequeue, Target: ingest.Target{Kind: ingest.TargetJob, ID: id},
		Reason: "again", Actor: a.Name, Role: ingest.Administrator, Confirm: true})
}

// deliverMails waits until all tries of mails are over.
func (w *world) deliverMails(ctx context.Context) {
	c := w.crowd(1)
	c.Spawn("mail", 40, func(a *actor) {
		if w.check.err == nil && len(w.check.mails) > 0 {
			_ = a.Sleep(time.Hour)
			a.tick(ctx, true)
		}
	})
	c.Run()
	if err := w.check.delivered(); w.check.err == nil && err != nil {
		w.check.fail("not delivered: %v", err)
	}
}

// patient is how long it may take until everything rests.
func (w *world) patient() time.Duration {
	most := quiet
	if w.s.refuses == refusesStart || w.s.refuses == refusesDescribe {
		most += max(0, refusing-time.Since(w.began))
		// Each job whose start was refused is started again after its backoff, and jobs wait for each other.
		most += time.Duration(len(w.check.jobs)) * timing.MaxBackoff
	}
	if w.s.keepFailed > day {
		most += 29 * day // each day the space of a failed job is freed for another
	}
	return most
}

// errors is the number of failed repairs and admissions.
func (w *world) errors() float64 { return w.metrics["RepairErrors"] + w.metrics["GateErrors"] }

// rest calls first, and then runs the scheduler and workers until everything rests.
func (w *world) rest(ctx context.Context, first func(*actor)) {
	errors := w.errors()
	w.crowd(1).Alone("quiet", func(a *actor) {
		first(a)
		for rounds, until := 0, time.Now().Add(w.patient()); time.Now().Before(until); rounds++ {
			a.tick(ctx, !w.s.unswept)
			w.drain(ctx, a)
			w.check.untied()
			if w.check.err != nil || w.check.atRest() == nil {
				break
			}
			a.Until = time.Time{}
			w.Sleep(5 * time.Minute)
			switch {
			case rounds > 40 && w.s.keepFailed > day:
				w.Sleep(3 * time.Hour)
			case rounds > 40:
				w.Sleep(16 * time.Minute)
			}
		}
	})
	if err := w.check.atRest(); w.check.err == nil && err != nil {
		w.check.fail("not at rest: %v", err)
	}
	if n := w.errors() - errors; w.s.refuses == "" && n > 0 {
		w.check.fail("%v repairs or admissions failed without a fault", n)
	}
}

// drain handles messages until none is left, or all are to be kept.
func (w *world) drain(ctx context.Context, a *actor) {
	for kept := 0; kept <= len(w.sent); {
		m, ok := w.arrive(w.Rng)
		if !ok {
			return
		}
		if a.handle(ctx, m) {
			kept++
		} else {
			kept = 0
		}
	}
}

// retire waits until the retention of rows has ended; the scheduler dies at times.
func (w *world) retire(ctx context.Context) {
	if w.check.err != nil {
		return
	}
	w.Calm, w.Throttling, w.s.latency, w.Latency = false, adversary.Throttling{}, 0, 0
	w.Sleep(retention)
	c := w.crowd(1)
	c.Spawn("later", 150, func(a *actor) {
		if w.check.allRetired() != nil {
			_ = a.Sleep(timing.Scheduler + timing.Margin) // the lease of a tick that died has ended
			a.tick(ctx, true)
		}
	})
	c.Run()
	if err := w.check.allRetired(); w.check.err == nil && err != nil {
		w.check.fail("not retired: %v", err)
	}
}

// covered is what must happen in 300 seeds.
var covered = []string{"job completed", "repair", "batch retired"}

// suite is the tests with one mutant, or without.
func suite(t *testing.T, m mutant) adversary.Suite {
	return adversary.Suite{Covered: covered, Simulate: func(seed uint64) (*adversary.World, error) {
		w := simulate(t, seed, m)
		return w.World, w.check.err
	}}
}

// TestSimulation: no seed violates an invariant.
func TestSimulation(t *testing.T) {
	seen, played := suite(t, mutant{}).Explore(t)
	if played.All() >= 1000 {
		checkEdges(t, seen)
	}
}

// TestReplay: a seed gives the same history each time.
func TestReplay(t *testing.T) { suite(t, mutant{}).Replays(t, 25) }

// TestMutants: each way to break a rule is caught within 1,000 seeds.
func TestMutants(t *testing.T) { adversary.Catch(t, 1000, mutants, suite) }
