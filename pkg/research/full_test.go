package research

import (
	"fmt"
	"testing"
)

// TestFull: an episode with the most leases that are possible gets no more; the views say so, the work goes on
// with the next episode, and the end of a lease makes room.
func TestFull(t *testing.T) {
	b := newBench(t)
	e, next := b.curate(Episode, "e", 9, 0), b.curate(Episode, "next", 0, 0)
	last := ""
	for i := range 2*MaxHeld + 1 { // two to a work item: one clip is left
		last = b.curate(Clip, fmt.Sprint("c", i), MaxPriority-i, 0)
	}
	b.must(b.Hello(t.Context(), songs, Researcher{Name: "r", Capacity: MaxWorkers}))
	var works []Work
	for len(works) <= MaxHeld {
		b.pass()
		for len(b.sent) > 0 {
			works = append(works, b.accept("r"))
		}
	}
	for i, w := range works {
		if want := map[bool]string{true: e, false: next}[i < MaxHeld]; w.Episode.Key != want {
			t.Fatalf("work item %d is of %s", i, w.Episode.ID)
		}
	}
	check := func(state State, leased int64, full, why string) {
		t.Helper()
		k, err := b.Get(t.Context(), Episode, songs, e)
		b.must(err)
		x, err := b.Standing(t.Context(), songs, e, last)
		b.must(err)
		if k.State != state || k.Pairs != 201 || k.Leased != leased || k.Full != full || x.Why != why || !x.Due {
			t.Errorf("%+v, %+v; expected %s, %d, %q, %q", k, x, state, leased, full, why)
		}
		b.sound()
	}
	check(Closed, 200, "the episode has 100 leases, which is the most that is possible",
		"it is due, but the episode has 100 leases, which is the most that is possible")
	b.must(b.Revoke(t.Context(), works[0].Lease.ID, by))
	check(Ready, 198, "", "it is due: 0 episodes and 2 clips of this episode come first")
	b.pass()
	if b.sent[0].Episode != e || b.sent[0].Clips[0] != works[0].Clips[0].Key {
		t.Errorf("after the end of a lease: %+v", b.sent[0])
	}
}

// sound checks the rules between all rows.
func (b *bench) sound() {
	b.t.Helper()
	for cursor := ""; ; {
		page, next, err := b.Table.Scan(b.t.Context(), "", 1000, cursor)
		b.must(err)
		for _, row := range page {
			wrong, err := b.Examine(b.t.Context(), row)
			b.must(err)
			for _, w := range wrong {
				b.t.Errorf("%s: %s: %s", row.Key, w.Rule, w.What)
			}
		}
		if next == "" {
			return
		}
		cursor = next
	}
}
