package research

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"archivist/pkg/kernel/fault"
)

// recount counts the pairs of the project by their explanations.
func (b *bench) recount() (st Status) {
	b.t.Helper()
	live := func(k Known) bool { return k.State != Quarantined && k.State != Deferred && k.State != Withdrawn }
	clips := b.listAll(Clip, "")
	for _, e := range b.listAll(Episode, "") {
		switch {
		case !live(e):
			st.Away++
			continue
		case e.State == Ready:
			st.Ready++
		default:
			st.Closed++
		}
		of := Known{}
		for _, c := range clips {
			if !live(c) {
				continue
			}
			x, err := b.Standing(b.t.Context(), songs, e.Key, c.Key)
			b.must(err)
			of.Pairs++
			switch {
			case x.Lease != nil:
				of.Leased++
			case x.Due:
				st.Open++
			case len(x.Results) > 0:
				of.Researched++
			default:
				b.t.Errorf("%s %s: %+v", e.Key, c.Key, x)
			}
		}
		if of.Pairs != e.Pairs || of.Leased != e.Leased || of.Researched != e.Researched {
			b.t.Errorf("%s: %+v, counted %+v", e.ID, e, of)
		}
		st.Pairs, st.Researched, st.Leased = st.Pairs+of.Pairs, st.Researched+of.Researched, st.Leased+of.Leased
	}
	return st
}

// listAll reads all pages of a list.
func (b *bench) listAll(kind Kind, state State) (all []Known) {
	b.t.Helper()
	for cursor := ""; ; {
		page, next, err := b.List(b.t.Context(), kind, songs, state, cursor)
		b.must(err)
		all = append(all, page...)
		if next == "" {
			return all
		}
		cursor = next
	}
}

// TestStatusIsARecount: at any moment of random histories the numbers are those of a count of all pairs.
func TestStatusIsARecount(t *testing.T) {
	for seed := range uint64(6) {
		r := rand.New(rand.NewPCG(seed, 1))
		b := newBench(t)
		works := []Work{}
		for step := range 50 {
			b.clock = b.clock.Add(time.Duration(r.IntN(20)) * time.Minute)
			switch r.IntN(6) {
			case 0, 1:
				b.curate(Episode, fmt.Sprint("e", r.IntN(6)), r.IntN(3), 0)
			case 2:
				b.curate(Clip, fmt.Sprint("c", r.IntN(6)), r.IntN(3), 0)
			case 3:
				b.must(b.Heartbeat(t.Context(), songs, Researcher{Name: "r", Capacity: 2}))
				b.pass()
				for len(b.sent) > 0 {
					works = append(works, b.accept("r"))
				}
			case 4:
				if len(works) > 0 {
					w := works[0]
					works = works[1:]
					for i := range w.Clips {
						b.report(w, i, i == len(w.Clips)-1)
					}
				}
			case 5:
				if len(works) > 0 {
					b.problem(works[0], 1, []Kind{Episode, Clip}[r.IntN(2)], []string{Rejected, Failed}[r.IntN(2)])
					works = works[1:]
				}
			}
			if step%5 != 4 {
				continue
			}
			b.settle()
			st, err := b.Status(t.Context(), songs)
			b.must(err)
			want := b.recount()
			got := Status{Ready: st.Ready, Closed: st.Closed, Away: st.Away, Pairs: st.Pairs, Researched: st.Researched,
				Leased: st.Leased, Open: st.Open}
			if fmt.Sprint(got) != fmt.Sprint(want) || st.Recounting {
				t.Fatalf("seed %d, step %d:\n%+v\ncounted\n%+v", seed, step, got, want)
			}
			if all := b.listAll(Episode, ""); int64(len(all)) != st.Ready+st.Closed+st.Away {
				t.Fatalf("seed %d, step %d: %d episodes are listed of %+v", seed, step, len(all), st)
			}
			n := len(b.listAll(Clip, Live))
			if int64(n) != st.Clips || len(b.listAll(Clip, "")) != n+int(st.ClipsAway) {
				t.Fatalf("seed %d, step %d: %d clips are listed of %+v", seed, step, n, st)
			}
		}
	}
}

// settle lets the assigner count again what a change of the clips has made out of date. Work items that it
// assigns meanwhile are lost.
func (b *bench) settle() {
	b.t.Helper()
	for range 10 {
		b.clock = b.clock.Add(settled)
		b.pass()
		b.sent = nil
		st, err := b.Status(b.t.Context(), songs)
		b.must(err)
		if !st.Recounting {
			return
		}
	}
	b.t.Fatal("the assigner counts for ever")
}

