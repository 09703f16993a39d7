package seeds

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"
)

// set gives the flags other values for a test.
func set(t *testing.T, from uint64, n int, d time.Duration) {
	f, s, w := *first, *number, *during
	t.Cleanup(func() { *first, *number, *during = f, s, w })
	*first, *number, *during = from, n, d
}

// played plays the seeds of a test that had failed before, and new ones.
func played(t *testing.T, known ...uint64) ([]uint64, Played) {
	s := &schedule{known: known, played: Played{From: *first}, began: time.Now()}
	seen := map[uint64]bool{}
	spread(s.next, func(seed uint64) uint64 { return seed }, func(seed, _ uint64) bool {
		if seen[seed] {
			t.Errorf("seed %d is played twice", seed)
		}
		seen[seed] = true
		return false
	})
	return slices.Sorted(maps.Keys(seen)), s.played
}

// TestLeast: some seeds are played when the time is over at once.
func TestLeast(t *testing.T) {
	set(t, 100, 0, 0)
	all, p := played(t, 7, 3)
	if want := []uint64{3, 7, 100, 101, 102, 103, 104}; !slices.Equal(all, want) {
		t.Errorf("played %v, want %v", all, want)
	}
	if p.New != Least || p.Known != 2 || p.From != 100 || p.All() != Least+2 {
		t.Errorf("%+v", p)
	}
}

// TestNumber: a number of seeds is played whatever the time is.
func TestNumber(t *testing.T) {
	set(t, 1, 12, 0)
	if all, p := played(t); len(all) != 12 || p.New != 12 {
		t.Errorf("%v: %+v", all, p)
	}
}

// TestSearch: the search plays each seed up to the last, and ends when one is found.
func TestSearch(t *testing.T) {
	itself := func(seed uint64) uint64 { return seed }
	var all []uint64
	Search(3, 20, itself, func(seed, _ uint64) bool {
		all = append(all, seed)
		return false
	})
	slices.Sort(all)
	if len(all) != 20 || all[0] != 3 || all[19] != 22 {
		t.Errorf("played %v", all)
	}
	found := uint64(0)
	Search(1, 1_000_000_000, itself, func(seed, _ uint64) bool {
		if seed == 7 {
			found = seed
		}
		return seed == 7
	})
	if found != 7 {
		t.Error("not found")
	}
}

// TestList: the seeds of one test are read; what is no line of the list is refused.
func TestList(t *testing.T) {
	list := "# a comment\n\nTestA 17 abc1234 a lost job\nTestB 3 abc1234 another\n"
	all, err := parse(strings.NewReader(list), "TestA")
	if err != nil || !slices.Equal(all, []uint64{17}) {
		t.Errorf("%v, %v", all, err)
	}
	for _, wrong := range []string{"TestA x abc1234 a lost job", "TestA 17 abc1234"} {
		if _, err := parse(strings.NewReader(wrong), "TestA"); err == nil {
			t.Errorf("%q is accepted", wrong)
		}
	}
}

// TestReplay: the message of a seed that fails is the command that replays it, and where to note it.
func TestReplay(t *testing.T) {
	text := replay(t, 17)
	for _, want := range []string{"go test ./adversary/seeds -run '^TestReplay$' -seeds=1 -seed=17",
		"adversary/seeds/testdata/seeds.txt"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q lacks %q", text, want)
		}
	}
}

// TestTry: a play fails alone, ends where it fails, and cleans up.
func TestTry(t *testing.T) {
	after, cleaned := false, false
	err := Try(t, func(t *T) {
		t.Cleanup(func() { cleaned = true })
		t.Errorf("first %d", 1)
		t.Fatal("second")
		after = true
	})
	if err == nil || err.Error() != "first 1\nsecond" || after || !cleaned {
		t.Errorf("%v, went on %v, cleaned up %v", err, after, cleaned)
	}
	if err := Try(t, func(*T) {}); err != nil {
		t.Error(err)
	}
}
