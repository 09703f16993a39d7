package research

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"archivist/pkg/events/event"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/table"
)

// reviewing is a bench whose project asks for a review, with one pair "e" and "c" of which these
// places were found.
func reviewing(t *testing.T, quorum int, hits ...Hit) (b *bench, w Work) {
	b = newBench(t)
	b.must(b.Apply(t.Context(), reviewedProject("2", quorum), by))
	b.curate(Episode, "e", 0, 0)
	b.curate(Clip, "c", 0, 0)
	for n := range quorum {
		w = b.finds(fmt.Sprint("r", n), hits...)
	}
	return b, w
}

// reviewedProject is the project, with a review, by a version of its analysis.
func reviewedProject(version string, quorum int) Project {
	return Project{Name: songs, Analysis: Analysis{Name: "any", Version: version}, MaxClips: 10,
		Quorum: quorum,
		Review: true}
}

// review decides about places of the pair "e" and "c", for a person.
func (b *bench) review(person string, r Review) error {
	return b.Review(b.t.Context(), songs, Key("s", "e"), Key("s", "c"), r, By{Actor: person,
		Reason: "I have listened."})
}

// standing checks which places are exported, in seconds, of the episode and of all, and how many
// wait, by each view.
func (b *bench) standing(waiting int, seconds ...int64) {
	b.t.Helper()
	for _, episode := range []string{"", Key("s", "e")} {
		out, err := b.Offsets(b.t.Context(), songs, episode, "")
		b.must(err)
		var is []int64
		for _, f := range out.All {
			is = append(is, f.Offset/1_000_000_000)
		}
		if !slices.Equal(is, seconds) || out.Waiting != waiting {
			b.t.Errorf("exported are %v, %d wait; expected %v, %d", is, out.Waiting, seconds,
				waiting)
		}
	}
	st, err := b.Status(b.t.Context(), songs)
	b.must(err)
	all, _, err := b.Reviews(b.t.Context(), songs, "")
	b.must(err)
	listed := 0
	for _, u := range all {
		listed += u.Waiting
	}
	if st.Unreviewed != int64(waiting) || listed != waiting {
		b.t.Errorf("%d wait by the status, %d by the list; expected %d", st.Unreviewed, listed,
			waiting)
	}
}

// reviewEvents counts the decisions in the history of the episode.
func (b *bench) reviewEvents() (n int) {
	b.t.Helper()
	var rows []event.Row
	_, err := b.Table.Page(b.t.Context(), table.Query{PK: episodeKey(songs, Key("s", "e")).PK,
		Prefix: event.Prefix}, &rows)
	b.must(err)
	for _, r := range rows {
		if r.Type == "episode.reviewed" {
			n++
		}
	}
	return n
}

// TestReview: what was found waits; what a person accepts is exported, what they reject is not. The
// same again changes nothing, and a later decision undoes one, if it says so.
func TestReview(t *testing.T) {
	for _, quorum := range []int{1, 2} {
		b, w := reviewing(t, quorum, at(10, 20, 30)...)
		lease := w.Lease.ID
		b.standing(3)
		if x := b.why(); !strings.Contains(x.Why, "3 of its 3 places wait") ||
			x.Waits != "person" ||
			len(x.Do) != 2 {
			t.Errorf("%+v", x.Part)
		}
		b.must(b.review("ann", Review{Lease: lease, Hit: 2, Accept: true}))
		b.must(b.review("ann", Review{Lease: lease, Hit: 2, Accept: true}))
		b.must(b.review("bob", Review{Lease: lease, Hit: 2, Accept: true}))
		b.standing(2, 20)
		b.must(b.review("ann", Review{Lease: lease})) // rejects all that wait
		b.must(b.review("ann", Review{Lease: lease}))
		b.standing(0, 20)
		err := b.review("bob", Review{Lease: lease, Hit: 1, Accept: true})
		if !fault.Is(err, fault.Conflict) || !strings.Contains(err.Error(),
			"place 1 is rejected already") ||
			!strings.Contains(err.Error(), "by ann") {
			t.Error(err)
		}
		b.must(b.review("bob", Review{Lease: lease, Hit: 1, Accept: true, Change: true}))
		b.must(b.review("bob", Review{Lease: lease, Hit: 2, Change: true}))
		b.standing(0, 10)
		if n := b.reviewEvents(); n != 4 {
			t.Errorf("%d decisions are in the history, of 4", n)
		}
		if x := b.why(); !strings.Contains(x.Why,
			"1 of its 3 places are accepted, last decided by bob") {
			t.Errorf("%+v", x.Part)
		}
		all, _, err := b.Results(t.Context(), songs, Key("s", "e"), "")
		b.must(err)
		reviews := 0
		for _, r := range all {
			if slices.Equal(r.Reviews, []string{"accepted", "rejected", "rejected"}) &&
				r.Lease == lease {
				reviews++
			}
		}
		if reviews != 1 || len(all) != quorum {
			t.Errorf("%+v", all)
		}
		found, _, err := b.ResultsOfClip(t.Context(), songs, Key("s", "c"), "")
		if err != nil || len(found) != quorum || len(found[quorum-1].Reviews) != 3 {
			t.Errorf("%+v, %v", found, err)
		}
	}
}