// TestRate: the results of the last hour are those of the last hour, and the time to the end follows.
func TestRate(t *testing.T) {
	b := newBench(t)
	for i := range 12 {
		b.curate(Clip, fmt.Sprint("c", i), 0, 0)
	}
	b.curate(Episode, "e", 0, 0)
	check := func(hour int64, left time.Duration) {
		t.Helper()
		st, err := b.Status(t.Context(), songs)
		b.must(err)
		if st.LastHour != hour || st.Remaining != left {
			t.Errorf("%d in the last hour, %s left; want %d, %s", st.LastHour, st.Remaining, hour, left)
		}
	}
	b.pass()
	check(0, 0)
	for range 2 {
		w := b.accept("r")
		b.report(w, 0, false)
		b.report(w, 1, true)
		b.clock = b.clock.Add(20 * time.Minute)
		b.pass()
	}
	check(4, 2*time.Hour)
	b.pass()
	b.clock = b.clock.Add(50 * time.Minute)
	b.pass()
	b.clock = b.clock.Add(40 * time.Minute)
	check(0, 0)
}

// TestExplain: each reason is found.
func TestExplain(t *testing.T) {
	b := newBench(t)
	e, c := b.curate(Episode, "e", 0, 0), b.curate(Clip, "c", 0, 0)
	b.curate(Episode, "first", 9, 0)
	check := func(why string) {
		t.Helper()
		x, err := b.Standing(t.Context(), songs, e, c)
		b.must(err)
		if !strings.HasPrefix(x.Why, why) || x.Due != strings.HasPrefix(why, "it is due") {
			t.Errorf("%q, want %q (%+v)", x.Why, why, x)
		}
	}
	check("it is due, but no researcher is present")
	b.must(b.Heartbeat(t.Context(), songs, Researcher{Name: "r", Capacity: 2}))
	check("it is due: 1 episodes and 0 clips")
	b.must(b.Pause(t.Context(), songs, by))
	check("it is due, but the project is paused: ann: a test")
	b.must(b.Resume(t.Context(), songs, by))
	b.pass()
	check("it is under the lease id")
	b.accept("r")
	w := b.accept("r")
	x, err := b.Standing(t.Context(), songs, e, c)
	if err != nil || x.Lease.Researcher != "r" || !strings.HasSuffix(x.Why, ": accepted by r") {
		t.Errorf("%+v, %v", x, err)
	}
	b.clock = b.clock.Add(2 * time.Hour)
	check("it is under the lease " + w.Lease.ID + " until 2026-01-01T02:00:00Z: accepted by r; its time is over")
	b.problem(w, 1, Clip, Failed)
	check("the clip is deferred until 2026-01-01T02:10:00Z: 404 Not Found")
	b.clock = b.clock.Add(time.Hour)
	b.must(b.Heartbeat(t.Context(), songs, Researcher{Name: "other", Capacity: 2}))
	b.pass()
	b.accept("other")
	w = b.accept("other")
	b.report(w, 0, true)
	check("it is researched: by r at 2026-01-01T03:00:00Z, lease " + w.Lease.ID)
	for _, pair := range [][2]string{{e, e}, {c, c}} {
		_, err = b.Standing(t.Context(), songs, pair[0], pair[1])
		if !fault.Is(err, fault.NotFound) {
			t.Errorf("%v: %v", pair, err)
		}
	}
}

// TestOffsets: the offsets of all are those of the episodes, and those of the clips.
func TestOffsets(t *testing.T) {
	b := newBench(t)
	clips, episodes := map[string]bool{}, []string{}
	for i := range 7 {
		episodes = append(episodes, b.curate(Episode, fmt.Sprint("e", i), 0, 0))
		clips[b.curate(Clip, fmt.Sprint("c", i), 0, 0)] = true
	}
	b.must(b.Heartbeat(t.Context(), songs, Researcher{Name: "r", Capacity: 60}))
	for b.pass(); len(b.sent) > 0; b.pass() {
		w := b.accept("r")
		for i := range w.Clips {
			b.report(w, i, i == len(w.Clips)-1)
		}
	}
	read := func(episode string) (n int) {
		for cursor := ""; ; {
			page, err := b.Offsets(t.Context(), songs, episode, cursor)
			b.must(err)
			for _, f := range page.All {
				if !clips[f.Clip] || f.Offset != 5 || episode != "" && f.Episode != episode {
					t.Errorf("%+v", f)
				}
			}
			n += len(page.All)
			if page.Next == "" {
				return n
			}
			cursor = page.Next
		}
	}
	byEpisode, byClip := 0, 0
	for _, e := range episodes {
		byEpisode += read(e)
	}
	for c := range clips {
		results, next, err := b.ResultsOfClip(t.Context(), songs, c, "")
		if err != nil || next != "" {
			t.Errorf("%q, %v", next, err)
		}
		byClip += len(results)
	}
	if all := read(""); all != 49 || byEpisode != 49 || byClip != 49 {
		t.Errorf("%d in all, %d of episodes, %d of clips; want 49", all, byEpisode, byClip)
	}
}

