package research

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/table"
)

// compared is a bench whose project compares the results of some researchers.
func compared(t *testing.T, quorum, maxClips int) *bench {
	b := newBench(t)
	b.must(b.Apply(t.Context(), Project{Name: songs, Analysis: Analysis{Name: "any", Version: "2"}, MaxClips: maxClips,
		Quorum: quorum}, by))
	return b
}

// present says that researchers are present, each for one work item.
func (b *bench) present(names ...string) {
	b.t.Helper()
	for _, name := range names {
		b.must(b.Heartbeat(b.t.Context(), songs, Researcher{Name: name, Capacity: 1}))
	}
}

// at is a result with hits at these seconds.
func at(seconds ...int64) (hits []Hit) {
	for _, s := range seconds {
		hits = append(hits, Hit{Offset: s * 1_000_000_000, Length: 1_000_000_000, Score: 0.9})
	}
	return hits
}

// finds lets a researcher take the next work item, and report the same hits for each clip.
func (b *bench) finds(name string, hits ...Hit) Work {
	b.t.Helper()
	b.present(name)
	b.pass()
	w, err := b.Next(b.t.Context(), songs, Acceptance{Researcher: name, Token: b.NewID()}, sentBox{b})
	b.must(err)
	if w == nil {
		b.t.Fatalf("%s gets no work item", name)
	}
	for i, c := range w.Clips {
		final := i == len(w.Clips)-1
		r := Report{Project: songs, Lease: w.Lease.ID, Researcher: name, Analysis: w.Lease.Analysis,
			Episode: w.Lease.Episode, Sequence: i + 1, Clip: c.Key, Hits: hits, Final: final}
		if final {
			r.Count = i + 1
		}
		_, err := b.Record(b.t.Context(), r)
		b.must(err)
	}
	return *w
}

// idle checks that a researcher gets nothing.
func (b *bench) idle(name string) {
	b.t.Helper()
	b.present(name)
	b.pass()
	w, err := b.Next(b.t.Context(), songs, Acceptance{Researcher: name, Token: b.NewID()}, sentBox{b})
	if w != nil || err != nil {
		b.t.Errorf("%s gets %+v, %v", name, w, err)
	}
}

// why is the explanation of the pair of the episode "e" and the clip "c".
func (b *bench) why() Standing {
	b.t.Helper()
	x, err := b.Standing(b.t.Context(), songs, Key("s", "e"), Key("s", "c"))
	b.must(err)
	return x
}

// TestQuorum: a pair is researched when two researchers have found the same; the second one is never the first, under
// whatever lease. Hits a little apart are the same.
func TestQuorum(t *testing.T) {
	b := compared(t, 2, 10)
	b.curate(Episode, "e", 0, 0)
	b.curate(Clip, "c", 0, 0)
	b.finds("one", at(10, 20)...)
	if why := b.why().Why; !strings.Contains(why, "waits for another researcher") ||
		!strings.Contains(why, "one: 2 hits") {
		t.Error(why)
	}
	b.idle("one")
	_, err := b.Record(t.Context(), Report{Project: songs, Lease: "lost", Researcher: "one", Analysis: "any@2",
		Episode: Key("s", "e"), Sequence: 1, Clip: Key("s", "c"), Hits: at(10, 20)})
	b.must(err)
	if why := b.why().Why; !strings.Contains(why, "waits for another researcher") {
		t.Error("after a second result of the same:", why)
	}
	near := at(20, 10)
	near[0].Offset += 300_000_000
	b.finds("two", near...)
	if x := b.why(); !strings.Contains(x.Why, "is researched") {
		t.Error(x.Why)
	}
	b.idle("three")
	if out, err := b.Offsets(t.Context(), songs, "", ""); err != nil || len(out.All) != 2 {
		t.Errorf("exported: %+v, %v", out, err)
	}
	st, err := b.Status(t.Context(), songs)
	b.must(err)
	if st.Researched != 1 || st.Open != 0 || len(st.Differing) > 0 {
		t.Errorf("%+v", st)
	}
}

