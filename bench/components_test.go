package bench

import (
	"context"
	"flag"
	"fmt"
	"os"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"archivist/pkg/components/component"
	"archivist/pkg/kernel/table/tabletest"
)

var items = flag.Int("items", 1000, "items that TestComponents has at most; it begins with a hundredth")

// noExecutions is an AWS Step Functions in which nothing runs.
type noExecutions struct{}

// Start notes nothing.
func (noExecutions) Start(context.Context, string, component.RunInput) error { return nil }

// Stop stops nothing.
func (noExecutions) Stop(context.Context, string, string) error { return nil }

// TestComponents: a poll costs the same calls for few and for many items; then a new component's
// back-fill of all, and a reconciliation, are measured.
func TestComponents(t *testing.T) {
	var ids, calls atomic.Int64
	rows := tabletest.Open(t)
	counted := &tabletest.Client{DynamoDBAPI: rows.DB.Client(), Do: func(_ string, call func() error) error {
		calls.Add(1)
		return call()
	}}
	tb := tabletest.Table(counted)
	tb.Rows = tb.DB.Table(rows.Rows.Name())
	s := &component.Store{Table: tb, Now: time.Now, Functions: []string{"x"},
		NewID: func() string { return fmt.Sprintf("tx-%09d", ids.Add(1)) }}
	define := func(name, event string) {
		_, err := s.Apply(t.Context(), component.Definition{Name: name, Event: event, Types: []string{"delivery"},
			Future: []string{event}, Runnable: component.Runnable{Function: "x"}}, component.By{})
		if err != nil {
			t.Fatal(err)
		}
	}
	define("first", "First")
	fillAll(t, s)
	poll := func(n int) int64 {
		r := component.Runner{Store: s, Executions: noExecutions{}}
		calls.Store(0)
		run, err := r.Start(t.Context(), "first", component.By{Actor: "ada", Reason: "a poll"})
		if err != nil {
			t.Fatal(err)
		}
		ref := component.RunRef{Component: "first", Run: run, Exec: 1}
		p, err := r.Find(t.Context(), ref)
		cost := calls.Load()
		if err != nil || len(p.Lanes) == 0 {
			t.Fatal(p, err)
		}
		if err := r.End(t.Context(), ref); err != nil {
			t.Fatal(err)
		}
		t.Logf("%d ready items: a run is started and finds its items in %d calls", n, cost)
		return cost
	}
	began := time.Now()
	makeItems(t, s, 0, *items/100)
	few := poll(*items / 100)
	makeItems(t, s, *items/100, *items)
	t.Logf("%d items made in %s", *items, time.Since(began).Round(time.Second))
	if many := poll(*items); many != few {
		t.Errorf("%d calls with %d items, %d with %d", few, *items/100, many, *items)
	}

	define("second", "Second")
	calls.Store(0)
	before, began := live(), time.Now()
	fillAll(t, s)
	report(t, "back-fill", began, calls.Load())
	t.Logf("live memory: %d MiB before, %d MiB after it (with the table, if that is in the process)", before, live())
	if c, err := s.Counts(t.Context(), "second"); err != nil || c.Ready != int64(*items) {
		t.Errorf("%+v, %v", c, err)
	}
	calls.Store(0)
	began = time.Now()
	out, next, err := s.Reconcile(t.Context(), "", time.Now().Add(time.Hour))
	if err != nil || next != "" || len(out.Findings) > 0 {
		t.Fatalf("%+v, %q, %v", out, next, err)
	}
	report(t, "reconciliation", began, calls.Load())
}

func report(t *testing.T, what string, began time.Time, calls int64) {
	where := "in the process"
	if os.Getenv(tabletest.EndpointVariable) != "" {
		where = "on DynamoDB Local"
	}
	took := time.Since(began)
	t.Logf("%s of %d items %s: %s, %.0f items/s, %.2f calls each", what, *items, where, took.Round(time.Millisecond),
		float64(*items)/took.Seconds(), float64(calls)/float64(*items))
}

func fillAll(t *testing.T, s *component.Store) {
	t.Helper()
	if more, err := s.Backfill(t.Context(), time.Now().Add(time.Hour)); more || err != nil {
		t.Fatal(more, err)
	}
}

// makeItems makes custom items, eight at once.
func makeItems(t *testing.T, s *component.Store, from, to int) {
	t.Helper()
	g, ctx := errgroup.WithContext(t.Context())
	g.SetLimit(8)
	for i := from; i < to; i++ {
		g.Go(func() error {
			_, err := s.Create(ctx, fmt.Sprintf("item:box-%d", i), component.CustomItem{Types: []string{"delivery"}},
				component.By{Actor: "ada", Reason: "a bench"})
			return err
		})
	}
	if err := g.Wait(); err != nil {
		t.Fatal(err)
	}
}

// live is the memory of what is reachable, in MiB.
func live() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc >> 20
}
