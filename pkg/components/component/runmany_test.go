package component

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestManyItems: a run of many items costs a fixed number of calls for each, goes on in another
// execution when one has had enough rounds, and keeps within maxItems.
func TestManyItems(t *testing.T) {
	const n = mostFound*mostRounds + 500 // more than one execution does
	p := newWorkshop(t)
	calls := map[string]int{}
	p.Runner = p.runner(func(op string, call func() error) error { calls[op]++; return call() })
	d := checker("check", "Checked")
	d.MaxItems, d.Concurrency = n-7, 20
	define(t, p.Store, d)
	p.receive(n, 0)
	clear(calls)
	id, err := p.Start(t.Context(), "check", By{Actor: "ada", Reason: "now"})
	if err != nil {
		t.Fatal(err)
	}
	p.settleAll()
	run := p.status("check", id)
	all := 0
	for _, c := range calls {
		all += c
	}
	t.Logf("%d executions, calls %v: %.1f for each item", run.Executions, calls, float64(all)/float64(n))
	if run.Counts.Done != int64(n-7) || p.line("check") != "ready 7" || !strings.Contains(run.Why, "maxItems") {
		t.Errorf("%+v, line %s", run, p.line("check"))
	}
	if all > 16*n || calls["TransactWriteItems"] > 2*n+n/50+20 {
		t.Errorf("%v calls for %d items", calls, n)
	}
	if want := int64((n-7)/(mostFound*mostRounds) + 1); run.Executions != want {
		t.Errorf("%d executions, expected %d", run.Executions, want)
	}
}

// TestInstances: the instances of a component share its line, none works on another's item, and the
// next one starts only if there is enough to do.
func TestInstances(t *testing.T) {
	p := newWorkshop(t)
	d := checker("check", "Checked")
	d.Instances, d.Concurrency = 2, 5
	define(t, p.Store, d)
	p.receive(40, 0)
	for range 3 {
		if _, err := p.Start(t.Context(), "check", By{Actor: "ada", Reason: "now"}); err != nil {
			t.Fatal(err)
		}
	}
	if len(p.queue) != 2 || p.queue[0].Run.Slot == p.queue[1].Run.Slot {
		t.Fatalf("executions: %+v", p.queue)
	}
	var pages [2]Page
	for i, in := range p.queue {
		var err error
		if pages[i], err = p.Find(t.Context(), in.Run); err != nil {
			t.Fatal(err)
		}
	}
	if slices.Equal(pages[0].Lanes[0].Items, pages[1].Lanes[0].Items) {
		t.Errorf("both begin with %v", pages[0].Lanes[0].Items)
	}
	for lane := range 5 { // item by item, in turns
		for i, in := range p.queue {
			if err := p.WorkLane(t.Context(), in.Run, pages[i].Lanes[lane]); err != nil {
				t.Fatal(err)
			}
		}
	}
	p.settleAll()
	slices.Sort(p.worked)
	if n := len(p.worked); n != 40 || len(slices.Compact(p.worked)) != 40 || p.line("check") != "" {
		t.Errorf("worked on %d; line %s", n, p.line("check"))
	}
}

// TestWantedAndScheduled: a start during a run is made up for after it, once; a schedule starts a run
// at its time, once for all times that were missed, and not at all if nothing is ready.
func TestWantedAndScheduled(t *testing.T) {
	p := newWorkshop(t)
	d := checker("check", "Checked")
	d.Schedule, d.MaxItems = "rate(10 minutes)", 2
	define(t, p.Store, d)
	for range 25 {
		p.tick()
	}
	if len(p.names) != 0 {
		t.Errorf("executions without work: %v", p.names)
	}
	p.receive(7, 0)
	for range 12 {
		p.tick()
	}
	if runs := p.runs("check"); len(runs) != 1 || runs[0].Actor != "schedule" || p.line("check") != "ready 5" {
		t.Fatalf("%+v, line %s", runs, p.line("check"))
	}
	p.now = p.now.Add(300 * time.Minute)
	p.tick()
	p.tick()
	if p.line("check") != "ready 3" {
		t.Errorf("after missed times: %s", p.line("check"))
	}
	for range 3 { // while it runs, it is wanted once
		if _, err := p.Start(t.Context(), "check", By{Actor: "ada", Reason: "now"}); err != nil {
			t.Fatal(err)
		}
	}
	p.settleAll()
	if got := len(p.runs("check")); p.line("check") != "" || got != 4 {
		t.Errorf("%d runs, line %s", got, p.line("check"))
	}
}

// TestBrokenItems: items whose rows are damaged do not stop the others, are not tried again and again,
// and are shown.
func TestBrokenItems(t *testing.T) {
	p := newWorkshop(t)
	d := checker("check", "Checked")
	d.Wake, d.Concurrency = true, 2
	define(t, p.Store, d)
	p.lost = true
	p.receive(10, 0)
	p.lost = false
	for _, id := range []string{"item:000000", "item:000001", "item:000002"} {
		row, err := p.Store.row(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		row.Text = "{"
		tx := p.Store.Table.Begin(p.Store.NewID())
		tx.Save(row)
		if err := tx.Commit(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	for range 60 {
		p.tick()
	}
	runs := p.runs("check")
	if p.line("check") != "later 3" || len(p.worked) != 7 || len(runs) > 10 || len(runs[1].Broken) != 3 ||
		p.metrics[MetricBroken] == 0 {
		t.Errorf("line %s, worked on %d, %d runs: %+v", p.line("check"), len(p.worked), len(runs), runs[1])
	}
}

// TestReport: a report keeps so many entries, and says how many there were.
func TestReport(t *testing.T) {
	entries := make([]Entry, 500)
	for i := range entries {
		entries[i] = Entry{Type: "checksum", Description: strings.Repeat("x", 90), File: fmt.Sprint(i)}
	}
	for name, c := range map[string]struct {
		r    Report
		most int
		kept int
		says string
	}{
		"all":     {Report{Entries: entries[:10]}, 10, 10, ""},
		"one":     {Report{Entries: entries[:11]}, 10, 10, "9 of 11 entries are kept"},
		"counted": {Report{Entries: entries[:5], Total: 900}, 10, 6, "5 of 900 entries are kept"},
		"bytes":   {Report{Entries: entries}, 1000, 352, "351 of 500 entries are kept"},
		"none":    {Report{Entries: entries[:2]}, 1, 1, "0 of 2 entries are kept"},
	} {
		got := c.r.Cut(c.most)
		last := got.Entries[len(got.Entries)-1]
		if len(got.Entries) != c.kept || (last.Type == KindCut) != (c.says != "") ||
			c.says != "" && last.Description != c.says || len(toJSON(t, got)) > 49<<10 {
			t.Errorf("%s: %d entries, %+v", name, len(got.Entries), last)
		}
	}
}
