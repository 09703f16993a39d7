package research

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/RoaringBitmap/roaring/v2"

	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/lease"
	"archivist/pkg/kernel/table/tabletest"
)

// raced makes the next store of the bench one whose reads of partitions with a prefix are preceded by
// something else, once. Rows that are asked for together are read one by one.
func (b *bench) raced(prefix string, meanwhile func()) *Store {
	done := false
	client := &tabletest.Client{DynamoDBAPI: b.fake, Do: func(_ string, call func() error) error { return call() },
		Refuse: func(partition string) error {
			if !done && strings.HasPrefix(partition, prefix) {
				done = true
				meanwhile()
			}
			return nil
		}, Order: func([]tabletest.Item) {}}
	tab := tabletest.Table(client)
	s := b.Store
	return &Store{Table: tab, Leases: &lease.Store{Table: tab, Now: s.Now, NewID: s.NewID}, Now: s.Now, NewID: s.NewID,
		Times: s.Times, Projects: s.Projects, Analyses: s.Analyses, Send: s.Send, catalogs: s.catalogs}
}

// TestExpiryDuringPass: a lease that runs out while work is being assigned is ended before its pairs are
// given to another, so a result that was on the way cannot extend it any more.
func TestExpiryDuringPass(t *testing.T) {
	b := newBench(t)
	b.curate(Episode, "e", 0, 0)
	b.curate(Clip, "c0", 2, 0)
	b.curate(Clip, "c1", 1, 0)
	b.curate(Clip, "c2", 0, 0)
	b.pass()
	w := b.accept("r")
	b.clock = time.UnixMilli(w.Lease.Until).Add(-time.Second)
	slow := b.raced("EPISODE#", func() {
		racing := b.raced("RESEARCHERS#", func() { b.clock = b.clock.Add(2 * time.Second) })
		_, err := racing.Pass(t.Context(), songs, b.clock.Add(time.Minute))
		b.must(err)
	})
	_, err := slow.Record(t.Context(), Report{Project: songs, Lease: w.Lease.ID, Researcher: "r",
		Analysis: w.Lease.Analysis, Episode: w.Lease.Episode, Sequence: 1, Clip: w.Clips[0].Key})
	b.must(err)
	live := map[string]string{}
	for _, m := range append(b.sent, Message{Lease: w.Lease.ID}) {
		l, err := b.Lease(t.Context(), m.Lease)
		b.must(err)
		for _, clip := range l.Clips {
			if !l.Live(b.now()) {
				continue
			}
			if live[clip] != "" {
				t.Errorf("clip %s is under the leases %s and %s", clip, live[clip], l.ID)
			}
			live[clip] = l.ID
		}
	}
}

// TestCatalogMoves: a clip that changes while the catalog is read moves in it, and is not missed.
func TestCatalogMoves(t *testing.T) {
	b := newBench(t)
	b.curate(Clip, "a", 0, 0)
	b.curate(Clip, "b", 0, 0)
	say := func(id string, priority int, withdrawn bool) {
		b.clock = b.clock.Add(time.Second)
		_, err := b.Curate(t.Context(), Curated{Project: songs, Kind: Clip, Source: "s", ID: id, Priority: &priority,
			URL: "https://media.example.org/" + id, Curated: millis(b.clock), Withdrawn: withdrawn}, by)
		b.must(err)
	}
	_, known, err := b.load(t.Context(), songs) // of a process that sleeps now
	b.must(err)
	say("a", 0, true)
	say("b", 1, false)
	b.curate(Clip, "c", 0, 0)
	racing := b.raced("CLIPS#", func() { say("a", 5, true) })
	racing.catalogs = map[string]*catalog{songs: known}
	p, c, err := racing.load(t.Context(), songs)
	b.must(err)
	due := keysOf(c.due(roaring.New(), 3))
	if c.number != p.Catalog || c.clips.Len() != 3 || !slices.Equal(due, []string{Key("s", "b"), Key("s", "c")}) {
		t.Errorf("catalog %d of %d: %+v", c.number, p.Catalog, due)
	}
}

// TestClipComesMeanwhile: an episode with which nothing is to be compared is closed only if no clip has come since that
// was decided: the assigner has looked at all closed episodes by then, and would not look again.
func TestClipComesMeanwhile(t *testing.T) {
	b := newBench(t)
	racing := b.raced("RESEARCHLINE#", func() {
		b.curate(Clip, "c", 0, 0)
		b.pass()
	})
	_, err := racing.Curate(t.Context(), Curated{Project: songs, Kind: Episode, Source: "s", ID: "e",
		URL: "https://media.example.org/e", Curated: millis(b.clock)}, by)
	b.must(err)
	b.pass()
	if len(b.sent) != 1 {
		t.Errorf("%d work items were sent for one episode and one clip", len(b.sent))
	}
}

