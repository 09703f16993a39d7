package research

import (
	"context"
	"fmt"
	"testing"
	"time"

	"archivist/pkg/kernel/lease"
	"archivist/pkg/kernel/table"
	"archivist/pkg/kernel/table/tabletest"
)

const songs = "songs"

// bench is a store in a process, with a clock and a queue of its own.
type bench struct {
	*Store
	fake  *tabletest.Fake
	t     testing.TB
	clock time.Time
	ids   int
	sent  []Message
}

// newBench makes a project without episodes and clips.
func newBench(t testing.TB) *bench {
	b := &bench{t: t, clock: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
	newID := func() string { b.ids++; return fmt.Sprintf("id%05d", b.ids) }
	now := func() time.Time { return b.clock }
	b.fake = tabletest.New()
	tab := tabletest.Table(b.fake)
	b.Store = &Store{Table: tab, Leases: &lease.Store{Table: tab, Now: now, NewID: newID}, Now: now, NewID: newID,
		Times: Default, Projects: []string{songs},
		Analyses: map[string]func([]byte) error{"any": func([]byte) error { return nil }}}
	b.Send = func(_ context.Context, m Message) error { b.sent = append(b.sent, m); return nil }
	b.must(b.Apply(t.Context(), Project{Name: songs, Analysis: Analysis{Name: "any", Version: "1"}, MaxClips: 2}, by))
	return b
}

var by = By{Actor: "ann", Reason: "a test"}

func (b *bench) must(err error) {
	b.t.Helper()
	if err != nil {
		b.t.Fatal(err)
	}
}

// curate adds an episode or a clip.
func (b *bench) curate(kind Kind, id string, priority int, initial int64) string {
	b.t.Helper()
	key, err := b.Curate(b.t.Context(), Curated{Project: songs, Kind: kind, Source: "s", ID: id, Priority: &priority,
		URL: "https://media.example.org/" + id, Curated: millis(b.clock), Initial: initial}, by)
	b.must(err)
	return key
}

// pass makes one pass of the assigner.
func (b *bench) pass() Passed {
	b.t.Helper()
	p, err := b.Pass(b.t.Context(), songs, b.clock.Add(time.Minute))
	b.must(err)
	return p
}

// accept accepts the work item that was sent first.
func (b *bench) accept(name string) Work {
	b.t.Helper()
	m := b.sent[0]
	b.sent = b.sent[1:]
	w, err := b.Accept(b.t.Context(), Acceptance{Lease: m.Lease, Researcher: name, Token: b.NewID()})
	b.must(err)
	return w
}

// report reports one clip of a work item.
func (b *bench) report(w Work, i int, final bool) Recording {
	b.t.Helper()
	r := Report{Project: songs, Lease: w.Lease.ID, Researcher: "r", Analysis: w.Lease.Analysis,
		Episode: w.Lease.Episode, Sequence: i + 1, Clip: w.Clips[i].Key,
		Hits: []Hit{{Offset: 5, Length: 7, Score: 1}}, Final: final}
	if final {
		r.Count = len(w.Clips)
	}
	done, err := b.Record(b.t.Context(), r)
	b.must(err)
	return done
}

// TestCapacitySurplus: the requirement's loop, with its examples ("Checking Capacity").
func TestCapacitySurplus(t *testing.T) {
	for _, c := range []struct {
		researchers, items, surplus int
		add                         bool
	}{
		{0, 0, 0, true}, {0, 1, -1, false}, {0, 7, -7, false}, {3, 4, -1, false}, {1, 1, 0, true}, {5, 2, 3, true},
		{1, 0, 1, true}, {1, 2, -1, false}, {2, 2, 0, true},
	} {
		surplus, add := CapacitySurplus(c.researchers, c.items)
		if surplus != c.surplus || add != c.add {
			t.Errorf("%d researchers, %d items: %d %v, want %d %v", c.researchers, c.items, surplus, add, c.surplus,
				c.add)
		}
	}
}

// TestAllResearched: two researchers work until each pair of three episodes and three clips is researched.
func TestAllResearched(t *testing.T) {
	b := newBench(t)
	for i := range 3 {
		b.curate(Episode, fmt.Sprint("e", i), i, 0)
		b.curate(Clip, fmt.Sprint("c", i), 0, int64(1+i))
	}
	b.must(b.Heartbeat(t.Context(), songs, Researcher{Name: "r", Capacity: 1}))
	pairs := map[string]int{}
	for rounds := 0; ; rounds++ {
		p := b.pass()
		if len(b.sent) == 0 {
			t.Logf("%d rounds, %+v", rounds, p)
			break
		}
		w := b.accept("r")
		for i, c := range w.Clips {
			pairs[w.Episode.ID+" "+c.ID]++
			done := b.report(w, i, i == len(w.Clips)-1)
			if done.Ended != (i == len(w.Clips)-1) {
				t.Errorf("report %d of %+v: %+v", i, w.Lease, done)
			}
		}
		b.must(b.Heartbeat(t.Context(), songs, Researcher{Name: "r", Capacity: 1}))
		if rounds > 20 {
			t.Fatal("it does not end")
		}
	}
	for pair, n := range pairs {
		if n != 1 {
			t.Errorf("%s was researched %d times", pair, n)
		}
	}
	if len(pairs) != 9 {
		t.Errorf("researched: %v", pairs)
	}
	var places, rounds []placesRow
	_, err := b.Table.Page(t.Context(), tableQuery(countsPK(songs), "places"), &places)
	b.must(err)
	var n placesRow
	for _, r := range places {
		n.Ready, n.Closed, n.Away = n.Ready+r.Ready, n.Closed+r.Closed, n.Away+r.Away
	}
	if n.Ready != 0 || n.Closed != 3 || n.Away != 0 {
		t.Errorf("places %+v of %d rows", n, len(rounds))
	}
	b.curate(Clip, "new", 9, 9)
	p := b.pass()
	first := Message{}
	if len(b.sent) > 0 {
		first = b.sent[0]
	}
	if p.Looked == 0 || first.Clips[0] != Key("s", "new") || first.Episode != Key("s", "e2") {
		t.Errorf("after a new clip: %+v %+v", p, b.sent)
	}
}

func tableQuery(pk, prefix string) table.Query { return table.Query{PK: pk, Prefix: prefix} }
