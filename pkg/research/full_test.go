package research

import (
	"fmt"
	"strings"
	"testing"

	"archivist/pkg/events/check/checktest"
	"archivist/pkg/events/event"
	"archivist/pkg/kernel/table"
)

// TestFull: an episode with the most leases that are possible gets no more; the views say so, the work goes on
// with the next episode, and the end of a lease makes room.
func TestFull(t *testing.T) {
	b := newBench(t)
	e, next := b.curate(Episode, "e", 9, 0), b.curate(Episode, "next", 0, 0)
	last := ""
	for i := range 2*MaxLeases + 1 { // two to a work item: one clip is left
		last = b.curate(Clip, fmt.Sprint("c", i), MaxPriority-i, 0)
	}
	b.must(b.Heartbeat(t.Context(), songs, Researcher{Name: "r", Capacity: MaxWorkers}))
	var works []Work
	for len(works) <= MaxLeases {
		b.pass()
		for len(b.sent) > 0 {
			works = append(works, b.accept("r"))
		}
	}
	for i, w := range works {
		if want := map[bool]string{true: e, false: next}[i < MaxLeases]; w.Episode.Key != want {
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
	pg := checktest.Page(b.Table, b.Now, b.NewID)
	all := func(row table.Raw) bool { return !strings.HasPrefix(row.SK, event.Prefix) }
	for _, w := range checktest.All(b.t, pg, Rules(pg), all) {
		b.t.Errorf("%s: %s: %s", w.Subject, w.Invariant, w.Evidence)
	}
}
