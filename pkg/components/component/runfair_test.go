package component

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/table"
)

// TestFewInARound: a component that works on one item at once takes a ready one before one that had to
// wait, but in every fourth round: neither starves, also if a run has one round.
func TestFewInARound(t *testing.T) {
	for most := range 2 {
		p := newWorkshop(t)
		d := checker("check", "Checked")
		d.Concurrency, d.MaxItems, d.Timeout = 1, most, &Timeout{Item: 600}
		define(t, p.Store, d)
		p.receive(3, 0)
		start := func() {
			t.Helper()
			_, err := p.Start(t.Context(), "check", By{Actor: "ada", Reason: "now"})
			if err != nil && !fault.Is(err, fault.Conflict) {
				t.Fatal(err)
			}
			p.settleAll()
		}
		p.work = func(context.Context, Work) (Result, error) { return Result{NotYet: true, Reason: "no"}, nil }
		for range 4 {
			start()
		}
		p.now = p.now.Add(2 * time.Hour)
		p.worked, p.work = nil, func(context.Context, Work) (Result, error) { return Result{}, nil }
		p.receive(20, 500)
		_, err := p.Store.Prioritize(t.Context(), "item:000519", 9, By{Actor: "ada", Reason: "urgent"})
		if err != nil {
			t.Fatal(err)
		}
		for range 30 {
			start()
		}
		var waited []int
		for i, id := range p.worked {
			if id < "item:000500" {
				waited = append(waited, i)
			}
		}
		urgent := slices.Index(p.worked, "item:000519")
		if len(p.worked) != 23 || urgent > 1 || len(waited) != 3 || waited[1]-waited[0] != 4 ||
			waited[2]-waited[1] != 4 {
			t.Errorf("maxItems %d: %d were worked on, the urgent one as %d, those that waited as %v", most,
				len(p.worked), urgent, waited)
		}
	}
}

// TestSummaryIsShort: what an item's row keeps of a request is short, whatever was asked for.
func TestSummaryIsShort(t *testing.T) {
	p := newWorkshop(t)
	define(t, p.Store, checker("check", "Checked"))
	p.receive(1, 0)
	names := make([]string, MaxEventNames+1)
	for i := range names {
		names[i] = fmt.Sprintf("Event_%044d", i)
	}
	by := By{Actor: "ada", Reason: "r", Request: "one"}
	got, err := p.Store.Revoke(t.Context(), "item:000000", names[1:], by)
	if err != nil || len(got.Summary) < 4000 {
		t.Errorf("%q, %v", got.Summary, err)
	}
	again, err := p.Store.Revoke(t.Context(), "item:000000", names[1:], by)
	if err != nil || len(again.Summary) > maxSummary {
		t.Errorf("again: %d bytes, %v", len(again.Summary), err)
	}
	if _, err := p.Store.Revoke(t.Context(), "item:000000", names, by); !fault.Is(err, fault.Invalid) {
		t.Errorf("%d names: %v", len(names), err)
	}
}

// TestRowOfNoPlace: rows in a line that are not where their items are, as of a table that was restored,
// do not keep a component running.
func TestRowOfNoPlace(t *testing.T) {
	p := newWorkshop(t)
	d := checker("check", "Checked")
	d.Wake, d.Concurrency = true, 3
	define(t, p.Store, d)
	p.receive(1, 0)
	p.settleAll()
	for range 30 { // until the first reconciliation is done
		p.tick()
	}
	p.Store.Metric = p.Metric
	tx := p.Store.Table.Begin(p.Store.NewID())
	for i := range 5 {
		k := placeKey("check", fmt.Sprintf("ready#4#%013d#item:000000", i))
		tx.Insert(&placeRow{Head: table.Head{PK: k.PK, SK: k.SK}, Item: "item:000000", Owner: "item:000000"})
	}
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	before := len(p.names)
	p.now = p.now.Add(time.Minute)
	if err := p.Tick(t.Context(), p.now.Add(time.Minute)); err != nil || len(p.queue) != 1 {
		t.Fatalf("%d executions, %v", len(p.queue), err)
	}
	ref, rounds := p.queue[0].Run, 0
	page, err := p.Find(t.Context(), ref)
	for ; err == nil && page.Next == NextWork && rounds < 20; rounds++ {
		for _, l := range page.Lanes {
			if err := p.WorkLane(t.Context(), ref, l); err != nil {
				t.Fatal(err)
			}
		}
		page, err = p.Find(t.Context(), ref)
	}
	if err != nil || rounds > 2 || p.line("check") != "" || len(p.names) != before+1 ||
		p.metrics[MetricReconciled] != 5 {
		t.Errorf("%v: %d rounds, line %q, executions %v, metrics %v", err, rounds, p.line("check"), p.names, p.metrics)
	}
}

