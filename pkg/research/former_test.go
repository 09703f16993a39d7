package research

import (
	"testing"
	"time"
)

// TestFormerCountAndRecount: a recount that is owed when a deployment is upgraded does not let the one after the
// upgrade skip closed episodes.
func TestFormerCountAndRecount(t *testing.T) {
	b := compared(t, 2, 1)
	b.curate(Episode, "e", 0, 0)
	b.curate(Clip, "c", 5, 0)
	b.curate(Clip, "d", 0, 0)
	b.finds("one", at(10)...)
	b.finds("one", at(10)...)
	b.present("two")
	b.pass()
	b.finds("two", at(20)...)
	b.finds("two", at(20)...)
	b.inState(0, 2, 0, 0, 0)
	b.withdraw("c", true)
	b.withdraw("c", false)
	b.pass() // the walk of closed episodes, by the earlier version
	ctx, e := t.Context(), Key("s", "e")
	p, err := b.projectRow(ctx, songs)
	b.must(err)
	row, err := b.episodeRow(ctx, songs, e)
	b.must(err)
	walk, err := b.walk(ctx, songs)
	b.must(err)
	was := row.CountedDiffer
	row.CountedDiffer, row.CountedWaiting = 0, 0
	walk.Form = 0
	tx := b.Table.Begin(b.NewID())
	tx.Save(row)
	tx.Save(walk)
	tx.Count(generationKey(songs, p.Generation, shard(e)), map[string]int64{"differ_n": -was})
	b.must(tx.Commit(ctx))
	b.clock = b.clock.Add(6 * time.Minute)
	b.later()
	b.later()
	b.inState(0, 2, 0, 0, 0)
}

// TestSecondResultOfAReview: in a project with a review the first result of a pair counts, also in the matrix.
func TestSecondResultOfAReview(t *testing.T) {
	b, _ := reviewing(t, 1, at(10)...)
	b.cells("e 1 [0]")
	_, err := b.Record(t.Context(), Report{Project: songs, Lease: "lost", Researcher: "late",
		Analysis: "any@2", Episode: Key("s", "e"), Sequence: 2, Clip: Key("s", "c"), Hits: at(40, 50, 60)})
	b.must(err)
	b.cells("e 1 [0]")
}