// TestDifferences: results that differ wait for a person, who chooses one of them; what was not chosen is not exported,
// nor is what nobody has decided on.
func TestDifferences(t *testing.T) {
	b := compared(t, 2, 10)
	e, c := b.curate(Episode, "e", 0, 0), b.curate(Clip, "c", 0, 0)
	b.finds("one", at(10)...)
	right := b.finds("two", at(10, 40)...)
	offsets := func() (n int) {
		for _, episode := range []string{"", e} {
			out, err := b.Offsets(t.Context(), songs, episode, "")
			b.must(err)
			n += len(out.All)
		}
		return n
	}
	st, err := b.Status(t.Context(), songs)
	b.must(err)
	if len(st.Differing) != 1 || len(st.Differing[0].Results) != 2 || st.Researched != 0 || offsets() != 0 {
		t.Fatalf("%+v, %d exported", st.Differing, offsets())
	}
	if x := b.why(); !strings.Contains(x.Why, "its results differ (one: 1 hits") {
		t.Error(x.Why)
	}
	b.idle("three")
	decide := func(d Decision) error { return b.Decide(t.Context(), songs, e, c, d, by) }
	for _, wrong := range []struct {
		d    Decision
		kind fault.Kind
	}{{Decision{}, fault.Invalid}, {Decision{Lease: "x", Another: true}, fault.Invalid},
		{Decision{Lease: "x"}, fault.NotFound}} {
		if err := decide(wrong.d); !fault.Is(err, wrong.kind) {
			t.Errorf("%+v: %v", wrong.d, err)
		}
	}
	b.must(decide(Decision{Lease: right.Lease.ID}))
	if all, _, _ := b.Differences(t.Context(), songs, ""); len(all) > 0 || offsets() != 4 { // twice two
		t.Errorf("%+v; %d exported", all, offsets())
	}
	if err := decide(Decision{Lease: right.Lease.ID}); !fault.Is(err, fault.Conflict) {
		t.Error(err)
	}
}

// TestDifferencesOfDamage: pairs that cannot be read are named, and the others are listed.
func TestDifferencesOfDamage(t *testing.T) {
	b := compared(t, 2, 1)
	e := b.curate(Episode, "e", 0, 0)
	clips := []string{b.curate(Clip, "c", 0, 0), b.curate(Clip, "d", 0, 0), b.curate(Clip, "f", 0, 0)}
	for range clips {
		b.finds("one", at(10)...)
	}
	for range clips {
		b.finds("two", at(40)...)
	}
	p, err := b.projectRow(t.Context(), songs)
	b.must(err)
	var rows []resultRow
	_, err = b.Table.Page(t.Context(), table.Query{PK: resultsPK(songs, e),
		Prefix: p.def.Analysis.String() + "#" + clips[0] + "#"}, &rows)
	b.must(err)
	b.must(b.Table.Rows.Update("pk", rows[0].PK).Range("sk", rows[0].SK).Set("report_json", "{").Run(t.Context()))
	k := pairKey(songs, e, clips[1])
	b.must(b.Table.Rows.Update("pk", k.PK).Range("sk", k.SK).Set("since_ms", "then").Run(t.Context()))

	st, err := b.Status(t.Context(), songs)
	b.must(err)
	says := map[string]string{clips[0]: "unexpected end of JSON", clips[1]: "cannot be read", clips[2]: ""}
	for _, d := range st.Differing {
		if d.Episode != e || !strings.Contains(d.Damage, says[d.Clip]) ||
			(says[d.Clip] == "") != (len(d.Results) == 2 && d.Damage == "") {
			t.Errorf("%+v", d)
		}
		delete(says, d.Clip)
	}
	if len(says) > 0 {
		t.Errorf("not listed: %v", says)
	}
}

// TestAnother: a person can ask one more researcher, who is neither of the two. It decides, or the person again.
func TestAnother(t *testing.T) {
	for third, done := range map[int64]bool{10: true, 30: false} {
		b := compared(t, 2, 10)
		e, c := b.curate(Episode, "e", 0, 0), b.curate(Clip, "c", 0, 0)
		b.finds("one", at(10)...)
		b.finds("two", at(20)...)
		b.must(b.Decide(t.Context(), songs, e, c, Decision{Another: true}, by))
		b.idle("one")
		b.idle("two")
		b.finds("three", at(third)...)
		st, err := b.Status(t.Context(), songs)
		b.must(err)
		if (st.Researched == 1) != done || (len(st.Differing) == 0) != done {
			t.Errorf("after %d: %d researched, %+v", third, st.Researched, st.Differing)
		}
	}
}

