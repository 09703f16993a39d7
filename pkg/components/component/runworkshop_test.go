package component

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"archivist/pkg/events/event"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/table"
	"archivist/pkg/kernel/table/tabletest"
)

// workshop is where robots work, in tests: a store, and executions that the test runs.
type workshop struct {
	*testing.T
	fake    *tabletest.Fake
	now     time.Time
	ids     int
	queue   []RunInput // executions that were started
	names   []string   // of all executions
	stopped []string
	lost    bool // executions get lost
	metrics map[string]float64
	work    func(ctx context.Context, w Work) (Result, error)
	worked  []string // items, each time the function was called
	*Runner
}

func newWorkshop(t *testing.T) *workshop {
	p := &workshop{T: t, fake: tabletest.New(), now: time.UnixMilli(1_800_000_000_000), metrics: map[string]float64{}}
	p.work = func(context.Context, Work) (Result, error) { return Result{}, nil }
	p.Runner = p.runner(nil)
	return p
}

// runner is a process. do, if set, is asked at each call of the table and of Step Functions.
func (p *workshop) runner(do func(op string, call func() error) error) *Runner {
	if do == nil {
		do = through
	}
	s := &Store{Table: tabletest.Through(p.fake, do), Now: func() time.Time { return p.now }, Functions: []string{"x"}}
	s.NewID = func() string { p.ids++; return fmt.Sprintf("%026d", p.ids) }
	count := func(name string, n float64) { p.metrics[name] += n }
	r := &Runner{Store: s, Executions: &executions{p, do}, Metric: count,
		Functions: map[string]Function{"x": function(func(ctx context.Context, w Work) (Result, error) {
			p.worked = append(p.worked, w.Item)
			return p.work(ctx, w)
		})}, Log: slog.New(slog.DiscardHandler)}
	s.Wake = r.Wake
	return r
}

type function func(ctx context.Context, w Work) (Result, error)

func (f function) Run(ctx context.Context, w Work) (Result, error) { return f(ctx, w) }

type executions struct {
	p  *workshop
	do func(op string, call func() error) error
}

func (e *executions) Start(_ context.Context, name string, in RunInput) error {
	return e.do("StartExecution", func() error {
		if len(name) > 80 {
			return fmt.Errorf("the name %q is too long", name)
		}
		if slices.Contains(e.p.names, name) {
			return fault.New(fault.Conflict, "used before")
		}
		e.p.names = append(e.p.names, name)
		if !e.p.lost {
			e.p.queue = append(e.p.queue, in)
		}
		return nil
	})
}

func (e *executions) Stop(_ context.Context, name, _ string) error {
	return e.do("StopExecution", func() error { e.p.stopped = append(e.p.stopped, name); return nil })
}

// receive makes items that have the event Received.
func (p *workshop) receive(n int, from int) {
	p.Helper()
	for i := range n {
		_, err := p.Store.change(p.Context(), fmt.Sprintf("item:%06d", from+i), func(c *change) error {
			if err := c.append("item.create", "", "items", By{Actor: "eva"}, Shape{}); err != nil {
				return err
			}
			return c.append("item.event", event.Success, "items", By{Actor: "eva"}, Registered{Event: "Received"})
		})
		if err != nil {
			p.Fatal(err)
		}
	}
}

// execute is what the state machine does in an execution, with a process.
func execute(ctx context.Context, r *Runner, ref RunRef) error {
	for {
		page, err := r.Find(ctx, ref)
		if err != nil {
			return err
		}
		switch page.Next {
		case NextNone:
			return nil
		case NextEnd:
			return r.End(ctx, ref)
		}
		for _, l := range page.Lanes {
			if err := r.WorkLane(ctx, ref, l); err != nil && errors.Is(err, tabletest.ErrDead) {
				return err
			}
		}
	}
}

// settle runs all executions.
func (p *workshop) settleAll() {
	p.Helper()
	for len(p.queue) > 0 {
		in := p.queue[0]
		p.queue = p.queue[1:]
		if err := execute(p.Context(), p.Runner, in.Run); err != nil {
			p.Fatal(err)
		}
	}
}

// tick is a minute of the scheduler, with all that follows.
func (p *workshop) tick() {
	p.Helper()
	p.now = p.now.Add(time.Minute)
	if err := p.Tick(p.Context(), p.now.Add(time.Minute)); err != nil {
		p.Fatal(err)
	}
	p.settleAll()
}

// line is how many items are in each class of a component's line.
func (p *workshop) line(component string) string {
	p.Helper()
	var out []string
	for _, class := range []string{Ready, Later, Running, Failed} {
		var rows []placeRow
		if _, err := p.Store.Table.Page(p.Context(), table.Query{PK: linePK(component), Prefix: class + "#",
			Limit: 20_000}, &rows); err != nil {
			p.Fatal(err)
		}
		if len(rows) > 0 {
			out = append(out, fmt.Sprint(class, " ", len(rows)))
		}
	}
	return strings.Join(out, ", ")
}

func (p *workshop) item(id string) *Item {
	p.Helper()
	row, err := p.Store.row(p.Context(), id)
	if err != nil {
		p.Fatal(err)
	}
	return &row.it
}

// runs are the runs of a component, the oldest first.
func (p *workshop) runs(component string) []Run {
	p.Helper()
	runs, _, err := p.Runs(p.Context(), component, "", 100)
	if err != nil {
		p.Fatal(err)
	}
	slices.Reverse(runs)
	return runs
}

func (p *workshop) status(component, run string) Run {
	p.Helper()
	got, _, err := p.RunStatus(p.Context(), component, run, "", 1000)
	if err != nil {
		p.Fatal(err)
	}
	return got
}
