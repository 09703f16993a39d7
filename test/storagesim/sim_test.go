package storagesim

import (
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"archivist/pkg/ingest"
	"archivist/pkg/ocfl"
	"archivist/pkg/queue/queuetest"
	"archivist/test/adversary"
)

var seeds, first = adversary.SeedFlags(25)

// faulty is how long faults last; restless is the time after them in which all work must
// end.
const (
	faulty   = 25 * time.Minute
	restless = 4 * time.Hour
)

const ark = "ark:/99999/fk4tq65d6k"

func prefixOf(ark string) string { return ocfl.Prefix(ark) }

// submission is a submission during a seed.
type submission struct {
	file, text string
	ifVersion  int
	local      bool
}

// submissions are two to four on one object.
func submissions(rng *rand.Rand) []submission {
	out := make([]submission, 2+rng.IntN(3))
	for i := range out {
		out[i] = submission{file: []string{"a.txt", "b.txt"}[rng.IntN(2)],
			text: []string{"one", "two", "three"}[rng.IntN(3)], local: rng.IntN(3) == 0}
		if i > 0 && rng.IntN(5) < 2 {
			out[i] = out[0] // often what is stored already
		}
		if rng.IntN(8) == 0 {
			out[i].ifVersion = 1 + rng.IntN(2)
		}
	}
	return out
}

func (w *world) submit(a *actor, s submission) {
	b := ingest.Batch{Collection: "c", Mode: "add", Primary: ark, IfVersion: s.ifVersion, Submitter: "sim",
		Payload: ingest.Payload{URL: "http://127.0.0.1/" + s.text, Type: ingest.TypeFile, Filename: s.file}}
	if s.local {
		b.LocalIDs = []string{"the object"}
	}
	_ = a.do("submit", s.file+" "+s.text, func() error {
		a.direct = true
		defer func() { a.direct = false }()
		_, err := a.q.Submit(ctx, b, "", nil, "sim")
		return err
	})
}

// contentOf is what the source has at a URL.
func contentOf(url string) string { return "content of " + url[strings.LastIndexByte(url, '/')+1:] }

// source is the depositors' server, in this process.
func (w *world) source() http.RoundTripper {
	return roundTrip(func(r *http.Request) (*http.Response, error) {
		rec := httptest.NewRecorder()
		http.ServeContent(rec, r, "", time.Time{}, strings.NewReader(contentOf(r.URL.Path)))
		resp := rec.Result()
		resp.Request = r
		return resp, nil
	})
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// simulate runs one seed and returns what it violated.
func simulate(t *testing.T, seed uint64, m mutant) (w *world) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		w = newWorld(seed, dir, m)
		began := time.Now()
		w.spawn("admin", false, w.administrate)
		w.spawn("scheduler", false, func(a *actor) {
			next := time.Now().Add(time.Minute)
			a.parkUntil(func() bool { return w.poked || !time.Now().Before(next) }, "awake", "")
			w.poked = false
			a.tick()
		})
		for i := range 3 {
			w.spawn(fmt.Sprintf("worker%d", i), true, func(a *actor) {
				a.parkUntil(func() bool { return w.visible() >= 0 }, "awake", "")
				if m, ok := w.arrive(a.rng); ok && !a.dead {
					a.handle(m)
				}
			})
		}
		w.calm = w.rng.IntN(3) > 0 // most begin with a version that is stored without faults
		w.run(func() bool {
			if w.calm {
				w.calm = len(w.check.jobs) == 0 || w.check.open() > 0
			}
			return !w.calm && time.Since(began) > faulty
		})
		w.settle()
		w.over = true
		w.drain()
	})
	return w
}

// spawn makes a process that repeats f; one that died is replaced.
func (w *world) spawn(name string, worker bool, f func(a *actor)) {
	a := w.newActor(name)
	a.worker = worker
	w.actors++
	go func() {
		for !w.over {
			if a.dead {
				time.Sleep(time.Second) // of the bubble
				a = w.newActor(name)
				a.worker = worker
			}
			f(a)
		}
		w.mu.Lock()
		w.actors--
		w.mu.Unlock()
	}()
	synctest.Wait()
}

// drain lets every process end.
func (w *world) drain() {
	for {
		synctest.Wait()
		w.mu.Lock()
		waiting := w.waiting
		w.waiting = nil
		left := w.actors
		w.mu.Unlock()
		if left == 0 {
			return
		}
		for _, c := range waiting {
			c.release <- crashBefore
			synctest.Wait()
		}
		time.Sleep(time.Second) // of the bubble
	}
}