// inbox is a queue of pending work.
type inbox struct {
	bodies  []string
	deleted int
}

func (in *inbox) Receive(context.Context, string) (body, receipt string, err error) {
	if len(in.bodies) == in.deleted {
		return "", "", nil
	}
	return in.bodies[in.deleted], "receipt", nil
}

func (in *inbox) Delete(context.Context, string, string) error { in.deleted++; return nil }

func (in *inbox) Return(context.Context, string, string) error {
	in.bodies = append(in.bodies, in.bodies[in.deleted])
	in.deleted++
	return nil
}

// TestNext: a researcher is given the first work item that is valid, and the same again for the same token.
func TestNext(t *testing.T) {
	b := newBench(t)
	b.curate(Clip, "c", 0, 0)
	for i := range 3 {
		b.curate(Episode, fmt.Sprint("e", i), 0, 0)
	}
	b.must(b.Heartbeat(t.Context(), songs, Researcher{Name: "r", Capacity: 3}))
	b.pass()
	in := &inbox{bodies: []string{"no message", `{"lease": "unknown", "project": "songs"}`}}
	for _, m := range append(b.sent[:1:1], b.sent...) { // the first comes twice
		data, _ := json.Marshal(m)
		in.bodies = append(in.bodies, string(data))
	}
	b.must(b.Revoke(t.Context(), b.sent[1].Lease, by))
	next := func(token string) *Work {
		t.Helper()
		w, err := b.Next(t.Context(), songs, Acceptance{Researcher: "r", Token: token}, in)
		b.must(err)
		return w
	}
	first := next("one")
	deleted := in.deleted
	if first == nil || first.Lease.ID != b.sent[0].Lease || deleted != 3 {
		t.Fatalf("%+v, %d deleted", first, deleted)
	}
	if again := next("one"); again.Lease.ID != first.Lease.ID || in.deleted != deleted {
		t.Errorf("again: %+v, %d deleted", again, in.deleted)
	}
	if second := next("two"); second == nil || second.Lease.ID != b.sent[2].Lease {
		t.Errorf("the second: %+v", second)
	}
	if none := next("three"); none != nil || in.deleted != len(in.bodies) {
		t.Errorf("%+v, %d deleted", none, in.deleted)
	}
	b.must(b.Revoke(t.Context(), first.Lease.ID, by))
	_, err := b.Next(t.Context(), songs, Acceptance{Researcher: "r", Token: "one"}, in)
	if !fault.Is(err, fault.Conflict) {
		t.Errorf("after its end: %v", err)
	}
	_, err = b.Next(t.Context(), songs, Acceptance{Researcher: "r", Token: "a token"}, in)
	if !fault.Is(err, fault.Invalid) {
		t.Errorf("a wrong token: %v", err)
	}
}

// TestProblemsAreNotProgress: what is wrong with a recording counts as a result, and neither as a researched pair nor
// towards the time that is left.
func TestProblemsAreNotProgress(t *testing.T) {
	b := newBench(t)
	b.curate(Clip, "c", 0, 0)
	b.curate(Episode, "first", 0, 0)
	b.curate(Episode, "second", 0, 0)
	b.pass()
	b.report(b.accept("r"), 0, true)
	b.clock = b.clock.Add(20 * time.Minute)
	b.pass()
	b.problem(b.accept("r"), 1, Episode, Failed)
	st, err := b.Status(t.Context(), songs)
	b.must(err)
	if st.Results != 2 || st.Researched != 1 || st.LastHour != 1 {
		t.Errorf("%d results, %d pairs, %d in the last hour", st.Results, st.Researched, st.LastHour)
	}
}
