// Package seeds plays the seeds of a random test: first those that have ever failed, then others, until its time is
// over.
package seeds

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
	"time"
)

var (
	during = flag.Duration("for", 5*time.Second, "how long each random test plays seeds")
	number = flag.Int("seeds", 0, "how many seeds each random test plays, however long that takes")
	first  = flag.Uint64("seed", 1, "the first of the seeds; with -seeds=1 it is played alone, with its history")
)

// Least is how many seeds are played on a machine on which the time is over at once.
const Least = 5

// Many is the number of seeds of which some must show everything that can happen.
const Many = 300

// Alone reports whether one seed is replayed, so that its history is of interest.
func Alone() bool { return *number == 1 }

// Played is which seeds a test has played.
type Played struct {
	From  uint64
	New   int // seeds, beginning with From
	Known int // those that have failed before
	Took  time.Duration
}

// String returns the line that a suite ends with.
func (p Played) String() string {
	return fmt.Sprintf("%d seeds from %d, and %d that had failed before, in %s", p.New, p.From, p.Known,
		p.Took.Round(100*time.Millisecond))
}

// All is how many seeds were played.
func (p Played) All() int { return p.New + p.Known }

// Play plays the seeds of a test on all processors, until one fails. check gets what each play has returned, one at a
// time. The test fails with the first error.
func Play[R any](t *testing.T, play func(seed uint64) R, check func(seed uint64, played R) error) Played {
	t.Helper()
	s := &schedule{known: known(t), played: Played{From: *first}, began: time.Now()}
	if Alone() {
		s.known = nil
	}
	spread(s.next, play, func(seed uint64, played R) bool {
		return Failed(t, seed, check(seed, played))
	})
	s.played.Took = time.Since(s.began)
	return s.played
}

// Failed reports whether a seed has failed. Then it lets the test fail, with the command that plays the seed again.
func Failed(t *testing.T, seed uint64, err error) bool {
	t.Helper()
	if err != nil {
		t.Errorf("seed %d: %v\n%s", seed, err, replay(t, seed))
	}
	return err != nil
}

// Search plays up to n seeds on all processors, until found reports that one is what is looked for.
func Search[R any](from uint64, n int, play func(seed uint64) R, found func(seed uint64, played R) bool) {
	end := from + uint64(n)
	spread(func() (uint64, bool) {
		from++
		return from - 1, from <= end
	}, play, found)
}

// spread plays the seeds that next gives, on all processors, until done reports true.
func spread[R any](next func() (uint64, bool), play func(uint64) R, done func(uint64, R) bool) {
	var mu sync.Mutex
	stop := false
	take := func() (uint64, bool) {
		mu.Lock()
		defer mu.Unlock()
		if stop {
			return 0, false
		}
		return next()
	}
	var all sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		all.Go(func() {
			for seed, more := take(); more; seed, more = take() {
				played := play(seed)
				mu.Lock()
				stop = done(seed, played) || stop
				mu.Unlock()
			}
		})
	}
	all.Wait()
}

// schedule says which seed is next.
type schedule struct {
	known  []uint64 // still to play
	played Played
	began  time.Time
}

func (s *schedule) next() (seed uint64, more bool) {
	if len(s.known) > 0 {
		seed, s.known = s.known[0], s.known[1:]
		s.played.Known++
		return seed, true
	}
	n := s.played.New
	if *number > 0 && n >= *number || *number == 0 && n >= Least && time.Since(s.began) >= *during {
		return 0, false
	}
	s.played.New++
	return *first + uint64(n), true
}

// file is where a suite lists the seeds that have failed: the name of the test, the seed, the commit that corrected
// it, and what it had found.
const file = "testdata/seeds.txt"

// known are the seeds of a test that have failed before.
func known(t *testing.T) (all []uint64) {
	t.Helper()
	f, err := os.Open(file)
	if os.IsNotExist(err) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	all, err = parse(f, t.Name())
	if err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	return all
}

// replay says how to play a seed again, and where to note it.
func replay(t *testing.T, seed uint64) string {
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	suite := filepath.Join(filepath.Base(filepath.Dir(dir)), filepath.Base(dir))
	return fmt.Sprintf("  replay: go test ./%s -run '^%s$' -seeds=1 -seed=%d\n  add it to %s/%s, which every run "+
		"plays first: %s %d COMMIT what it has found", suite, t.Name(), seed, suite, file, t.Name(), seed)
}