// administrate submits, fails what is slow, requeues, and reindexes.
func (w *world) administrate(a *actor) {
	a.sleep(time.Duration(1+a.rng.IntN(40)) * time.Second)
	if w.calm && len(w.check.jobs) > 0 {
		return
	}
	if len(w.wanted) > 0 && a.rng.IntN(2) == 0 {
		s := w.wanted[0]
		w.wanted = w.wanted[1:]
		w.submit(a, s)
		return
	}
	if w.calm {
		return
	}
	for _, id := range slices.Sorted(maps.Keys(w.check.jobs)) {
		j := w.check.jobs[id]
		switch {
		case w.stalled[id] && j.State == ingest.Storing && a.rng.IntN(4) > 0, j.Running() && a.rng.IntN(12) == 0:
			_, _ = queuetest.ForceFail(ctx, a.q, id, "no more", "sim")
			return
		case j.State == ingest.Failed && a.rng.IntN(5) == 0:
			_, _ = queuetest.Requeue(ctx, a.q, id, "again", "sim")
			return
		}
	}
	if a.rng.IntN(6) == 0 {
		_, _, _ = a.s.Reindexer().Object(ctx, ark, "sim", time.Now().Add(time.Minute))
	}
}

// settle stops the faults and runs until all work has ended. Then the work files are
// removed, and one more submission finds a valid object.
func (w *world) settle() {
	w.mu.Lock()
	w.calm, w.late = true, nil
	w.mu.Unlock()
	w.log("faults stop")
	a := w.newActor("last")
	w.rest("at rest")
	time.Sleep(retention)
	w.rest("cleaned")
	if w.check.err == nil {
		go w.submit(a, submission{file: "last.txt", text: "last"})
		w.rest("the last")
	}
	if w.check.err == nil {
		w.check.atRest()
		w.reindexed(a)
	}
}

// rest runs until nothing is left to do.
func (w *world) rest(what string) {
	began, still := time.Now(), time.Now()
	w.run(func() bool {
		if w.check.open() > 0 || w.check.uncleaned() && what != "at rest" {
			still = time.Now()
		}
		if time.Since(began) > restless {
			w.check.fail("%s: the work does not end", what)
		}
		return time.Since(still) > 5*time.Minute
	})
	w.log("%s", what)
}

// reindexed fails if a reindex finds anything to record after all work has ended.
func (w *world) reindexed(a *actor) {
	a.direct = true
	changed, done, err := a.s.Reindexer().Object(ctx, ark, "sim", time.Now().Add(time.Minute))
	if changed || !done || err != nil {
		w.check.fail("reindex at rest: %v, %v", changed, err)
	}
}

// sweepSeeds runs seeds on both cores until bad finds one.
func sweepSeeds(t *testing.T, from uint64, n int, m mutant, bad func(seed uint64, w *world) bool) (calls, completed,
	preserved int64) {
	var next atomic.Uint64
	next.Store(from)
	var stop atomic.Bool
	var mu sync.Mutex
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			for !stop.Load() {
				seed := next.Add(1) - 1
				if seed >= from+uint64(n) {
					return
				}
				w := simulate(t, seed, m)
				mu.Lock()
				calls += int64(w.calls)
				for _, j := range w.check.jobs {
					switch {
					case j.State == ingest.Completed:
						completed++
					case j.ObjectVersion > 0:
						preserved++
					}
				}
				if bad(seed, w) {
					stop.Store(true)
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	return calls, completed, preserved
}

// TestSimulation: no seed violates an invariant.
func TestSimulation(t *testing.T) {
	started := time.Now()
	calls, completed, preserved := sweepSeeds(t, *first, *seeds, mutant{}, func(seed uint64, w *world) bool {
		if w.check.err != nil {
			t.Errorf("seed %d: %v (replay with -seeds=1 -seed=%d)", seed, w.check.err, seed)
		}
		if w.check.err != nil || *seeds == 1 {
			t.Log("\n" + strings.Join(w.history, "\n"))
		}
		return w.check.err != nil
	})
	if completed == 0 {
		t.Error("no job completed: a simulation in which nothing happens proves nothing")
	}
	t.Logf("%d seeds, %d calls (%d a seed), %d jobs completed, %d failed and preserved, in %s", *seeds, calls,
		calls/int64(*seeds), completed, preserved, time.Since(started).Round(time.Second))
}

// TestReplay: a seed makes the same history each time.
func TestReplay(t *testing.T) {
	for seed := uint64(1); seed <= 3; seed++ {
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

var withMutants = flag.Int("mutants", 0, "within how many seeds each mutant must be caught; 0: mutants are skipped")

// TestMutants: each way to break a rule is caught.
func TestMutants(t *testing.T) {
	if *withMutants == 0 {
		t.Skip("without -mutants")
	}
	for _, m := range mutants {
		t.Run(m.name, func(t *testing.T) {
			caught, why := uint64(0), ""
			sweepSeeds(t, 1, *withMutants, m, func(seed uint64, w *world) bool {
				if w.check.err == nil {
					return false
				}
				caught, why = seed, w.check.err.Error()
				return true
			})
			if caught == 0 {
				t.Fatal("it was not caught")
			}
			t.Logf("seed %d: %s", caught, why)
		})
	}
}
