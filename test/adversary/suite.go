package adversary

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"archivist/test/adversary/seeds"
)

// Suite is the tests of a simulation. Simulate runs one seed, and returns its world and the first
// violation.
type Suite struct {
	Simulate func(seed uint64) (*World, error)

	// Covered is what must happen in 300 seeds, for a simulation in which nothing happens proves nothing.
	Covered []string
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

// Explore plays seeds, none of which may violate an invariant. One that does prints its history, and
// so does a seed that is replayed. It returns what happened in them, and how often.
func (s Suite) Explore(t *testing.T) (seen map[string]int, played seeds.Played) {
	t.Helper()
	n, calls, seen := 0, 0, map[string]int{}
	check := func(_ uint64, r ran) error {
		n++
		calls += r.w.Calls
		for what, times := range r.w.Seen() {
			seen[what] += times
		}
		if r.err != nil || seeds.Alone() {
			var story strings.Builder
			r.w.Story(&story)
			t.Log("\n" + story.String())
		}
		return r.err
	}
	played = seeds.Play(t, s.run, check)
	var left []string
	if played.All() >= seeds.Many && !t.Failed() {
		left = s.unshown(t, seen, played.From+uint64(played.New), check)
	}
	for _, what := range slices.Sorted(maps.Keys(seen)) {
		t.Logf("%-40s %d", what, seen[what])
	}
	t.Logf("%s: %d calls (%d a seed)", played, calls, calls/n)
	for _, what := range left {
		t.Errorf("no seed had: %s", what)
	}
	return seen, played
}

// patience is how many more seeds are played for what was not seen: it can be as rare as one in a hundred seeds.
const patience = 10 * seeds.Many

// unshown are those of Covered that were not seen, and that no further seed shows, either. The further seeds are
// checked, too, and seen gets what happens in them.
func (s Suite) unshown(t *testing.T, seen map[string]int, from uint64, check func(uint64, ran) error) (left []string) {
	t.Helper()
	missing := func() []string {
		return slices.DeleteFunc(slices.Clone(s.Covered), func(what string) bool { return seen[what] > 0 })
	}
	left = missing()
	if len(left) == 0 {
		return nil
	}

	seeds.Search(from, patience, s.run, func(seed uint64, r ran) bool {
		failed := seeds.Failed(t, seed, check(seed, r))
		left = missing()
		return len(left) == 0 || failed
	})
	return left
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

// Mutant is a way to break a rule, which some seed has to show.
type Mutant interface {
	// Known is its name, and a seed that has shown it, or 0. That seed is tried first: it saves the search until
	// something changes what the seed does.
	Known() (name string, shown uint64)
}

var quarter = flag.String("mutants", "none", "which mutants are to be caught: none, all, or a quarter of them: 0 to 3")

// Catch runs up to n seeds of each mutant that is due: one of them has to show it.
func Catch[M Mutant](t *testing.T, n int, mutants []M, suite func(t *testing.T, m M) Suite) {
	switch *quarter {
	case "none":
		t.Skip("without -mutants")
	case "all", "0", "1", "2", "3":
	default:
		t.Fatalf("-mutants=%s: expected none, all, 0, 1, 2 or 3", *quarter)
	}
	for i, m := range mutants {
		if name, shown := m.Known(); *quarter == "all" || *quarter == fmt.Sprint(i%4) {
			t.Run(name, func(t *testing.T) { suite(t, m).shows(t, shown, n) })
		}
	}
}

// shows fails unless one of the first n seeds, or the one that has done so before, violates an invariant.
func (s Suite) shows(t *testing.T, before uint64, n int) {
	if before > 0 {
		if r := s.run(before); r.err != nil {
			t.Logf("seed %d: %v", before, r.err)
			return
		}
		t.Logf("seed %d, noted as shown, does not show it any more", before)
	}
	var shown error
	seeds.Search(1, n, s.run, func(seed uint64, r ran) bool {
		if r.err != nil && shown == nil {
			shown = r.err
			t.Logf("seed %d: %v", seed, shown)
		}
		return r.err != nil
	})
	if shown == nil {
		t.Errorf("none of %d seeds shows it", n)
	}
}