// TestSettingsOtherwiseWritten: settings that say the same in another order are the same, and so are none.
func TestSettingsOtherwiseWritten(t *testing.T) {
	b := newBench(t)
	p := Project{Name: songs, Analysis: Analysis{Name: "any", Version: "2", Settings: map[string]any{"a": "<", "b": 1}}}
	b.must(b.Apply(t.Context(), p, by))
	p.Description = "changed"
	if err := json.Unmarshal([]byte(`{"b": 1.0, "a": "<"}`), &p.Analysis.Settings); err != nil {
		t.Fatal(err)
	}
	b.must(b.Apply(t.Context(), p, by))
	p.Analysis.Settings = map[string]any{"a": "="}
	err := b.Apply(t.Context(), p, by)
	if !fault.Is(err, fault.Invalid) {
		t.Error("other settings:", err)
	}
	p.Analysis = Analysis{Name: "any", Version: "3", Settings: map[string]any{}}
	b.must(b.Apply(t.Context(), p, by))
	p.Analysis.Settings = nil
	b.must(b.Apply(t.Context(), p, by))
}

// TestEarlierAnalysis: a result of an earlier analysis counts for that; one of no analysis of the project is
// refused; and a repeated acceptance does not go with the settings of another analysis.
func TestEarlierAnalysis(t *testing.T) {
	b := newBench(t)
	e := b.curate(Episode, "e", 0, 0)
	b.curate(Clip, "c", 0, 0)
	b.pass()
	m := b.sent[0]
	a := Acceptance{Lease: m.Lease, Researcher: "r", Token: "t"}
	w, err := b.Accept(t.Context(), a)
	b.must(err)
	b.must(b.Apply(t.Context(), Project{Name: songs, Analysis: Analysis{Name: "any", Version: "2"}}, by))
	_, err = b.Accept(t.Context(), a)
	if !fault.Is(err, fault.Conflict) {
		t.Error("an acceptance of an earlier analysis:", err)
	}
	b.report(w, 0, true)
	_, err = b.Record(t.Context(), Report{Project: songs, Lease: "x", Researcher: "r", Analysis: "any@9", Episode: e,
		Sequence: 1, Clip: w.Clips[0].Key})
	if !fault.Is(err, fault.Invalid) {
		t.Error("a result of an unknown analysis:", err)
	}
	for generation, want := range map[int64]generationRow{1: {Results: 1}, 2: {}} {
		var row generationRow
		b.must(b.Table.Get(t.Context(), generationKey(songs, generation, shard(e)), &row))
		if row.Results != want.Results || row.Pairs != want.Pairs {
			t.Errorf("generation %d: %+v", generation, row)
		}
	}
}

// TestDamagedDue: a row in the line that cannot be ended does not hold up a pass.
func TestDamagedDue(t *testing.T) {
	b := newBench(t)
	b.curate(Episode, "e", 0, 0)
	b.curate(Clip, "c", 0, 0)
	b.pass()
	tx := b.Table.Begin("damage")
	k := lineKey(songs, dueKey(1, "lease", b.sent[0].Lease))
	row := lineRow{Owner: b.sent[0].Lease}
	row.PK, row.SK = k.PK, k.SK
	tx.Insert(&row)
	b.must(tx.Commit(t.Context()))
	lost := b.Table.Begin("more damage")
	for _, sk := range []string{dueKey(2, "lease", "lost"), pendingKey(millis(b.clock)+60_000, "lost")} {
		k := lineKey(songs, sk)
		row := lineRow{Owner: "lost"}
		row.PK, row.SK = k.PK, k.SK
		lost.Insert(&row)
	}
	b.must(lost.Commit(t.Context()))
	asked := 0
	s := b.raced("none", nil)
	s.Now = func() time.Time {
		asked++
		if asked > 1000 {
			panic("the pass does not end")
		}
		return b.clock
	}
	_, err := s.Pass(context.Background(), songs, b.clock.Add(time.Minute))
	b.must(err)
}

// TestPassThatLostItsLease: a pass that took so long that another one has begun does not say how far it has looked.
func TestPassThatLostItsLease(t *testing.T) {
	b := newBench(t)
	b.curate(Episode, "e", 0, 0)
	b.curate(Clip, "c", 0, 0)
	b.Send = func(ctx context.Context, _ Message) error {
		b.clock = b.clock.Add(2 * b.Times.Pass)
		_, err := b.Leases.Acquire(ctx, "research-"+songs, b.Times.Pass)
		return err
	}
	_, err := b.Pass(t.Context(), songs, b.clock.Add(time.Hour))
	if !fault.Is(err, fault.Stale) || b.fake.Row(walkKey(songs)) != nil {
		t.Errorf("%v; the walk is %v", err, b.fake.Row(walkKey(songs)))
	}
}