// TestReviewRefused: a decision that cannot be made says why, and changes nothing.
func TestReviewRefused(t *testing.T) {
	b, w := reviewing(t, 1, at(10)...)
	lease := w.Lease.ID
	b.curate(Clip, "none", -1, 0)
	none := b.finds("r1")
	ctx, e, c := t.Context(), Key("s", "e"), Key("s", "c")
	for _, wrong := range []struct {
		episode, clip string
		r             Review
		reason        string
		kind          fault.Kind
		says          string
	}{
		{e, c, Review{Lease: lease}, "", fault.Invalid, "reason"},
		{e, c, Review{Lease: lease, Hit: 2}, "why", fault.Invalid, "the result has 1 places"},
		{e, c, Review{Lease: lease, Hit: -1}, "why", fault.Invalid, "hit: found -1"},
		{e, c, Review{Lease: "other"}, "why", fault.Conflict,
			"the result of the lease " + lease + " counts"},
		{e, Key("s", "none"), Review{Lease: none.Lease.ID}, "why", fault.Conflict, "has no places"},
		{e, Key("s", "x"), Review{Lease: lease}, "why", fault.NotFound, "clip"},
		{Key("s", "x"), c, Review{Lease: lease}, "why", fault.NotFound, "episode"},
	} {
		err := b.Review(ctx, songs, wrong.episode, wrong.clip, wrong.r, By{Actor: "ann",
			Reason: wrong.reason})
		if !fault.Is(err, wrong.kind) || !strings.Contains(err.Error(), wrong.says) {
			t.Errorf("%+v: %v", wrong, err)
		}
	}
	b.standing(1)
	b.must(b.Apply(ctx, Project{Name: songs, Analysis: Analysis{Name: "any", Version: "3"}}, by))
	if err := b.review("ann", Review{Lease: lease}); !fault.Is(err, fault.Conflict) ||
		!strings.Contains(err.Error(), "asks for no review") {
		t.Error(err)
	}
}

// TestReviewOfReplaced: of a result of an earlier analysis nothing can be accepted any more,
// whether the pair has another result by now or not; and what waited then is not listed any more.
func TestReviewOfReplaced(t *testing.T) {
	b, w := reviewing(t, 1, at(10)...)
	old := w.Lease.ID
	b.must(b.Apply(t.Context(), reviewedProject("3", 1), by))
	err := b.review("ann", Review{Lease: old, Accept: true})
	if !fault.Is(err, fault.Conflict) || !strings.Contains(err.Error(),
		"no result of this pair counts by any@3") {
		t.Error(err)
	}
	b.standing(0)
	w = b.finds("r1", at(50)...)
	err = b.review("ann", Review{Lease: old, Accept: true})
	if !fault.Is(err, fault.Conflict) || !strings.Contains(err.Error(), w.Lease.ID+" counts") {
		t.Error(err)
	}
	b.must(b.review("ann", Review{Lease: w.Lease.ID, Accept: true}))
	b.standing(0, 50)
}

// TestReviewRace: a person who has decided on what another one decides on at the same time is told
// so.
func TestReviewRace(t *testing.T) {
	b, w := reviewing(t, 1, at(10, 20)...)
	slow := b.raced("RESEARCHOPINIONS#", func() {
		b.must(b.review("bob",
			Review{Lease: w.Lease.ID}))
	})
	err := slow.Review(t.Context(), songs, Key("s", "e"), Key("s", "c"), Review{Lease: w.Lease.ID,
		Accept: true}, by)
	if !fault.Is(err, fault.Conflict) || !strings.Contains(err.Error(), "by bob") {
		t.Error(err)
	}
	b.standing(0)
	if n := b.reviewEvents(); n != 1 {
		t.Errorf("%d decisions", n)
	}
}

// TestReviewRequest: a request whose answer was lost is done once, whatever another person has
// changed since.
func TestReviewRequest(t *testing.T) {
	b, w := reviewing(t, 1, at(10)...)
	for _, already := range []bool{false, true} {
		if already {
			b.must(b.review("bob", Review{Lease: w.Lease.ID, Accept: true, Change: true}))
		}
		again := func() error {
			return b.Review(t.Context(), songs, Key("s", "e"), Key("s", "c"),
				Review{Lease: w.Lease.ID, Accept: true, Change: true},
				By{Actor: "ann", Reason: "I have listened.", Request: fmt.Sprint("first", already)})
		}
		b.must(again())
		b.must(b.review("bob", Review{Lease: w.Lease.ID, Change: true}))
		b.must(again())
		b.standing(0)
	}
}

