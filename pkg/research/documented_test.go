package research

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"archivist/pkg/kernel/lease"
	"archivist/pkg/kernel/table/tabletest"
)

// TestLeaseTimes: docs/research.md, "How work is assigned": a lease of 2 hours; a result extends it to 30 minutes from
// then, at most to 12 hours in all.
func TestLeaseTimes(t *testing.T) {
	b := newBench(t)
	b.must(b.Apply(t.Context(), Project{Name: songs, Analysis: Analysis{Name: "any", Version: "1"}, MaxClips: 100}, by))
	b.curate(Episode, "e", 0, 0)
	for n := range 30 {
		b.curate(Clip, fmt.Sprint("c", n), 0, 0)
	}
	b.pass()
	w, began := b.accept("r"), b.clock
	until := func(d time.Duration, when string) {
		t.Helper()
		l, err := b.Lease(t.Context(), w.Lease.ID)
		b.must(err)
		if got := time.UnixMilli(l.Until).Sub(began); got != d || l.Ended != 0 {
			t.Fatalf("%s the lease is until %s, expected %s; %+v", when, got, d, l)
		}
	}
	until(2*time.Hour, "at first")
	b.clock = began.Add(time.Hour)
	b.report(w, 0, false)
	until(2*time.Hour, "after a result in its first half")
	for n := 1; n <= 23; n++ { // at 1:55, 2:24, … 11:46:
		b.clock = began.Add(115*time.Minute + time.Duration(n-1)*29*time.Minute)
		if b.clock.After(began.Add(11*time.Hour + 30*time.Minute)) {
			break
		}
		b.report(w, n, false)
		until(b.clock.Sub(began)+30*time.Minute, "after a result")
	}
	b.clock = began.Add(11*time.Hour + 31*time.Minute)
	b.report(w, 25, false)
	until(12*time.Hour, "after a result in its last half hour")
	b.clock = began.Add(12*time.Hour + time.Minute)
	b.pass()
	if len(b.sent) != 1 {
		t.Errorf("%d work items for what it has left", len(b.sent))
	}
}

// TestDeferral: docs/research.md, "When something fails": what cannot be read is deferred for 10 minutes, then for four
// times as long each time; the third failure within a day quarantines it if not all are of one researcher, and a
// failure of the day before does not count.
func TestDeferral(t *testing.T) {
	for _, of := range []Kind{Episode, Clip} {
		b := newBench(t)
		b.curate(Episode, "e", 0, 0)
		b.curate(Clip, "c", 0, 0)
		fails := func(by string) { t.Helper(); b.pass(); b.problem(b.accept(by), 1, of, Failed) }
		waits := func(d time.Duration) {
			t.Helper()
			b.clock = b.clock.Add(d - time.Second)
			b.pass()
			if len(b.sent) != 0 {
				t.Fatalf("%s: assigned before %s", of, d)
			}
			b.clock = b.clock.Add(2 * time.Second)
			b.pass()
			if len(b.sent) != 1 {
				t.Fatalf("%s: not assigned after %s", of, d)
			}
		}
		fails("r")
		waits(10 * time.Minute)
		fails("r")
		b.clock = b.clock.Add(25 * time.Hour)
		fails("r") // those of the day before do not count
		waits(10 * time.Minute)
		fails("r")
		waits(40 * time.Minute)
		fails("r")
		waits(160 * time.Minute)
		fails("another")
		b.clock = b.clock.Add(30 * 24 * time.Hour)
		b.pass()
		if len(b.sent) != 0 {
			t.Errorf("%s: assigned after the third failure within a day", of)
		}
	}
}

// TestSecondOpinion: docs/research.md, "Results and views": a pair is researched once it has a result, even while
// another researcher has a lease on it; what that one finds is kept as well.
func TestSecondOpinion(t *testing.T) {
	b := newBench(t)
	episode := b.curate(Episode, "e", 0, 0)
	b.curate(Clip, "c", 0, 0)
	b.pass()
	late := b.accept("r")
	b.clock = b.clock.Add(3 * time.Hour)
	b.pass()
	other := b.accept("r")
	b.report(late, 0, true)
	if done := b.report(other, 0, true); done.Known || !done.Ended {
		t.Errorf("the second result: %+v", done)
	}
	all, _, err := b.Results(t.Context(), songs, episode, "")
	b.must(err)
	if len(all) != 2 || all[0].Lease == all[1].Lease {
		t.Errorf("the results are %+v", all)
	}
	b.clock = b.clock.Add(3 * time.Hour)
	b.pass()
	if len(b.sent) != 0 {
		t.Error("a researched pair was assigned")
	}
}

