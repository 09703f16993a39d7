package researchsim

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/table/tabletest"
	"archivist/pkg/research"
)

// mortal is a process that dies at one of its calls, of the table or of the queue: before it, or after.
type mortal struct {
	*research.Store
	process *tabletest.Mortal
	clock   time.Time
	ids     int
	check   *checker
	fake    *tabletest.Fake
	sent    []research.Message
}

func (m *mortal) do(op string, call func() error) error { return m.process.Do(op, call) }

// newMortal makes a project with two episodes and three clips, and a lease that is accepted.
func newMortal(t *testing.T) *mortal {
	m := &mortal{process: &tabletest.Mortal{}, clock: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
	now := func() time.Time { return m.clock }
	fake := tabletest.New()
	m.check = newChecker(now)
	fake.Watch, m.fake = m.check.commit, fake
	newID := func() string { m.ids++; return fmt.Sprintf("id%06d", m.ids) }
	m.Store = newStore(tabletest.Through(fake, m.do), now, newID)
	m.Send = func(_ context.Context, msg research.Message) error {
		return m.do("", func() error { m.sent = append(m.sent, msg); return nil })
	}
	must(t, m.Apply(t.Context(), project(1, 2), person))
	for _, id := range []string{"e0", "e1", "c0", "c1", "c2"} {
		_, err := m.Curate(t.Context(), m.record(id), person)
		must(t, err)
	}
	must(t, m.Heartbeat(t.Context(), songs, research.Researcher{Name: "r", Capacity: 1}))
	return m
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func (m *mortal) record(id string) research.Curated {
	c := research.Curated{Project: songs, Kind: research.Episode, Source: "s", ID: id,
		URL: "https://media.example.org/" + id, Curated: m.clock.UnixMilli()}
	if id[0] == 'c' {
		c.Kind = research.Clip
	}
	return c
}

// again is another process, which knows nothing.
func (m *mortal) again() {
	s := newStore(m.Table, m.Now, m.NewID)
	s.Send = m.Send
	m.Store = s
}

func (m *mortal) pass(ctx context.Context) error {
	p, err := m.Pass(ctx, songs, m.clock.Add(time.Minute))
	if err == nil && p.Busy {
		err = fault.New(fault.Held, "busy")
	}
	return err
}

// assigned makes work items, and accepts the first.
func (m *mortal) assigned(t *testing.T) research.Work {
	t.Helper()
	must(t, m.pass(t.Context()))
	w, err := m.Accept(t.Context(), research.Acceptance{Lease: m.sent[0].Lease, Researcher: "r", Token: "t"})
	must(t, err)
	return w
}

// result is the result of one clip of a work item.
func result(w research.Work, i int) research.Report {
	r := research.Report{Project: songs, Lease: w.Lease.ID, Researcher: "r", Analysis: w.Lease.Analysis,
		Episode: w.Lease.Episode, Sequence: i + 1, Clip: w.Clips[i].Key, Final: i == len(w.Clips)-1}
	if r.Final {
		r.Count = len(w.Clips)
	}
	return r
}

// action is something that can die at each of its calls. prepare returns it.
type action struct {
	name    string
	prepare func(t *testing.T, m *mortal) func(ctx context.Context) error
	done    fault.Kind // what a repetition may answer that was done before
}

// failedOnce reports that the clip, or the episode, could not be read.
func failedOnce(of research.Kind) func(*testing.T, *mortal) func(context.Context) error {
	return func(t *testing.T, m *mortal) func(context.Context) error {
		r := result(m.assigned(t), 0)
		r.Problem = &research.Problem{Of: string(of), Kind: research.Failed, Reason: "404 Not Found"}
		if of == research.Episode {
			r.Clip = ""
		}
		return func(ctx context.Context) error { _, err := m.Record(ctx, r); return err }
	}
}

// actions are all.
var actions = []action{
	{"pass", func(*testing.T, *mortal) func(context.Context) error { return nil }, ""},
	{"pass after expiry", func(t *testing.T, m *mortal) func(context.Context) error {
		m.assigned(t)
		m.clock = m.clock.Add(3 * time.Hour)
		return nil
	}, ""},
	{"pass after a new clip", func(t *testing.T, m *mortal) func(context.Context) error {
		m.assigned(t)
		_, err := m.Curate(t.Context(), m.record("c9"), person)
		must(t, err)
		return nil
	}, ""},
	{"pass after a deferral", func(t *testing.T, m *mortal) func(context.Context) error {
		must(t, failedOnce(research.Clip)(t, m)(t.Context()))
		m.clock = m.clock.Add(time.Hour)
		return nil
	}, ""},
	{"curate", func(_ *testing.T, m *mortal) func(context.Context) error {
		return func(ctx context.Context) error {
			for _, id := range []string{"e9", "c9"} {
				_, err := m.Curate(ctx, m.record(id), person)
				if err != nil {
					return err
				}
			}
			return nil
		}
	}, ""},
	{"withdraw", func(_ *testing.T, m *mortal) func(context.Context) error {
		c := m.record("c1")
		c.Curated, c.Withdrawn = c.Curated+1, true
		return func(ctx context.Context) error { _, err := m.Curate(ctx, c, person); return err }
	}, ""},
	{"accept", func(t *testing.T, m *mortal) func(context.Context) error {
		must(t, m.pass(t.Context()))
		a := research.Acceptance{Lease: m.sent[0].Lease, Researcher: "r", Token: "t"}
		return func(ctx context.Context) error { _, err := m.Accept(ctx, a); return err }
	}, ""},
	{"record", func(t *testing.T, m *mortal) func(context.Context) error {
		w := m.assigned(t)
		return func(ctx context.Context) error {
			for _, i := range []int{1, 0} { // the final one first
				_, err := m.Record(ctx, result(w, i))
				if err != nil {
					return err
				}
			}
			return nil
		}
	}, ""},
	{"record a problem of a clip", failedOnce(research.Clip), ""},
	{"record a problem of an episode", failedOnce(research.Episode), ""},
	{"apply", func(_ *testing.T, m *mortal) func(context.Context) error {
		return func(ctx context.Context) error { return m.Apply(ctx, project(2, 3), person) }
	}, ""},
	{"revoke", func(t *testing.T, m *mortal) func(context.Context) error {
		w := m.assigned(t)
		return func(ctx context.Context) error { return m.Revoke(ctx, w.Lease.ID, person) }
	}, fault.Conflict},
	{"review", func(t *testing.T, m *mortal) func(context.Context) error {
		p := project(2, 3)
		p.Review = true
		must(t, m.Apply(t.Context(), p, person))
		w := m.assigned(t)
		r := result(w, 0)
		r.Hits = []research.Hit{{Offset: 1, Length: 2, Score: 1}, {Offset: 3, Length: 2,
			Score: 0.5}}
		_, err := m.Record(t.Context(), r)
		must(t, err)
		return func(ctx context.Context) error {
			return m.Review(ctx, songs, r.Episode, r.Clip, research.Review{Lease: r.Lease,
				Accept: true}, person)
		}
	}, ""},
	{"retry", func(t *testing.T, m *mortal) func(context.Context) error {
		must(t, failedOnce(research.Episode)(t, m)(t.Context()))
		key := m.sent[0].Episode
		return func(ctx context.Context) error { return m.Retry(ctx, research.Episode, songs, key, person) }
	}, fault.Conflict},
}

// TestCrashes: each action dies at each of its calls, before it or after, and is repeated by another process.
// The rows agree at each write, and in the end each pair becomes researched.
func TestCrashes(t *testing.T) {
	for _, a := range actions {
		t.Run(a.name, func(t *testing.T) {
			tabletest.Crashes(t, 1, func(t *testing.T, process *tabletest.Mortal) {
				m := newMortal(t)
				act := a.prepare(t, m)
				if act == nil {
					act = m.pass
				}
				m.process = process
				err := act(t.Context())
				if err != nil && !process.Dead() {
					t.Fatal(err)
				}
				m.process = &tabletest.Mortal{}
				m.again()
				m.clock = m.clock.Add(2 * time.Minute) // the fence of a dead archivist
				err = act(t.Context())
				if err != nil && fault.Of(err) != a.done {
					t.Fatalf("again: %v", err)
				}
				err = m.finish(t)
				if err != nil {
					t.Fatal(err)
				}
			})
		})
	}
}

// finish researches all that is left, and returns what does not rest.
func (m *mortal) finish(t *testing.T) error {
	t.Helper()
	m.check.exact = true
	for range 30 {
		must(t, m.pass(t.Context()))
		if id := m.check.unsent(m.clock.UnixMilli() + 1); id != "" {
			return fmt.Errorf("the work item of the lease %s was not sent", id)
		}
		must(t, m.Heartbeat(t.Context(), songs, research.Researcher{Name: "r", Capacity: 2}))
		for _, msg := range slices.Clone(m.sent) {
			w, err := m.Accept(t.Context(), research.Acceptance{Lease: msg.Lease, Researcher: "r", Token: m.NewID()})
			for i := range w.Clips {
				if err == nil {
					_, err = m.Record(t.Context(), result(w, i))
				}
			}
			if err != nil && !fault.Is(err, fault.Conflict) {
				return err
			}
		}
		if m.check.err != nil || m.check.atRest() == nil {
			break
		}
		m.sent = nil
		m.clock = m.clock.Add(20 * time.Minute)
	}
	if m.check.err != nil {
		return m.check.err
	}
	return m.check.atRest()
}
