package research

import (
	"testing"
	"time"
)

// states are the numbers of pairs of the project in each state, by its status. They are those of its
// episodes added up, and no pair is counted twice.
func (b *bench) states() (is [5]int64) {
	b.t.Helper()
	st, err := b.Status(b.t.Context(), songs)
	b.must(err)
	is = [5]int64{st.Researched, st.Differ, st.Leased, st.Partial, st.Open}
	var sum [5]int64
	pairs := int64(0)
	for cursor := ""; ; {
		page, next, err := b.List(b.t.Context(), Episode, songs, "", cursor)
		b.must(err)
		for _, k := range page {
			if !k.live() {
				continue
			}
			pairs += k.Pairs
			for i, n := range []int64{k.Researched, k.Differing, k.Leased, k.Waiting, k.Open} {
				sum[i] += n
				pairs -= n
			}
		}
		cursor = next
		if next == "" {
			break
		}
	}
	if sum != is || pairs != 0 || st.Pairs != is[0]+is[1]+is[2]+is[3]+is[4] {
		b.t.Errorf("the status has %v of %d, its episodes %v, and %d pairs in no state", is,
			st.Pairs, sum, pairs)
	}
	return is
}

// inState checks how many pairs are researched, differ, are leased, wait, and are open.
func (b *bench) inState(want ...int64) {
	b.t.Helper()
	if is := b.states(); [5]int64(want) != is {
		b.t.Errorf("researched, differing, leased, waiting, open are %v, should be %v", is, want)
	}
}

// withdraw withdraws the clip of that id.
func (b *bench) withdraw(id string, gone bool) {
	b.t.Helper()
	b.clock = b.clock.Add(time.Second)
	_, err := b.Curate(b.t.Context(), Curated{Project: songs, Kind: Clip, Source: "s", ID: id,
		URL: "https://media.example.org/" + id, Curated: millis(b.clock), Withdrawn: gone}, by)
	b.must(err)
}

// later lets the time pass after which pairs are counted again, and counts them.
func (b *bench) later() {
	b.t.Helper()
	b.clock = b.clock.Add(time.Hour)
	b.pass()
	b.pass()
}

// TestEachPairInOneState: in a project with a quorum each pair is counted once: while it is open,
// leased, waits for another researcher, is leased again, differs, is researched, and is away.
func TestEachPairInOneState(t *testing.T) {
	b := compared(t, 2, 1)
	b.curate(Episode, "e", 0, 0)
	b.curate(Clip, "c", 5, 0)
	b.curate(Clip, "d", 0, 0)
	b.inState(0, 0, 0, 0, 2)
	b.finds("one", at(10)...)
	b.inState(0, 0, 1, 1, 0)
	b.finds("one", at(10)...)
	b.inState(0, 0, 0, 2, 0)
	b.present("two")
	b.pass()
	b.inState(0, 0, 2, 0, 0) // of both there is a result
	b.finds("two", at(20)...)
	b.finds("two", at(10)...)
	b.inState(1, 1, 0, 0, 0)

	b.withdraw("c", true)
	b.later()
	b.inState(1, 0, 0, 0, 0)
	b.withdraw("c", false)
	b.later()
	b.inState(1, 1, 0, 0, 0)

	b.must(b.Decide(t.Context(), songs, Key("s", "e"), Key("s", "c"), Decision{Another: true}, by))
	b.inState(1, 0, 0, 1, 0)
	b.must(b.Apply(t.Context(), Project{Name: songs, Quorum: 2, MaxClips: 1,
		Analysis: Analysis{Name: "any", Version: "9"}}, by))
	b.inState(0, 0, 0, 0, 2)
}

// TestPairsOfAnEarlierVersion: an earlier version of the program has counted only the pairs that are
// researched. They are counted again, once, and the status says so until then.
func TestPairsOfAnEarlierVersion(t *testing.T) {
	b := compared(t, 2, 1)
	b.curate(Episode, "e", 0, 0)
	b.curate(Clip, "c", 0, 0)
	b.finds("one", at(10)...)
	b.finds("two", at(20)...)
	b.inState(0, 1, 0, 0, 0)

	ctx, e := t.Context(), Key("s", "e")
	p, err := b.projectRow(ctx, songs)
	b.must(err)
	row, err := b.episodeRow(ctx, songs, e)
	b.must(err)
	row.CountedDiffer, row.CountedWaiting = 0, 0
	walk, err := b.walk(ctx, songs)
	b.must(err)
	walk.Form = 0
	tx := b.Table.Begin(b.NewID())
	tx.Save(row)
	tx.Save(walk)
	tx.Count(generationKey(songs, p.Generation, shard(e)), map[string]int64{"differ_n": -1})
	b.must(tx.Commit(ctx))
	if st, err := b.Status(ctx, songs); err != nil || !st.Recounting || st.Differ != 0 {
		t.Errorf("%+v, %v", st, err)
	}

	b.later()
	b.inState(0, 1, 0, 0, 0)
	if st, err := b.Status(ctx, songs); err != nil || st.Recounting {
		t.Errorf("%+v, %v", st, err)
	}
}

// TestDecisions: what waits for a person is counted in each project, by a number of requests that
// does not depend on how much waits; a project that nobody has applied is left out.
func TestDecisions(t *testing.T) {
	b, w := reviewing(t, 2, at(10, 20, 30)...)
	b.must(b.review("ann", Review{Lease: w.Lease.ID, Hit: 1, Accept: true}))
	b.curate(Clip, "d", 0, 0)
	b.finds("r0", at(10)...)
	b.finds("r1", at(20)...)
	b.Projects = append(b.Projects, "nobody")
	all, unread, err := b.Decisions(t.Context())
	b.must(err)
	if len(all) != 1 || unread != 0 || all[0] != (Decisions{Project: songs, Differ: 1,
		Unreviewed: 2}) {
		t.Errorf("%+v, %d", all, unread)
	}
	for n := range mostDecided {
		b.Projects = append(b.Projects, "x"+string(rune('a'+n)))
	}
	if _, unread, err = b.Decisions(t.Context()); err != nil || unread != 2 {
		t.Errorf("%d are unread, %v", unread, err)
	}
}