// TestFailedPass: a pass that fails gives its lease back, so that the next one need not wait.
func TestFailedPass(t *testing.T) {
	b := newBench(t)
	b.curate(Episode, "e", 0, 0)
	b.curate(Clip, "c", 0, 0)
	down := &tabletest.Client{DynamoDBAPI: b.fake, Do: func(_ string, call func() error) error { return call() },
		Refuse: func(partition string) error {
			if strings.HasPrefix(partition, linePK(songs)) {
				return errors.New("the line cannot be read")
			}
			return nil
		}}
	tab := tabletest.Table(down)
	failing := &Store{Table: tab, Leases: &lease.Store{Table: tab, Now: b.Now, NewID: b.NewID}, Now: b.Now,
		NewID: b.NewID, Times: b.Times, Projects: b.Projects, Analyses: b.Analyses, Send: b.Send}
	if _, err := failing.Pass(t.Context(), songs, b.clock.Add(time.Minute)); err == nil {
		t.Fatal("the pass did not fail")
	}
	if p := b.pass(); p.Busy || p.Assigned != 1 {
		t.Errorf("the next pass: %+v", p)
	}
}

// TestSentOnce: a work item that was accepted is not sent again, although its archivist died before it had noted that
// it was sent, and whenever it is accepted.
func TestSentOnce(t *testing.T) {
	b := newBench(t)
	b.curate(Episode, "e", 0, 0)
	b.curate(Clip, "c", 0, 0)
	send := b.Send
	b.Send = func(ctx context.Context, m Message) error {
		_ = send(ctx, m)
		return errors.New("the answer is lost")
	}
	if _, err := b.Pass(t.Context(), songs, b.clock.Add(time.Minute)); err == nil || len(b.sent) != 1 {
		t.Fatalf("%d messages, %v", len(b.sent), err)
	}
	b.Send = send
	lease := b.sent[0].Lease
	slow := b.raced(leaseKey(lease).PK, func() { b.accept("r") })
	p, err := slow.Pass(t.Context(), songs, b.clock.Add(time.Minute))
	b.must(err)
	if p.Resent != 0 || len(b.sent) != 0 {
		t.Errorf("%+v, sent again: %+v", p, b.sent)
	}
}

// TestExtensionOfEpisode: an extension of a lease is known to its episode, whose leases are part of its row.
func TestExtensionOfEpisode(t *testing.T) {
	b := newBench(t)
	key := b.curate(Episode, "e", 0, 0)
	b.curate(Clip, "c0", 0, 0)
	b.curate(Clip, "c1", 0, 0)
	b.pass()
	w := b.accept("r")
	b.clock = b.clock.Add(119 * time.Minute)
	b.report(w, 0, false)
	l, err := b.Lease(t.Context(), w.Lease.ID)
	b.must(err)
	all, err := b.read(t.Context(), episodeKey(songs, key))
	b.must(err)
	e, err := all.episode(songs, key)
	b.must(err)
	if len(e.Leased) != 1 || e.Leased[0].Until != l.Until || l.Until == w.Lease.Until {
		t.Errorf("the episode has %+v; the lease is until %d, at first until %d", e.Leased, l.Until, w.Lease.Until)
	}
}

// TestWithdrawnWhileClockGoesBack: pairs are counted again after each withdrawal, whatever the clock does between them.
func TestWithdrawnWhileClockGoesBack(t *testing.T) {
	b := newBench(t)
	b.curate(Episode, "e", 0, 0)
	b.curate(Clip, "c0", 0, 0)
	b.curate(Clip, "c1", 0, 0)
	b.pass()
	w := b.accept("r")
	b.report(w, 0, false)
	b.report(w, 1, true)
	withdraw := func(id string) {
		_, err := b.Curate(t.Context(), Curated{Project: songs, Kind: Clip, Source: "s", ID: id, Withdrawn: true,
			URL: "https://media.example.org/" + id, Curated: millis(b.clock)}, by)
		b.must(err)
	}
	b.clock = b.clock.Add(time.Hour)
	withdraw("c0")
	b.settle()
	b.clock = b.clock.Add(-30 * time.Minute)
	withdraw("c1")
	b.clock = b.clock.Add(time.Hour)
	b.settle()
	st, err := b.Status(t.Context(), songs)
	b.must(err)
	if st.Researched != 0 || st.Pairs != 0 {
		t.Errorf("%d of %d pairs are researched, of no clip", st.Researched, st.Pairs)
	}
}
