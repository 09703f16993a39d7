package component

import (
	"archivist/pkg/events/event"
	"archivist/pkg/kernel/fault"
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestRun: a person starts a component; each item that is ready is worked on once, each result is an
// event with what it is based on, and the slot is free again.
func TestRun(t *testing.T) {
	p := newWorkshop(t)
	define(t, p.Store, checker("check", "Checked"))
	p.work = func(_ context.Context, w Work) (Result, error) {
		switch w.Subject {
		case "000001":
			return Result{}, errors.New("it is broken")
		case "000002":
			panic("a defect")
		case "000003":
			return Result{Outcome: "maybe"}, nil
		}
		return Result{Changed: true, Reason: "fine"}, nil
	}
	p.receive(30, 0)
	id, err := p.Start(t.Context(), "check", By{Actor: "ada", Reason: "now"})
	if err != nil {
		t.Fatal(err)
	}
	again, err := p.Start(t.Context(), "check", By{Actor: "ada", Reason: "now"})
	if err != nil || again != id || len(p.queue) != 1 {
		t.Errorf("a second start: %q, %v, %d executions", again, err, len(p.queue))
	}
	p.settleAll()
	if got := p.line("check"); got != "failed 3" || len(p.worked) != 30 {
		t.Errorf("the line: %s; worked on %d", got, len(p.worked))
	}
	run := p.status("check", id)
	if run.State != RunEnded || run.Counts.Done != 27 || run.Counts.Failed != 3 || len(run.Items) != 30 ||
		run.Actor != "ada" || run.Why != "" {
		t.Errorf("%+v", run)
	}
	for id, want := range map[string]string{"item:000001": "it is broken",
		"item:000002": "the function panicked: a defect",
		"item:000003": `the component answered with the outcome "maybe"; expected success or failure`} {
		if !slices.ContainsFunc(run.Items, func(i RunItem) bool {
			return i.Item == id && i.State == event.Failure && i.Reason == want && i.Event != ""
		}) {
			t.Errorf("%s: there is no item with the reason %q in %+v", id, want, run.Items)
		}
	}
	rows, _, err := event.Page(t.Context(), p.Store.Table, itemSubject("item:000009"), "")
	it := p.item("item:000009")
	if err != nil || len(rows) != 3 || rows[2].Type != "component.ran" || rows[2].Component != "check" ||
		it.Marks["Checked"].BasedOn != (SeenVersions{Item: 2}) || it.Marks["Checked"].ID != rows[2].ID ||
		len(it.Claims) > 0 {
		t.Errorf("%v: %+v; %+v", err, rows, it)
	}
	if rows[2].Cause.Event != rows[1].ID || rows[2].Cause.Depth != 1 {
		t.Errorf("the cause is %+v", rows[2].Cause)
	}
	_, err = p.Start(t.Context(), "check", By{Actor: "ada", Reason: "now"})
	if !fault.Is(err, fault.Conflict) || !strings.Contains(err.Error(), "nothing to do") {
		t.Errorf("nothing is ready: %v", err)
	}
	if err := p.Store.Pause(t.Context(), "check", By{Actor: "ada", Reason: "no"}); err != nil {
		t.Fatal(err)
	}
	_, err = p.Start(t.Context(), "check", By{Actor: "ada", Reason: "now"})
	if !fault.Is(err, fault.Conflict) || !strings.Contains(err.Error(), "resume") {
		t.Errorf("paused: %v", err)
	}
}

// TestNotYet: an item that a component cannot do yet waits, longer each time, and then comes after
// other work, but comes; the next result ends that. An item that is done in parts is taken again at
// once.
func TestNotYet(t *testing.T) {
	p := newWorkshop(t)
	d := checker("check", "Checked")
	d.Wake = true
	define(t, p.Store, d)
	parts, tries := 0, 0
	p.work = func(_ context.Context, w Work) (Result, error) {
		switch w.Subject {
		case "000000":
			tries++
			if tries < 4 {
				return Result{NotYet: true, Reason: "the scanner is busy"}, nil
			}
			if tries == 4 {
				return Result{}, fault.New(fault.Unavailable, "the disk is not mounted")
			}
		case "000001":
			parts++
			return Result{Again: parts < 7}, nil
		}
		return Result{}, nil
	}
	p.receive(2, 0)
	p.settleAll()
	if got := p.line("check"); got != "later 1" || parts != 7 {
		t.Fatalf("the line: %s; %d parts", got, parts)
	}
	var at []int
	for minute := 1; minute < 30; minute++ {
		before := tries
		p.tick()
		if tries > before {
			at = append(at, minute)
		}
		if tries == 4 && p.item("item:000000").Waits["check"].Reason != "the disk is not mounted" {
			t.Fatalf("it waits because of %+v", p.item("item:000000").Waits)
		}
	}
	if !slices.Equal(at, []int{1, 3, 7, 15}) || p.line("check") != "" || len(p.item("item:000000").Waits) > 0 {
		t.Errorf("it was tried in the minutes %v; the line: %s", at, p.line("check"))
	}
}

// TestPartEndsWait: a part of the work that was done ends the wait of an item. It is taken again at once, and a wait
// that comes after that is short again.
func TestPartEndsWait(t *testing.T) {
	p := newWorkshop(t)
	d := checker("check", "Checked")
	d.Wake = true
	define(t, p.Store, d)
	busy := Result{NotYet: true, Reason: "the scanner is busy"}
	answers := []Result{busy, busy, busy, {Again: true}, busy, {}}
	var at []int // the minutes in which it was tried
	minute := 0
	p.work = func(context.Context, Work) (Result, error) {
		if waits := p.item("item:000000").Waits; len(at) == 4 && len(waits) > 0 {
			t.Errorf("a part was done, and it still waits: %+v", waits)
		}
		at = append(at, minute)
		return answers[len(at)-1], nil
	}
	p.receive(1, 0)
	p.settleAll()
	for minute = 1; minute < 30; minute++ {
		p.tick()
	}
	if want := []int{0, 1, 3, 7, 7, 8}; !slices.Equal(at, want) || p.line("check") != "" {
		t.Errorf("it was tried in the minutes %v, want %v; the line: %q", at, want, p.line("check"))
	}
}

// TestAgainAfter: a request that comes while a component works is work for another turn, and the last turn is recorded.
func TestAgainAfter(t *testing.T) {
	p := newWorkshop(t)
	d := checker("check", "Checked")
	d.Wake, d.Future = true, []string{"Checked"}
	define(t, p.Store, d)
	turns := 0
	p.work = func(ctx context.Context, w Work) (Result, error) {
		turns++
		if turns < 3 {
			_, err := p.Store.Register(ctx, w.Item, "Requested", event.Success, by(""))
			if err == nil { // nothing counts that could be revoked
				_, err = p.Store.Revoke(ctx, w.Item, []string{"Checked"}, by(""))
			}
			return Result{AgainAfter: "Requested"}, err
		}
		return Result{AgainAfter: "Requested"}, nil
	}
	p.receive(1, 0)
	p.settleAll()
	it := p.item("item:000000")
	if turns != 3 || p.line("check") != "" || it.Marks["Checked"].Outcome != event.Success {
		t.Errorf("%d turns; the line: %q; the item: %+v", turns, p.line("check"), it)
	}
}

// TestLostRun: an execution that is lost is given up after its time; the item whose worker died is
// taken again, and is a failure after some times, with the reason.
func TestLostRun(t *testing.T) {
	p := newWorkshop(t)
	d := checker("check", "Checked")
	d.Wake = true
	define(t, p.Store, d)
	p.lost = true
	p.receive(1, 0)
	if len(p.names) != 1 {
		t.Fatalf("executions: %v", p.names)
	}
	p.lost = false
	for range 7 {
		p.tick()
	}
	if p.line("check") != "" || len(p.names) != 2 || p.metrics[MetricRepairs] != 1 ||
		!slices.Equal(p.stopped, p.names[:1]) {
		t.Errorf("line %q, executions %v, stopped %v, metrics %v", p.line("check"), p.names, p.stopped, p.metrics)
	}
	if runs := p.runs("check"); runs[0].State != RunInterrupted || runs[0].Why == "" || runs[1].State != RunEnded {
		t.Errorf("%+v", runs)
	}
	// A worker dies each time with the item.
	taken := 0
	p.receive(1, 7)
	for range 20 {
		for len(p.queue) > 0 {
			ref := p.queue[0].Run
			p.queue = p.queue[1:]
			for {
				page, err := p.Find(t.Context(), ref)
				if err != nil {
					t.Fatal(err)
				}
				if page.Next != NextWork {
					if err := p.End(t.Context(), ref); err != nil {
						t.Fatal(err)
					}
					break
				}
				got, err := p.Take(t.Context(), ref, 0, page.Lanes[0].Items[0])
				if err != nil {
					t.Fatal(err)
				}
				if got != nil {
					taken++
				}
			}
		}
		p.now = p.now.Add(time.Minute)
		if err := p.Tick(t.Context(), p.now.Add(time.Minute)); err != nil {
			t.Fatal(err)
		}
	}
	m := p.item("item:000007").Marks["Checked"]
	if taken != maxTakes || m.Outcome != event.Failure || p.line("check") != "failed 1" {
		t.Errorf("taken %d times, %+v, line %s", taken, m, p.line("check"))
	}
}

// TestLostRunIsMadeUpFor: a run that a person has started, and that is lost, is followed by another, also if nothing
// else starts the component. One that a person has interrupted is not.
func TestLostRunIsMadeUpFor(t *testing.T) {
	for name, interrupted := range map[string]bool{"lost": false, "interrupted": true} {
		p := newWorkshop(t)
		define(t, p.Store, checker("check", "Checked"))
		p.receive(1, 0)
		p.lost = true
		_, err := p.Start(t.Context(), "check", By{Actor: "ada", Reason: "now"})
		if err != nil {
			t.Fatal(err)
		}
		p.lost = false
		runs, line := 2, ""
		if interrupted {
			runs, line = 1, "ready 1"
			_, err = p.Interrupt(t.Context(), "check", By{Actor: "ada", Reason: "stop"})
			if err != nil {
				t.Fatal(err)
			}
			slots, err := p.slots(t.Context(), "check")
			if err != nil || slots[0].Rest != 0 { // that nothing was done is no reason to wait
				t.Errorf("%+v, %v", slots[0], err)
			}
		}
		for range 10 {
			p.tick()
		}
		got := p.runs("check")
		if len(got) != runs || got[0].State != RunInterrupted || p.line("check") != line {
			t.Errorf("%s: the line is %q, want %q; runs, want %d: %+v", name, p.line("check"), line, runs, got)
		}
	}
}

// TestLate: a worker stores nothing after the end of its claim, after its run was given up, or after
// the item was taken by another.
func TestLate(t *testing.T) {
	for name, happens := range map[string]func(p *workshop){
		"the claim ends": func(p *workshop) { p.now = p.now.Add(2 * time.Minute) },
		"the run is interrupted": func(p *workshop) {
			if _, err := p.Interrupt(p.Context(), "check", By{Actor: "ada", Reason: "stop"}); err != nil {
				p.Fatal(err)
			}
		},
		"another run takes the item": func(p *workshop) {
			if _, err := p.Interrupt(p.Context(), "check", By{Actor: "ada", Reason: "stop"}); err != nil {
				p.Fatal(err)
			}
			p.now = p.now.Add(2 * time.Minute)
			p.work = func(context.Context, Work) (Result, error) { return Result{Reason: "the other"}, nil }
			p.queue = nil
			if _, err := p.Start(p.Context(), "check", By{Actor: "ada", Reason: "again"}); err != nil {
				p.Fatal(err)
			}
			p.settleAll()
		},
		"the item is forgotten": func(p *workshop) {
			if _, err := p.Store.change(p.Context(), "item:000000", func(c *change) error {
				return c.append("item.forget", "", "items", By{}, struct{}{})
			}); err != nil {
				p.Fatal(err)
			}
		},
	} {
		p := newWorkshop(t)
		p.T = t
		define(t, p.Store, checker("check", "Checked"))
		p.receive(1, 0)
		p.work = func(context.Context, Work) (Result, error) {
			happens(p)
			return Result{Reason: "late"}, nil
		}
		if _, err := p.Start(t.Context(), "check", By{Actor: "ada", Reason: "now"}); err != nil {
			t.Fatal(err)
		}
		ref := p.queue[0].Run
		if _, err := p.Find(t.Context(), ref); err != nil {
			t.Fatal(err)
		}
		if err := p.Work(t.Context(), ref, 0, "item:000000"); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		rows, _, err := event.Page(t.Context(), p.Store.Table, itemSubject("item:000000"), "")
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range rows {
			if strings.Contains(r.Detail, "late") {
				t.Errorf("%s: the late result was stored: %s", name, r.Detail)
			}
		}
		if p.metrics[MetricLate] != 1 {
			t.Errorf("%s: metrics %v", name, p.metrics)
		}
	}
}

// TestTimeOut: an item that takes too long is a failure, also if the function does not return.
func TestTimeOut(t *testing.T) {
	for name, hangs := range map[string]bool{"it returns": false, "it hangs": true} {
		synctest.Test(t, func(t *testing.T) {
			p := newWorkshop(t)
			p.Store.Now = time.Now
			d := checker("check", "Checked")
			d.Timeout = &Timeout{Item: 3}
			define(t, p.Store, d)
			p.receive(1, 0)
			done := make(chan struct{})
			defer close(done)
			p.work = func(ctx context.Context, _ Work) (Result, error) {
				if hangs {
					<-done
				}
				<-ctx.Done()
				return Result{}, ctx.Err()
			}
			id, err := p.Start(t.Context(), "check", By{Actor: "ada", Reason: "now"})
			if err != nil {
				t.Fatal(err)
			}
			p.settleAll()
			run := p.status("check", id)
			if len(run.Items) != 1 || run.Items[0].State != event.Failure ||
				!strings.HasPrefix(run.Items[0].Reason, "timed out after 3 s") {
				t.Errorf("%s: %+v", name, run.Items)
			}
		})
	}
}

// TestUnstorable: an item with which a result cannot be stored is broken, which the run shows.
func TestUnstorable(t *testing.T) {
	p := newWorkshop(t)
	define(t, p.Store, checker("check", "Checked"))
	p.receive(1, 0)
	id, err := p.Start(t.Context(), "check", By{Actor: "ada", Reason: "now"})
	if err != nil {
		t.Fatal(err)
	}
	ref := p.queue[0].Run
	if _, err := p.Find(t.Context(), ref); err != nil {
		t.Fatal(err)
	}
	taken, err := p.Take(t.Context(), ref, 0, "item:000000")
	if err != nil {
		t.Fatal(err)
	}
	taken.Event = strings.Repeat("E", event.MaxDetail) // the detail of the event is too large
	if err := p.Record(t.Context(), ref, 0, *taken, Result{}, nil); err != nil {
		t.Fatal(err)
	}
	if run := p.status("check", id); !slices.Equal(run.Broken, []string{"item:000000"}) || run.Counts.Done != 0 ||
		p.metrics[MetricBroken] != 1 {
		t.Errorf("%+v, metrics %v", run, p.metrics)
	}
}
