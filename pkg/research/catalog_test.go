package research

import (
	"fmt"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/RoaringBitmap/roaring/v2"
)

// TestCatalogGrows: the next catalog costs as much when there are 20,000 clips as when there were few, and the
// ones before stay as they were.
func TestCatalogGrows(t *testing.T) {
	const all = 20_000
	c := newCatalog()
	var early *catalog
	spent := []uint64{allocated()} // bytes, before the first and after each half of the clips
	for i := range uint32(all) {
		c = c.copy()
		c.set(listed{number: i + 1, order: fmt.Sprintf("%07d#k%d", all-i, i+1), live: i%2 == 0})
		switch i + 1 {
		case 3:
			early = c
		case all / 2, all:
			spent = append(spent, allocated())
		}
	}
	few, many := spent[1]-spent[0], spent[2]-spent[1]
	if many > 2*few {
		t.Errorf("the second half of %d clips took %d bytes, the first %d", all, many, few)
	}
	t.Logf("%d and %d bytes for each clip", few/(all/2), many/(all/2))
	c = c.copy()
	c.set(listed{1, "0000000#k1", true})                   // moved to the front
	c.set(listed{2, "0000001#k2", true})                   // brought back
	c.set(listed{3, fmt.Sprintf("%07d#k3", all-2), false}) // withdrawn
	for name, is := range map[string][2][]string{
		"early": {keysOf(early.due(roaring.New(), all)), {"k3", "k1"}},
		"now":   {keysOf(c.due(roaring.BitmapOf(2, 19_999), 2)), {"k1", "k19997"}},
	} {
		if !slices.Equal(is[0], is[1]) {
			t.Errorf("%s: due are %v; expected %v", name, is[0], is[1])
		}
	}
	if c.clips.Len() != all || c.order.Len() != all/2 || c.live.GetCardinality() != all/2 || c.live.Contains(3) {
		t.Errorf("%d clips, of which %d and %d are live", c.clips.Len(), c.order.Len(), c.live.GetCardinality())
	}
}

func keysOf(all []listed) (keys []string) {
	for _, l := range all {
		keys = append(keys, l.key())
	}
	return keys
}

// allocated is how many bytes were ever allocated.
func allocated() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.TotalAlloc
}

// BenchmarkImport imports clips one by one, as the queue of curated clips does:
//
//	go test ./pkg/research -run '^$' -bench Import -benchtime 20000x
func BenchmarkImport(b *testing.B) {
	s := newBench(b)
	for i := range b.N {
		s.curate(Clip, fmt.Sprint("c", i), 0, 0)
	}
}

// TestWithdrawalOpensNothing: after a clip has gone away, or has another place in the order, no closed episode is
// looked at before work is assigned; the counts of all are right again a while later. Clips that come and come
// back open closed episodes.
func TestWithdrawalOpensNothing(t *testing.T) {
	b := newBench(t)
	for i := range 5 {
		b.curate(Clip, fmt.Sprint("c", i), 0, 0)
		b.curate(Episode, fmt.Sprint("done", i), 9, 0)
	}
	b.must(b.Heartbeat(t.Context(), songs, Researcher{Name: "r", Capacity: MaxWorkers}))
	for b.pass(); len(b.sent) > 0; b.pass() {
		w := b.accept("r")
		for i := range w.Clips {
			b.report(w, i, i == len(w.Clips)-1)
		}
	}
	assigned := func(withdrawn bool, priority int, opens bool) {
		t.Helper()
		b.clock = b.clock.Add(time.Second)
		_, err := b.Curate(t.Context(), Curated{Project: songs, Kind: Clip, Source: "s", ID: "c0", Priority: &priority,
			URL: "https://media.example.org/c0", Curated: millis(b.clock), Withdrawn: withdrawn}, by)
		b.must(err)
		next := b.curate(Episode, fmt.Sprint("next", millis(b.clock)), 0, 0)
		b.must(b.Heartbeat(t.Context(), songs, Researcher{Name: "r", Capacity: 2}))
		p := b.pass()
		if (p.Looked >= 5) != opens || !opens && p.Looked > 0 || p.Assigned == 0 || b.sent[0].Episode != next {
			t.Errorf("withdrawn %v, priority %d: %+v, %+v", withdrawn, priority, p, b.sent)
		}
		for len(b.sent) > 0 {
			b.accept("r")
		}
		b.settle()
		st, err := b.Status(t.Context(), songs)
		b.must(err)
		if want := b.recount(); st.Researched != want.Researched || st.Open != want.Open || st.Closed != want.Closed {
			t.Errorf("withdrawn %v, priority %d: %+v; recounted %+v", withdrawn, priority, st, want)
		}
		b.sound()
	}
	assigned(false, 3, false)
	assigned(true, 3, false)
	assigned(true, 1, false)
	assigned(false, 1, true)
	b.curate(Clip, "new", 0, 0)
	if p := b.pass(); p.Looked < 5 {
		t.Errorf("a new clip: %+v", p)
	}
}
