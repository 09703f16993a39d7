package component

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"archivist/pkg/kernel/table/tabletest"
)

// mortal is a process that dies before or after its nth call of the table or of Step Functions.
type mortal struct {
	*Runner
	*tabletest.Mortal
}

func newMortal(p *workshop, at int, after bool) *mortal {
	m := &mortal{Mortal: &tabletest.Mortal{At: at, After: after}}
	m.Runner = p.runner(m.Do)
	m.Functions["x"] = function(func(ctx context.Context, w Work) (Result, error) {
		if m.Dead() {
			return Result{}, tabletest.ErrDead
		}
		return p.Functions["x"].Run(ctx, w)
	})
	return m
}

// history is what happened in the end: which items were done how often, and what is left.
func (p *workshop) history() string {
	p.Helper()
	out := ""
	for _, component := range []string{"check", "count"} {
		out += component + ": [" + p.line(component) + "]"
		for i := range 3 {
			it := p.item(fmt.Sprintf("item:%06d", i))
			m := it.Marks[map[string]string{"check": "Checked", "count": "Counted"}[component]]
			out += fmt.Sprintf(" %s%d", m.Outcome, len(it.Claims))
			if it.Version > 4 {
				out += fmt.Sprintf(" %d events", it.Version)
			}
		}
		out += "; "
	}
	slots, err := p.allSlots(p.Context())
	if err != nil {
		p.Fatal(err)
	}
	for _, s := range slots {
		if s.Run != "" || s.Wanted {
			out += fmt.Sprintf("slot %s %d has %q, %v", s.Component, s.Number, s.Run, s.Wanted)
		}
	}
	return out
}

// TestDiesAtEachCall: a process dies before or after each of its calls, when it starts a run, when it
// does one, and in the scheduler's tick. Its execution is lost with it, or goes on in another process.
// In the end each item was worked on by each component with one result, and nothing is left over.
func TestDiesAtEachCall(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes more than ten seconds; a short run leaves it out")
	}
	prepare := func(t *testing.T) *workshop {
		p := newWorkshop(t)
		check, count := checker("check", "Checked"), checker("count", "Counted")
		check.Wake, check.Concurrency, check.MaxItems = true, 2, 2
		count.PastSuccess, count.Schedule = []string{"Checked"}, "rate(2 minutes)"
		define(t, p.Store, check, count)
		return p
	}
	finish := func(p *workshop, want string) string {
		for range 25 {
			p.tick()
			if want != "" && p.history() == want {
				return want
			}
		}
		return p.history()
	}
	p := prepare(t)
	p.receive(3, 0)
	p.settleAll()
	want := finish(p, "")
	t.Log(want)
	deaths := 0
	for _, after := range []bool{false, true} {
		for at := 1; ; at++ {
			p := prepare(t)
			// The wake-ups of these are lost, so that the mortal process starts the run.
			p.Store.Wake = func(context.Context, string) error { return nil }
			p.receive(3, 0)
			p.Store.Wake = p.Wake
			m := newMortal(p, at, after)
			goesOn := after == (at%2 == 0)
			live(p, m, goesOn)
			if !m.Dead() {
				break
			}
			deaths++
			if got := finish(p, want); got != want {
				t.Fatalf("died at call %d (after it: %v; another process goes on: %v):\n%s\nwant\n%s", at, after,
					goesOn, got, want)
			}
		}
	}
	t.Log(deaths, "deaths")
	if deaths < 200 {
		t.Errorf("only %d deaths", deaths)
	}
}

// live is what the process does until it dies: ticks, and the executions that they start. If another
// process goes on, an execution in which it dies is continued.
func live(p *workshop, m *mortal, goesOn bool) {
	ctx := p.Context()
	for range 4 {
		p.now = p.now.Add(time.Minute)
		_ = m.Tick(ctx, p.now.Add(time.Minute))
		for len(p.queue) > 0 && !m.Dead() {
			ref := p.queue[0].Run
			p.queue = p.queue[1:]
			if err := execute(ctx, m.Runner, ref); errors.Is(err, tabletest.ErrDead) && goesOn {
				if err := execute(ctx, p.Runner, ref); err != nil {
					p.Fatal(err)
				}
			}
		}
		if m.Dead() {
			return
		}
	}
}

// TestSubjectMoves: an item whose subject, or which itself, changes just before the claim is judged
// again, and one that is not ready any more is left alone and leaves the line.
func TestSubjectMoves(t *testing.T) {
	p := newWorkshop(t)
	define(t, p.Store, checker("check", "Checked"))
	p.receive(2, 0)
	if _, err := p.Start(t.Context(), "check", By{Actor: "ada", Reason: "now"}); err != nil {
		t.Fatal(err)
	}
	ref := p.queue[0].Run
	page, err := p.Find(t.Context(), ref)
	if err != nil {
		t.Fatal(err)
	}
	_, err = p.Store.change(t.Context(), "item:000001", func(c *change) error {
		return c.append("item.revoke", "", "items", By{Actor: "eva"}, Revoked{Events: []string{"Received"}})
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range page.Lanes {
		for range 2 { // the call is repeated
			if err := p.WorkLane(t.Context(), ref, l); err != nil {
				t.Fatal(err)
			}
		}
	}
	if !slices.Equal(p.worked, []string{"item:000000"}) || p.line("check") != "" {
		t.Errorf("worked on %v; line %s", p.worked, p.line("check"))
	}
}

// TestDepth: two components that change the same item in turn stop at the limit, which is counted once
// for each.
func TestDepth(t *testing.T) {
	p := newWorkshop(t)
	p.Store.Metric = p.Metric
	a, b := checker("a", "A"), checker("b", "B")
	a.Future, a.Old, a.Wake, a.MaxDepth = nil, []string{"A"}, true, 6
	b.Future, b.Old, b.Wake, b.MaxDepth = nil, []string{"B"}, true, 6
	define(t, p.Store, a, b)
	p.work = func(context.Context, Work) (Result, error) { return Result{Changed: true}, nil }
	p.receive(1, 0)
	for range 10 {
		p.tick()
	}
	n := len(p.worked)
	for range 5 {
		p.tick()
		_, err := p.Store.change(t.Context(), "item:000000", func(c *change) error {
			return c.append("item.prioritize", "", "items", By{}, Prioritized{Priority: 1 + len(p.runs("a"))%9})
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if n < 6 || n > 14 || len(p.worked) != n || p.metrics["EventDepthLimit"] < 1 || p.metrics["EventDepthLimit"] > 2 {
		t.Errorf("worked %d times, then %d; metrics %v; %+v", n, len(p.worked), p.metrics, p.item("item:000000"))
	}
}
