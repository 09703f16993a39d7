package sim

import (
	"context"
	"flag"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"archivist/pkg/ingest"
	"archivist/pkg/queue"
)

var (
	seeds = flag.Int("seeds", 300, "how many seeds to run")
	first = flag.Uint64("seed", 1, "the first seed; with -seeds=1 it replays one and prints its history")
)

// bounds of one seed's faulty part.
const (
	rounds  = 7  // of each actor
	batches = 2  // submitted
	quiet   = 60 // rounds in which everything must come to rest
)

// simulate runs one seed and returns what it violated.
func simulate(t *testing.T, seed uint64, m mutant) (w *world) {
	synctest.Test(t, func(t *testing.T) {
		w = newWorld(seed, m)
		ctx := context.Background()
		done := 0
		actors := 0
		spawn := func(name string, f func(a *actor)) {
			actors++
			a := w.newActor(name)
			go func() {
				for range rounds {
					died := a.dead
					a.dead = false
					_ = a.sleep(0)
					if died {
						a = w.newActor(name) // a new process takes the place of the one that died
					}
					f(a)
					time.Sleep(time.Duration(a.rng.IntN(90)) * time.Second)
				}
				a.dead = false
				_ = a.sleep(0)
				w.mu.Lock()
				done++
				w.mu.Unlock()
			}()
			synctest.Wait()
		}
		submitted := 0
		spawn("admin", func(a *actor) { a.administrate(ctx, &submitted) })
		for i := range 2 {
			spawn(fmt.Sprintf("clock%d", i), func(a *actor) { a.tick(ctx) })
		}
		for i := range 3 {
			spawn(fmt.Sprintf("worker%d", i), func(a *actor) {
				for range 2 {
					if m, ok := w.arrive(a.rng); ok {
						a.handle(ctx, m)
					}
				}
			})
		}
		w.run(&done, actors)
		w.settle(ctx)
	})
	return w
}

// administrate submits, requeues, fails, and stops executions.
func (a *actor) administrate(ctx context.Context, submitted *int) {
	if *submitted < batches {
		*submitted++
		b := ingest.Batch{Collection: "c", Mode: "add", Note: strings.Repeat("x", a.rng.IntN(3))}
		_, _ = a.q.Submit(ctx, b, fmt.Sprint("key", *submitted), []byte("body"), "sim")
		return
	}
	for id := range 40 {
		job := ingest.JobID(fmt.Sprintf("ID%06d", id), 1)
		j, known := a.w.check.jobs[job]
		if !known || a.rng.IntN(2) == 0 {
			continue
		}
		switch {
		case j.State == ingest.Failed:
			_, _ = a.q.Requeue(ctx, job, "again", "sim")
		case j.Running() && a.rng.IntN(3) == 0:
			a.w.stopped[queue.ExecutionName(job, j.Exec)] = true
			_ = a.q.Stopped(ctx, job, j.Exec)
		case a.rng.IntN(6) == 0:
			_, _ = a.q.ForceFail(ctx, job, "no more", "sim")
		}
		return
	}
}

// settle stops the faults, forgets every message on its way, and lets only the
// sweep and workers run: everything must come to rest.
func (w *world) settle(ctx context.Context) {
	w.calm = true
	w.sent = nil
	w.fake.Lag = nil
	for _, call := range w.late {
		_ = call()
	}
	done := 0
	a := w.newActor("quiet")
	go func() {
		for range quiet {
			if w.check.err != nil {
				break
			}
			a.tick(ctx)
			for {
				m, ok := w.arrive(w.rng)
				if !ok {
					break
				}
				before := len(w.sent)
				a.handle(ctx, m)
				if len(w.sent) > before+1 || len(w.sent) > 0 && w.sent[len(w.sent)-1] == m {
					break // kept: time must pass
				}
			}
			if w.check.atRest() == nil {
				break
			}
			time.Sleep(4 * time.Minute)
		}
		w.mu.Lock()
		done++
		w.mu.Unlock()
	}()
	w.run(&done, 1)
	if err := w.check.atRest(); w.check.err == nil && err != nil {
		w.check.fail("not at rest: %v", err)
	}
	for _, j := range w.check.jobs {
		if j.State == ingest.Completed {
			w.completed++
		}
	}
	w.retire(ctx)
}

