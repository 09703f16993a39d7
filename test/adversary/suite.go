package adversary

import (
	"context"
	"flag"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// Suite is the tests of a simulation. Simulate runs one seed, and returns its world and the first
// violation.
type Suite struct {
	Simulate func(seed uint64) (*World, error)

	// Covered is what must happen in 300 seeds, for a simulation in which nothing happens proves nothing.
	Covered []string
}

// SeedFlags are the flags -seeds, how many seeds to run (without it that many), and -seed, the first of them.
func SeedFlags(many int) (seeds *int, first *uint64) {
	return flag.Int("seeds", many, "how many seeds to run"),
		flag.Uint64("seed", 1, "the first seed; with -seeds=1 it replays one and prints its history")
}

// Simulate runs one seed in a bubble: it makes a world, and lets it go through its phases.
func Simulate[W any](t *testing.T, start func() W, phases ...func(w W, ctx context.Context)) (w W) {
	synctest.Test(t, func(*testing.T) {
		w = start()
		for _, phase := range phases {
			phase(w, context.Background())
		}
	})
	return w
}

// ran is the run of one seed.
type ran struct {
	w   *World
	err error
}

func (s Suite) run(seed uint64) ran {
	w, err := s.Simulate(seed)
	return ran{w, err}
}

// Explore runs n seeds, none of which may violate an invariant. One that does prints its history, and
// so does a single seed.
func (s Suite) Explore(t *testing.T, from uint64, n int) {
	started := time.Now()
	var mu sync.Mutex
	seen, calls, over := map[string]int{}, 0, 0
	Seeds(from, n, s.run, func(seed uint64, r ran) bool {
		mu.Lock()
		defer mu.Unlock()
		calls, over = calls+r.w.Calls, over+1
		for what, times := range r.w.Seen() {
			seen[what] += times
		}
		if r.err != nil {
			t.Errorf("seed %d: %v (replay with -seeds=1 -seed=%d)", seed, r.err, seed)
		}
		if r.err != nil || n == 1 {
			var story strings.Builder
			r.w.Story(&story)
			t.Log("\n" + story.String())
		}
		return r.err != nil
	})
	for _, what := range s.Covered {
		if seen[what] == 0 && n >= 300 {
			t.Errorf("no seed had: %s", what)
		}
	}
	for _, what := range slices.Sorted(maps.Keys(seen)) {
		t.Logf("%-40s %d", what, seen[what])
	}
	t.Logf("%d of %d seeds, %d calls (%d a seed), in %s", over, n, calls, calls/max(over, 1),
		time.Since(started).Round(time.Second))
}

// Replays runs the first n seeds twice: each gives the same history.
func (s Suite) Replays(t *testing.T, n uint64) {
	for seed := uint64(1); seed <= n; seed++ {
		a, b := s.run(seed), s.run(seed)
		if differ := Differ(a.w.History, b.w.History); differ != "" {
			t.Fatalf("seed %d: %s", seed, differ)
		}
	}
}

// Catches runs up to n seeds of a mutant: one of them has to show it.
func (s Suite) Catches(t *testing.T, mutant string, n int) {
	var caught uint64
	var why error
	var mu sync.Mutex
	Seeds(1, n, s.run, func(seed uint64, r ran) bool {
		mu.Lock()
		defer mu.Unlock()
		if r.err == nil {
			return false
		}
		caught, why = seed, r.err
		return true
	})
	if caught == 0 {
		t.Errorf("mutant %q was not caught", mutant)
		return
	}
	t.Logf("mutant %q: seed %d: %v", mutant, caught, why)
}
