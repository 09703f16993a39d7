package researchsim

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/lease"
	"archivist/pkg/kernel/table"
	"archivist/pkg/kernel/table/tabletest"
	"archivist/pkg/research"
	"archivist/test/adversary/seeds"
)

// newStore is a store of a process on a table.
func newStore(t *table.Table, now func() time.Time, newID func() string) *research.Store {
	return &research.Store{Table: t, Leases: &lease.Store{Table: t, Now: now, NewID: newID}, Now: now, NewID: newID,
		Times: research.Default, Projects: []string{songs},
		Analyses: map[string]func([]byte) error{"any": func([]byte) error { return nil }},
		Send:     func(context.Context, research.Message) error { return nil }}
}

func project(version, maxClips int) research.Project {
	return research.Project{Name: songs, MaxClips: maxClips,
		Analysis: research.Analysis{Name: "any", Version: fmt.Sprint(version)}}
}

// history is one random history: the store, and the reference.
type history struct {
	*research.Store
	t       testing.TB
	rng     *rand.Rand
	clock   time.Time
	ids     int
	ref     *reference
	check   *checker
	sent    []research.Message
	version int
	reports []research.Report // that were made
	story   []string
	passed  int
}

func newHistory(t testing.TB, seed uint64) *history {
	h := &history{t: t, rng: rand.New(rand.NewPCG(seed, 14)), clock: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
	now := func() time.Time { return h.clock }
	fake := tabletest.New()
	h.check = newChecker(now)
	fake.Watch = h.check.commit
	h.Store = newStore(tabletest.Table(fake), now, func() string { h.ids++; return fmt.Sprintf("id%06d", h.ids) })
	h.Send = func(_ context.Context, m research.Message) error { h.sent = append(h.sent, m); return nil }
	h.ref = &reference{now: func() int64 { return h.clock.UnixMilli() }, times: h.Times,
		episodes: map[string]*thing{}, clips: map[string]*thing{}, researched: map[[3]string]bool{},
		stored: map[string]bool{}, presence: map[string]research.Researcher{}}
	h.apply()
	return h
}

func (h *history) must(err error) {
	if err == nil {
		err = h.check.err
	}
	if err != nil {
		h.t.Fatalf("%s\n%v", strings.Join(h.story, "\n"), err)
	}
}

var person = research.By{Actor: "ann", Reason: "a test"}

func (h *history) tell(format string, args ...any) {
	h.story = append(h.story, fmt.Sprintf(format, args...))
}

// apply begins a new analysis, or changes the size of work items.
func (h *history) apply() {
	if h.version == 0 || h.rng.IntN(3) == 0 {
		h.version++
	}
	p := project(h.version, 1+h.rng.IntN(4))
	h.tell("apply %+v", p)
	h.must(h.Apply(h.t.Context(), p, person))
	h.ref.analysis, h.ref.max = p.Analysis.String(), p.MaxClips
}

// curate says something of an episode or clip, old or new.
func (h *history) curate() {
	c := curated(h.rng, h.clock)
	h.tell("curate %+v", c)
	_, err := h.Curate(h.t.Context(), c, person)
	h.must(err)
	h.ref.curate(c)
}

// curated is something that a curator says.
func curated(rng *rand.Rand, now time.Time) research.Curated {
	c := research.Curated{Project: songs, Kind: research.Episode, Source: "s", ID: fmt.Sprint("e", rng.IntN(4)),
		Curated: now.Add(-time.Duration(rng.IntN(20)) * time.Minute).UnixMilli(), Withdrawn: rng.IntN(8) == 0}
	if rng.IntN(2) == 0 {
		c.Kind, c.ID = research.Clip, fmt.Sprint("c", rng.IntN(6))
	}
	if rng.IntN(2) == 0 {
		p := rng.IntN(4) - 1
		c.Priority = &p
	}
	if rng.IntN(2) == 0 {
		c.Initial = int64(1 + rng.IntN(4))
	}
	c.URL = "https://media.example.org/" + c.ID + []string{"", "", "", "-moved"}[rng.IntN(4)]
	return c
}

// pass makes a pass of both: they make the same work items.
func (h *history) pass() research.Passed {
	n := len(h.sent)
	p, err := h.Pass(h.t.Context(), songs, h.clock.Add(time.Minute))
	h.must(err)
	want := h.ref.pass()
	h.tell("pass %+v", p)
	for i, m := range h.sent[n:] {
		if i >= len(want) || want[i].episode != m.Episode || !slices.Equal(want[i].clips, m.Clips) {
			h.must(fmt.Errorf("work item %d is %+v; the reference has %+v", i, m, list(want)))
		}
		want[i].id = m.Lease
		h.passed++
		h.tell("  %s: %s %v", m.Lease, m.Episode, m.Clips)
	}
	if len(h.sent)-n != len(want) {
		h.must(fmt.Errorf("%d work items; the reference has %+v", len(h.sent)-n, list(want)))
	}
	return p
}

func list(all []*loan) (texts []loan) {
	for _, l := range all {
		texts = append(texts, *l)
	}
	return texts
}

// accept accepts one of the work items that were sent.
func (h *history) accept() {
	if len(h.sent) == 0 {
		return
	}
	l := h.ref.loan(h.sent[h.rng.IntN(len(h.sent))].Lease)
	_, err := h.Accept(h.t.Context(), research.Acceptance{Lease: l.id, Researcher: "r", Token: h.NewID()})
	now := h.ref.now()
	can := h.ref.live(l) && !l.accepted && now < l.queueEnd && l.analysis == h.ref.analysis
	h.tell("accept %s: %v", l.id, err)
	if can != (err == nil) || err != nil && !fault.Is(err, fault.Conflict) {
		h.must(fmt.Errorf("acceptance of %+v: %v", *l, err))
	}
	l.accepted = l.accepted || can
}

// report reports a result: new, of any lease, or one that was reported before.
func (h *history) report() {
	var r research.Report
	switch {
	case len(h.reports) > 0 && h.rng.IntN(5) == 0:
		r = h.reports[h.rng.IntN(len(h.reports))]
	case len(h.ref.loans) == 0:
		return
	default:
		r = h.newReport(h.ref.loans[max(0, len(h.ref.loans)-1-h.rng.IntN(4))])
		h.reports = append(h.reports, r)
	}
	h.tell("report %+v %+v", r, r.Problem)
	_, err := h.Record(h.t.Context(), r)
	h.must(err)
	h.ref.record(r)
}

// newReport is a report of a lease: its next clip, a problem, or its end.
func (h *history) newReport(l *loan) research.Report {
	r := research.Report{Project: songs, Lease: l.id, Researcher: "r", Analysis: l.analysis, Episode: l.episode}
	n := 0
	for _, was := range h.reports {
		if was.Lease == l.id {
			n = max(n, was.Sequence)
		}
	}
	r.Sequence = n + 1
	if n >= len(l.clips) || h.rng.IntN(12) == 0 {
		r.Sequence, r.Final, r.Count = 0, true, n
		return r
	}
	r.Clip = l.clips[n]
	if h.rng.IntN(6) == 0 {
		r.Problem = &research.Problem{Of: string(research.Clip), Kind: research.Failed, Reason: "404 Not Found"}
		if h.rng.IntN(2) == 0 {
			r.Problem.Of, r.Clip = string(research.Episode), ""
		}
		if h.rng.IntN(4) == 0 {
			r.Problem.Kind = research.Rejected
		}
	}
	if n == len(l.clips)-1 {
		r.Final, r.Count = true, r.Sequence
	}
	return r
}

// retry makes something researchable again.
func (h *history) retry() {
	for kind, all := range map[research.Kind]map[string]*thing{research.Episode: h.ref.episodes,
		research.Clip: h.ref.clips} {
		for _, key := range slices.Sorted(maps.Keys(all)) {
			t := all[key]
			if !t.aside && t.deferred == 0 || h.rng.IntN(2) == 0 {
				continue
			}
			err := h.Retry(h.t.Context(), kind, songs, key, person)
			h.tell("retry %s: %v", key, err)
			if t.aside || t.deferred > h.ref.now() {
				h.must(err)
			}
			if err == nil {
				t.pardon()
			} else if !fault.Is(err, fault.Conflict) {
				h.must(err)
			}
		}
	}
}

// govern is what people do, and time.
func (h *history) govern() {
	ctx := h.t.Context()
	switch n := h.rng.IntN(10); {
	case n < 3:
		h.clock = h.clock.Add(time.Duration(h.rng.IntN(70)) * time.Minute)
		h.tell("it is %s", h.clock)
	case n < 5:
		r := research.Researcher{Name: fmt.Sprint("r", h.rng.IntN(2)), Capacity: 1 + h.rng.IntN(2)}
		h.must(h.Heartbeat(ctx, songs, r))
		r.Until = h.ref.now() + h.Times.Presence.Milliseconds()
		h.ref.presence[r.Name] = r
		h.tell("heartbeat %+v", r)
	case n < 6 && len(h.ref.loans) > 0:
		l := h.ref.loans[len(h.ref.loans)-1]
		err := h.Revoke(ctx, l.id, person)
		h.tell("revoke %s: %v", l.id, err)
		if h.ref.live(l) {
			h.must(err)
		}
		l.ended = true
	case n < 7:
		h.retry()
	case n < 8:
		h.must(h.Leave(ctx, songs, "r0"))
		delete(h.ref.presence, "r0")
		h.tell("leave r0")
	case n < 9:
		h.apply()
	case h.ref.paused:
		h.ref.paused = false
		h.must(h.Resume(ctx, songs, person))
		h.tell("resume")
	case h.rng.IntN(3) == 0:
		h.ref.paused = true
		h.must(h.Pause(ctx, songs, person))
		h.tell("pause")
	}
}

// run makes a history.
func (h *history) run(steps int) {
	for range 6 {
		h.curate()
	}
	for range steps {
		switch n := h.rng.IntN(16); {
		case n < 3:
			h.curate()
		case n < 7:
			h.pass()
		case n < 9:
			h.accept()
		case n < 13:
			h.report()
		default:
			h.govern()
		}
		h.must(nil)
	}
	h.pass()
	for changed := true; changed; { // some minutes after the last change of a clip, the pairs are counted again
		h.clock = h.clock.Add(10 * time.Minute)
		changed = h.pass().Ended > 0
	}
	h.must(h.check.counted())
}

// TestRandomHistories: every work item is what the requirement says at that moment, by a reference that looks
// through all episodes and clips.
func TestRandomHistories(t *testing.T) {
	var items atomic.Int64
	played := seeds.Each(t, func(t *seeds.T, seed uint64) {
		h := newHistory(t, seed)
		h.run(24)
		items.Add(int64(h.passed))
	})
	if played.All() >= seeds.Many && items.Load() < int64(played.All()) {
		t.Error("too few work items were made")
	}
	t.Logf("%s: %d work items", played, items.Load())
}

// TestFold: what is known of an episode or clip does not depend on the order of the records, or on how
// often each comes.
func TestFold(t *testing.T) {
	for seed := range uint64(200) {
		foldOnce(t, seed)
	}
}

func foldOnce(t testing.TB, seed uint64) {
	h := newHistory(t, seed)
	var records []research.Curated
	for range 1 + h.rng.IntN(7) {
		c := curated(h.rng, h.clock)
		c.Kind, c.ID, c.Curated = research.Episode, "e", h.clock.UnixMilli()-int64(h.rng.IntN(4))
		records = append(records, c)
	}
	want := folded(records)
	again := append(slices.Clone(records), records[:h.rng.IntN(len(records))]...)
	h.rng.Shuffle(len(again), func(i, k int) { again[i], again[k] = again[k], again[i] })
	for _, c := range again {
		_, err := h.Curate(t.Context(), c, person)
		h.must(err)
	}
	if is := plain(h.check.episodes[research.Key("s", "e")].media); fmt.Sprint(is) != fmt.Sprint(want) {
		h.must(fmt.Errorf("%+v\nbecame %+v\nwant   %+v", again, is, want))
	}
}