// retire lets the time pass for which rows are kept; the clock dies at times.
func (w *world) retire(ctx context.Context) {
	if w.check.err != nil {
		return
	}
	w.calm = false
	done := 0
	a := w.newActor("later")
	time.Sleep(retention) // of the bubble: outside of run, which would look twice a second for a month
	go func() {
		for range quiet {
			a.dead = false
			_ = a.sleep(timing.Clock + timing.Margin) // the lease of a tick that died is over
			a.tick(ctx)
			if w.check.allRetired() == nil {
				break
			}
		}
		a.dead = false
		_ = a.sleep(0)
		w.mu.Lock()
		done++
		w.mu.Unlock()
	}()
	w.run(&done, 1)
	if err := w.check.allRetired(); w.check.err == nil && err != nil {
		w.check.fail("not retired: %v", err)
	}
}

// sweepSeeds runs seeds on both cores until bad finds one.
func sweepSeeds(t *testing.T, from uint64, n int, m mutant, bad func(seed uint64, w *world) bool) (calls, repairs int64) {
	var next atomic.Uint64
	next.Store(from)
	var stop atomic.Bool
	var nCalls, nRepairs atomic.Int64
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			for !stop.Load() {
				seed := next.Add(1) - 1
				if seed >= from+uint64(n) {
					return
				}
				w := simulate(t, seed, m)
				nCalls.Add(int64(w.calls))
				nRepairs.Add(int64(w.repairs))
				if bad(seed, w) {
					stop.Store(true)
				}
			}
		})
	}
	wg.Wait()
	return nCalls.Load(), nRepairs.Load()
}

// TestSimulation: no seed violates an invariant.
func TestSimulation(t *testing.T) {
	started := time.Now()
	completed, retired := atomic.Int64{}, atomic.Int64{}
	calls, repairs := sweepSeeds(t, *first, *seeds, mutant{}, func(seed uint64, w *world) bool {
		completed.Add(int64(w.completed))
		retired.Add(int64(w.check.retired))
		if w.check.err != nil {
			t.Errorf("seed %d: %v (replay with -seeds=1 -seed=%d)", seed, w.check.err, seed)
		}
		if w.check.err != nil || *seeds == 1 {
			t.Log("\n" + strings.Join(w.history, "\n"))
		}
		return w.check.err != nil
	})
	if completed.Load() == 0 || repairs == 0 || retired.Load() == 0 {
		t.Errorf("%d jobs completed, %d repairs, %d batches retired: a simulation in which nothing happens proves nothing", completed.Load(), repairs, retired.Load())
	}
	t.Logf("%d seeds, %d calls (%d a seed), %d jobs completed, %d repairs, %d batches retired, in %s", *seeds, calls, calls/int64(*seeds), completed.Load(), repairs, retired.Load(), time.Since(started).Round(time.Second))
}

// TestReplay: a seed gives the same history each time.
func TestReplay(t *testing.T) {
	for seed := uint64(1); seed <= 100; seed++ {
		a, b := simulate(t, seed, mutant{}), simulate(t, seed, mutant{})
		for i := range min(len(a.history), len(b.history)) {
			if a.history[i] != b.history[i] {
				t.Fatalf("seed %d differs at step %d: %q, then %q", seed, i, a.history[i], b.history[i])
			}
		}
		if len(a.history) != len(b.history) {
			t.Fatalf("seed %d: %d steps, then %d", seed, len(a.history), len(b.history))
		}
	}
}

// TestMutants: each way to break a rule is caught within 1,000 seeds.
func TestMutants(t *testing.T) {
	for _, m := range mutants {
		var caught atomic.Uint64
		var why string
		var mu sync.Mutex
		sweepSeeds(t, 1, 1000, m, func(seed uint64, w *world) bool {
			if w.check.err == nil {
				return false
			}
			mu.Lock()
			defer mu.Unlock()
			caught.Store(seed)
			why = w.check.err.Error()
			return true
		})
		if caught.Load() == 0 {
			t.Errorf("mutant %q was not caught", m.name)
			continue
		}
		t.Logf("mutant %q: seed %d: %s", m.name, caught.Load(), why)
	}
}
