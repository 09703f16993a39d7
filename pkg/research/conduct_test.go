package research

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"archivist/pkg/kernel/fault"
)

// TestConduct: three problems in a row that no other researcher has pause a researcher, which gets no work items then
// and does not count as present; each further one pauses it for longer, until a result or a person ends that. Problems
// that another one has, too, pause nobody.
func TestConduct(t *testing.T) {
	b := newBench(t)
	b.curate(Clip, "c", 0, 0)
	for i := range 30 {
		b.curate(Episode, fmt.Sprintf("e%02d", i), 0, 0)
	}
	heartbeats := func() {
		for _, name := range []string{"bad", "good"} {
			b.must(b.Heartbeat(t.Context(), songs, Researcher{Name: name, Capacity: 1}))
		}
	}
	fails := func(name string, n int) {
		for range n {
			heartbeats()
			b.pass()
			b.problem(b.accept(name), 1, Episode, Failed)
		}
	}
	paused := func() time.Duration {
		all, err := b.Pauses(t.Context(), songs)
		b.must(err)
		if len(all) == 0 {
			return 0
		}
		return time.UnixMilli(all[0].Until).Sub(b.clock)
	}
	present := func() int {
		heartbeats()
		n, err := b.Present(t.Context(), songs)
		b.must(err)
		return n
	}

	fails("bad", 2)
	if paused() > 0 || present() != 2 {
		t.Fatalf("after two problems: %s", paused())
	}
	fails("bad", 1)
	if paused() != 10*time.Minute || present() != 1 {
		t.Fatalf("after three problems: %s, %d present", paused(), present())
	}
	err := b.Admit(t.Context(), songs, "bad")
	if !fault.Is(err, fault.Held) || !strings.Contains(err.Error(), "research resume songs --researcher bad") {
		t.Errorf("admitted: %v", err)
	}
	b.must(b.Admit(t.Context(), songs, "good"))

	b.clock = b.clock.Add(10 * time.Minute)
	fails("bad", 1)
	if paused() != 40*time.Minute {
		t.Errorf("after the fourth problem: %s", paused())
	}
	once := by
	once.Request = "one"
	b.must(b.ResumeResearcher(t.Context(), songs, "bad", once))
	b.must(b.ResumeResearcher(t.Context(), songs, "bad", once)) // the answer was lost
	if err := b.ResumeResearcher(t.Context(), songs, "bad", by); !fault.Is(err, fault.Conflict) {
		t.Errorf("resumed twice: %v", err)
	}
	fails("bad", 2)
	b.pass()
	b.reportAll(b.accept("bad"))
	fails("bad", 2)
	if paused() > 0 {
		t.Errorf("a result between four problems: %s", paused())
	}
}

// sentBox is the queue of pending work of a bench: what was sent, the first first.
type sentBox struct{ b *bench }

func (i sentBox) Receive(context.Context, string) (body, receipt string, err error) {
	if len(i.b.sent) == 0 {
		return "", "", nil
	}
	data, err := json.Marshal(i.b.sent[0])
	return string(data), "first", err
}

func (i sentBox) Delete(context.Context, string, string) error {
	i.b.sent = i.b.sent[1:]
	return nil
}

func (i sentBox) Return(context.Context, string, string) error {
	i.b.sent = append(i.b.sent[1:], i.b.sent[0])
	return nil
}

// TestHostile: of five researchers three report a problem with each work item that they get. The two others research
// all pairs of 20 episodes with 20 clips in about the time that they need when the three get nothing; only few episodes
// are quarantined, with which two of the three have had a problem.
func TestHostile(t *testing.T) {
	alone, _, _ := researchBeside(t, false)
	beside, problems, away := researchBeside(t, true)
	t.Logf("%s alone; %s beside hostile researchers, with %d problems, %d of 20 episodes set aside", alone, beside,
		problems, away)
	if beside > alone*5/4 || away > 6 || problems > 60 {
		t.Error("they delay the others")
	}
}

// researchBeside lets two researchers work beside three others, each in its turn of 10 seconds, until all is researched
// that is not quarantined. It returns the time, how many problems the others have reported, and how many episodes are
// quarantined.
func researchBeside(t *testing.T, hostile bool) (took time.Duration, problems int, away int64) {
	t.Helper()
	b := newBench(t)
	for i := range 20 {
		b.curate(Clip, fmt.Sprintf("c%02d", i), 0, 0)
		b.curate(Episode, fmt.Sprintf("e%02d", i), 0, 0)
	}
	names, began := []string{"evil-1", "good-1", "evil-2", "good-2", "evil-3"}, b.clock
	for round := range 5000 {
		for _, name := range names {
			b.must(b.Heartbeat(t.Context(), songs, Researcher{Name: name, Capacity: 1}))
		}
		b.pass()
		b.clock = b.clock.Add(10 * time.Second)
		name := names[round%len(names)]
		evil := strings.HasPrefix(name, "evil")
		if evil && !hostile {
			continue
		}
		w, err := b.Next(t.Context(), songs, Acceptance{Researcher: name, Token: b.NewID()}, sentBox{b})
		switch {
		case fault.Is(err, fault.Held): // it is paused
		case err != nil:
			t.Fatal(err)
		case w != nil && evil:
			problems++
			b.problem(*w, 1, Episode, Rejected)
		case w != nil:
			b.reportAll(*w)
		}
		st, err := b.Status(t.Context(), songs)
		b.must(err)
		if st.Researched == st.Pairs && st.Pairs > 0 && len(st.Troubled) == int(st.Away) {
			return b.clock.Sub(began), problems, st.Away
		}
	}
	t.Fatal("it does not come to an end")
	return 0, 0, 0
}

// reportAll reports that nothing was found of all clips of a work item.
func (b *bench) reportAll(w Work) {
	b.t.Helper()
	for i := range w.Clips {
		r := Report{Project: songs, Lease: w.Lease.ID, Researcher: w.Lease.Researcher, Analysis: w.Lease.Analysis,
			Episode: w.Lease.Episode, Sequence: i + 1, Clip: w.Clips[i].Key}
		if i == len(w.Clips)-1 {
			r.Final, r.Count = true, len(w.Clips)
		}
		_, err := b.Record(b.t.Context(), r)
		b.must(err)
	}
}

// TestConductInAnotherName: problems that one reports in the name of another do not count against that.
func TestConductInAnotherName(t *testing.T) {
	b := newBench(t)
	b.curate(Clip, "c", 0, 0)
	for i := range 5 {
		b.curate(Episode, fmt.Sprint("e", i), 0, 0)
		b.must(b.Heartbeat(t.Context(), songs, Researcher{Name: "bad", Capacity: 1}))
		b.pass()
		w := b.accept("bad")
		w.Lease.Researcher = "good"
		b.problem(w, 1, Episode, Failed)
	}
	b.must(b.Admit(t.Context(), songs, "good"))
}