// TestSecondOpinionIsNotReviewed: with a review the first result of a pair counts, and no other one
// can be accepted.
func TestSecondOpinionIsNotReviewed(t *testing.T) {
	b, w := reviewing(t, 1, at(10)...)
	for n := range 2 { // of another lease; and once more of the same
		r := Report{Project: songs, Lease: []string{"lost", w.Lease.ID}[n], Researcher: "late",
			Analysis: "any@2",
			Episode:  Key("s", "e"), Sequence: 2, Clip: Key("s", "c"), Hits: at(40)}
		_, err := b.Record(t.Context(), r)
		b.must(err)
	}
	b.standing(1)
	b.must(b.review("ann", Review{Lease: w.Lease.ID, Accept: true}))
	b.standing(0, 10)
	if err := b.review("ann", Review{Lease: "lost", Accept: true}); !fault.Is(err, fault.Conflict) {
		t.Error(err)
	}
}

// TestReviewIsOfTheAnalysis: it cannot be changed without another version; without it, all places
// count.
func TestReviewIsOfTheAnalysis(t *testing.T) {
	b, _ := reviewing(t, 1, at(10)...)
	p := reviewedProject("2", 1)
	p.Review = false
	if err := b.Apply(t.Context(), p, by); !fault.Is(err, fault.Invalid) ||
		!strings.HasPrefix(err.Error(), "review: ") {
		t.Error(err)
	}
	p.Analysis.Version = "3"
	b.must(b.Apply(t.Context(), p, by))
	b.finds("r", at(20)...)
	b.standing(0, 20)
}

// TestRemarkWhileCounting: the doctor lets the places of a result without marks wait, also of an
// episode whose pairs have to be counted again.
func TestRemarkWhileCounting(t *testing.T) {
	b, w := reviewing(t, 1, at(10, 20)...)
	ctx, e, c := t.Context(), Key("s", "e"), Key("s", "c")
	all, _, err := b.Results(ctx, songs, e, "")
	b.must(err)
	var row pairRow
	b.must(b.Table.Get(ctx, pairKey(songs, e, c), &row))
	tx := b.Table.Begin(b.NewID())
	row.Sequence, row.Marks, row.ListPK, row.ListSK = 0, "", "", ""
	tx.Save(&row)
	tx.Count(generationKey(songs, row.Generation, shard(e)), map[string]int64{"reviews_n": -2})
	b.must(tx.Commit(ctx))
	_, err = b.Curate(ctx, Curated{Project: songs, Kind: Clip, Source: "s", ID: "c", Withdrawn: true,
		URL: "https://media.example.org/c", Curated: millis(b.clock) + 1}, by)
	b.must(err)
	b.must(b.remark(ctx, songs, &row, &all[0]))
	st, err := b.Status(ctx, songs)
	if err != nil || st.Unreviewed != 2 || st.Researched != 0 {
		t.Errorf("%+v, %v", st, err)
	}
	b.must(b.review("ann", Review{Lease: w.Lease.ID, Accept: true}))
}

// TestReviewsWithoutAResult: a pair whose result is gone is named, and the others can be reviewed.
func TestReviewsWithoutAResult(t *testing.T) {
	b, w := reviewing(t, 1, at(10, 20)...)
	b.curate(Clip, "d", 0, 0)
	other := b.finds("r", at(30)...)
	ctx := t.Context()
	p, err := b.projectRow(ctx, songs)
	b.must(err)
	var row pairRow
	b.must(b.Table.Get(ctx, pairKey(songs, Key("s", "e"), Key("s", "c")), &row))
	k := p.resultOf(&row)
	b.must(b.Table.Rows.Delete("pk", k.PK).Range("sk", k.SK).Run(ctx))

	all, _, err := b.Reviews(ctx, songs, "")
	b.must(err)
	if len(all) != 2 {
		t.Fatalf("%+v", all)
	}
	slices.SortFunc(all, func(x, y Unreviewed) int { return len(x.Hits) - len(y.Hits) })
	gone, there := all[0], all[1]
	if gone.Lease != w.Lease.ID || gone.Clip != Key("s", "c") || gone.Waiting != 2 ||
		!strings.Contains(gone.Damage, "is not there") {
		t.Errorf("%+v", gone)
	}
	if there.Lease != other.Lease.ID || there.Damage != "" || len(there.Hits) != 1 {
		t.Errorf("%+v", there)
	}
}