// TestQuorumOrder: pairs without a result come before those with one; and those with one are only handed out as long as
// somebody who is present can take them, however many episodes nobody can take stand before.
func TestQuorumOrder(t *testing.T) {
	b := compared(t, 3, 1)
	b.curate(Clip, "c", 0, 0)
	const episodes = furtherMost + 10
	for i := range episodes {
		b.curate(Episode, fmt.Sprintf("e%02d", i), 0, int64(i+1))
	}
	first, last := "", ""
	for i := range episodes {
		w := b.finds("one", at(1)...)
		if i == 0 {
			first = w.Lease.Episode
		}
		last = w.Lease.Episode
	}
	b.idle("one")
	for range episodes - 1 { // the last one keeps the result of one alone
		b.finds("two", at(1)...)
	}
	b.clock = b.clock.Add(2 * time.Hour)
	b.sent = nil
	for range 3 {
		b.present("one", "two")
		b.pass()
	}
	if len(b.sent) == 0 || b.sent[0].Episode == first {
		t.Fatalf("sent: %+v; %s has the result of one, %s of two", b.sent, last, first)
	}
	b.finds("two", at(1)...)
	for range episodes {
		b.finds("three", at(1)...)
	}
	st, err := b.Status(t.Context(), songs)
	b.must(err)
	if st.Researched != episodes {
		t.Errorf("%+v", st)
	}
}

// TestNotForTheSame: a work item that another has to take stays in the queue, for whoever asks in whatever way.
func TestNotForTheSame(t *testing.T) {
	b := compared(t, 2, 10)
	b.curate(Episode, "e", 0, 0)
	b.curate(Clip, "c", 0, 0)
	b.finds("one", at(1)...)
	b.present("two")
	b.pass()
	if len(b.sent) != 1 {
		t.Fatal(b.sent)
	}
	_, err := b.Accept(t.Context(), Acceptance{Lease: b.sent[0].Lease, Researcher: "one", Token: "t"})
	if !fault.Is(err, fault.Held) {
		t.Error(err)
	}
	b.idle("one")
	b.finds("two", at(1)...)
	if x := b.why(); !strings.Contains(x.Why, "is researched") {
		t.Error(x.Why)
	}
}

// TestQuorumIsOfTheAnalysis: it cannot be changed without another version, and is not stored when it is one.
func TestQuorumIsOfTheAnalysis(t *testing.T) {
	b := compared(t, 2, 10)
	p := Project{Name: songs, Analysis: Analysis{Name: "any", Version: "2"}, Quorum: 3}
	err := b.Apply(t.Context(), p, by)
	if !fault.Is(err, fault.Invalid) || !strings.HasPrefix(err.Error(), "quorum: ") {
		t.Error(err)
	}
	p.Quorum = MaxQuorum + 1
	if err := p.Check(); !fault.Is(err, fault.Invalid) {
		t.Error(err)
	}
	p.Quorum = 1
	b.must(p.Check())
	if text, _ := json.Marshal(p); strings.Contains(string(text), "quorum") {
		t.Errorf("%s", text)
	}
}

// TestResultsSayWhatBecameOfThePair: a result says whether it counts, whether its pair is researched
// by another one, differs, or needs the result of another researcher.
func TestResultsSayWhatBecameOfThePair(t *testing.T) {
	b := compared(t, 2, 1)
	b.curate(Episode, "e", 0, 0)
	b.curate(Clip, "c", 0, 0)
	check := func(want ...string) {
		t.Helper()
		all, _, err := b.Results(t.Context(), songs, Key("s", "e"), "")
		b.must(err)
		slices.SortFunc(all, func(x, y Result) int {
			return cmp.Compare(x.Researcher, y.Researcher)
		})
		var is []string
		for _, r := range all {
			is = append(is, r.Pair)
		}
		if !slices.Equal(is, want) {
			t.Errorf("%v, should be %v", is, want)
		}
	}
	b.finds("one", at(10)...)
	check(pairWaits)
	two := b.finds("two", at(20)...)
	check(pairDiffers, pairDiffers)
	b.must(b.Decide(t.Context(), songs, Key("s", "e"), Key("s", "c"),
		Decision{Lease: two.Lease.ID}, by))
	check(pairResearched, pairCounts)
	b.must(b.Apply(t.Context(), Project{Name: songs, Quorum: 2,
		Analysis: Analysis{Name: "any", Version: "9"}}, by))
	check("", "")
}