// TestRoundsWithoutWork: a run ends after three rounds in a row in which nothing was done. Rounds between which an item
// was done are not in a row.
func TestRoundsWithoutWork(t *testing.T) {
	p := newWorkshop(t)
	d := checker("check", "Checked")
	d.Concurrency, d.Timeout = 1, &Timeout{Item: 600} // a round has one item
	define(t, p.Store, d)
	p.receive(5, 0)
	id, err := p.Start(t.Context(), "check", By{Actor: "ada", Reason: "now"})
	if err != nil {
		t.Fatal(err)
	}
	ref := p.queue[0].Run
	find := func() Page {
		t.Helper()
		page, err := p.Find(t.Context(), ref)
		if err != nil {
			t.Fatal(err)
		}
		return page
	}
	for range 3 {
		find() // the worker of this round dies, and that of the next one
		find()
		page := find()
		if page.Next != NextWork {
			t.Fatalf("the run ends after two rounds without work; %d items were done", len(p.worked))
		}
		if err := p.WorkLane(t.Context(), ref, page.Lanes[0]); err != nil {
			t.Fatal(err)
		}
	}
	rounds := 0
	for find().Next == NextWork && rounds < 10 {
		rounds++
	}
	if err := p.End(t.Context(), ref); err != nil {
		t.Fatal(err)
	}
	run := p.status("check", id)
	if rounds != mostEmpty || run.Why != "nothing was done in 3 rounds" || run.Counts.Done != 3 {
		t.Errorf("after %d rounds without work: %+v", rounds, run)
	}
}

// TestNothingButPassed: a run in which items were only passed, because another run works on them, ends, and
// the next one waits.
func TestNothingButPassed(t *testing.T) {
	var s slotRow
	s.free(1000, RunCounts{Passed: 7})
	if s.Fruitless != 1 || s.Rest != 1000+firstWait.Milliseconds() {
		t.Errorf("%+v", s)
	}
	s.free(2000, RunCounts{NotYet: 1})
	if s.Fruitless != 0 || s.Rest != 0 {
		t.Errorf("%+v", s)
	}
}

// TestRestoreAfterDelete: a reconciliation that is late makes no rows in the line of a deleted component.
func TestRestoreAfterDelete(t *testing.T) {
	p := newWorkshop(t)
	define(t, p.Store, checker("check", "Checked"))
	p.receive(1, 0)
	defs, err := p.Store.load(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	row, err := p.Store.row(t.Context(), "item:000000")
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Store.Delete(t.Context(), "check", By{Actor: "ada", Reason: "not needed"}); err != nil {
		t.Fatal(err)
	}
	err = p.Store.restore(t.Context(), defs, row, &Reconciled{})
	if !fault.Is(err, fault.Stale) || p.line("check") != "" {
		t.Errorf("%v; line %q", err, p.line("check"))
	}
}

// TestManyBroken: more broken items at the head of a line than a run looks at do not hold up those behind
// them; one whose row is repaired is worked on.
func TestManyBroken(t *testing.T) {
	p := newWorkshop(t)
	d := checker("check", "Checked")
	d.Concurrency = 2
	define(t, p.Store, d)
	const n = 2*mostBroken + 10
	p.receive(n, 0)
	p.now = p.now.Add(time.Second)
	p.receive(5, n)
	texts := map[string]string{}
	write := func(id string, text func(old string) string) {
		t.Helper()
		row := &itemRow{}
		err := p.Store.Table.Get(t.Context(), itemSubject(id).Key(), row)
		if err != nil {
			t.Fatal(err)
		}
		row.Text = text(row.Text)
		tx := p.Store.Table.Begin(p.Store.NewID())
		tx.Save(row)
		if err := tx.Commit(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	for i := range n {
		id := fmt.Sprintf("item:%06d", i)
		write(id, func(old string) string { texts[id] = old; return "{" })
	}
	start := func() {
		t.Helper()
		_, err := p.Start(t.Context(), "check", By{Actor: "ada", Reason: "now"})
		if err != nil && !fault.Is(err, fault.Conflict) { // no item is ready
			t.Fatal(err)
		}
		p.settleAll()
	}
	for range 3 {
		start()
	}
	if len(p.worked) != 5 || p.line("check") != fmt.Sprint("later ", n) {
		t.Errorf("worked on %v; line %q", p.worked, p.line("check"))
	}
	const repaired = "item:000007"
	write(repaired, func(string) string { return texts[repaired] })
	p.now = p.now.Add(mostWait + time.Second)
	for range 3 {
		start()
	}
	if len(p.worked) != 6 || p.worked[5] != repaired || p.line("check") != fmt.Sprint("later ", n-1) {
		t.Errorf("then worked on %v; line %q", p.worked, p.line("check"))
	}
}
