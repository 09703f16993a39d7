package storagesim

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"archivist/pkg/ingest"
	"archivist/pkg/ingest/queue/queuetest"
	"archivist/pkg/objects/ocfl"
	"archivist/test/adversary"
)

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
	correct    bool // the text is a title, without a file; local: the id is withdrawn
	update     bool // the file is added to those of the newest version
}

// deletions is the file of an update that deletes a.txt, and its place at the source.
const (
	deletions    = "mrt-delete.txt"
	deletionsURL = "delete"
)

const (
	collected = "c"
	localID   = "the object"
)

// submissions are two to four on one object.
func submissions(rng *rand.Rand) []submission {
	out := make([]submission, 2+rng.IntN(3))
	for i := range out {
		out[i] = submission{file: []string{"a.txt", "b.txt"}[rng.IntN(2)],
			text: []string{"one", "two", "three"}[rng.IntN(3)], local: rng.IntN(3) == 0}
		if i > 0 && rng.IntN(5) < 2 {
			out[i] = out[0] // often what is stored already
		}
		out[i].correct = i > 0 && rng.IntN(4) == 0
		out[i].update = i > 0 && !out[i].correct && out[i].text != "one"
		if out[i].update && i > 1 && rng.IntN(2) == 0 {
			out[i].file, out[i].text = deletions, deletionsURL
		}
		if rng.IntN(8) == 0 {
			out[i].ifVersion = 1 + rng.IntN(2)
		}
	}
	return out
}

func (w *world) submit(a *actor, s submission) {
	b := ingest.Batch{Collection: collected, Mode: "add", Primary: ark, IfVersion: s.ifVersion, Submitter: "sim",
		Payload:  ingest.Payload{URL: "http://127.0.0.1/" + s.text, Type: ingest.TypeFile, Filename: s.file},
		Callback: hookOfSubmission}
	if s.update {
		b.Mode = ingest.ModeUpdate
	}
	switch ids := []string{localID}; {
	case s.correct:
		b.Payload, b.What, b.Note = ingest.Payload{Type: ingest.TypeCorrection}, s.text, "a typing error"
		if s.local {
			b.Withdrawn = ids
		}
	case s.local:
		b.LocalIDs = ids
	}
	_ = a.do("submit", s.file+" "+s.text, func() error {
		a.direct = true
		defer func() { a.direct = false }()
		_, err := a.q.Submit(ctx, b, "", nil, "sim")
		return err
	})
}

// contentOf is what the source has at a URL.
func contentOf(url string) string {
	if name := url[strings.LastIndexByte(url, '/')+1:]; name != deletionsURL {
		return "content of " + name
	}
	return "a.txt\nnowhere.txt\n"
}

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
		w.hook(t)
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
		if m.keeper {
			w.spawn("keeper", true, w.keep)
		}
		w.Calm = w.Rng.IntN(3) > 0 // most begin with a version that is stored without faults
		w.run(func() bool {
			if w.Calm {
				w.Calm = len(w.check.jobs) == 0 || w.check.open() > 0
			}
			return !w.Calm && time.Since(began) > faulty
		})
		w.settle()
		w.over = true
		w.drain()
		for _, j := range w.check.jobs {
			switch {
			case j.State == ingest.Completed:
				w.Met("job completed")
			case j.ObjectVersion > 0:
				w.Met("job failed and preserved")
			}
		}
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
	if w.Calm && len(w.check.jobs) > 0 {
		return
	}
	if len(w.wanted) > 0 && a.rng.IntN(2) == 0 {
		s := w.wanted[0]
		w.wanted = w.wanted[1:]
		w.submit(a, s)
		return
	}
	if w.Calm {
		return
	}
	if w.mutant.damage && a.rng.IntN(8) == 0 {
		w.damage(a)
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
	w.Calm, w.late = true, nil
	w.mu.Unlock()
	w.log("faults stop")
	a := w.newActor("last")
	w.rest("at rest")
	w.restore(a)
	time.Sleep(retention)
	w.rest("cleaned")
	if w.check.err == nil {
		go w.submit(a, submission{file: "last.txt", text: "last"})
		w.rest("the last")
	}
	if w.check.err == nil {
		w.check.atRest()
		w.check.called()
		w.reindexed(a)
		w.kept(a)
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

// suite is the tests with one mutant, or without.
func suite(t *testing.T, m mutant) adversary.Suite {
	return adversary.Suite{Covered: []string{"job completed", "job failed and preserved", "corrected", "withdrawn",
		"updated", "deleted by an update"},
		Simulate: func(seed uint64) (*adversary.World, error) {
			w := simulate(t, seed, m)
			return w.World, w.check.err
		}}
}

// TestSimulation: no seed violates an invariant.
func TestSimulation(t *testing.T) { suite(t, mutant{}).Explore(t) }

// TestReplay: a seed makes the same history each time.
func TestReplay(t *testing.T) { suite(t, mutant{}).Replays(t, 3) }

// TestMutants: each way to break a rule is caught within 1,000 seeds.
func TestMutants(t *testing.T) { adversary.Catch(t, 1000, mutants, suite) }
