package component

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"archivist/pkg/event"
	"archivist/pkg/fault"
	"archivist/pkg/table"
	"archivist/pkg/table/tabletest"
)

// errDead is the answer of every call of a process that has died.
var errDead = errors.New("this process is dead")

// plant is where robots work, in tests: a store, and executions that the test runs.
type plant struct {
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

func newPlant(t *testing.T) *plant {
	p := &plant{T: t, fake: tabletest.New(), now: time.UnixMilli(1_800_000_000_000), metrics: map[string]float64{}}
	p.work = func(context.Context, Work) (Result, error) { return Result{}, nil }
	p.Runner = p.runner(nil)
	return p
}

// runner is a process. do, if set, is asked at each call of the table and of Step Functions.
func (p *plant) runner(do func(op string, call func() error) error) *Runner {
	s := &Store{Now: func() time.Time { return p.now }, Functions: []string{"x"}}
	if do == nil {
		do = func(_ string, call func() error) error { return call() }
	}
	s.Table = tabletest.Table(&tabletest.Client{DynamoDBAPI: p.fake, Do: do})
	s.NewID = func() string { p.ids++; return fmt.Sprintf("%026d", p.ids) }
	r := &Runner{Store: s, Executions: &executions{p, do}, Metric: func(name string, n float64) { p.metrics[name] += n },
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
	p  *plant
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
func (p *plant) receive(n int, from int) {
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
			if err := r.WorkLane(ctx, ref, l); err != nil && errors.Is(err, errDead) {
				return err
			}
		}
	}
}

// settle runs all executions.
func (p *plant) settleAll() {
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
func (p *plant) tick() {
	p.Helper()
	p.now = p.now.Add(time.Minute)
	if err := p.Tick(p.Context(), p.now.Add(time.Minute)); err != nil {
		p.Fatal(err)
	}
	p.settleAll()
}

// line is how many items are in each class of a component's line.
func (p *plant) line(component string) string {
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

func (p *plant) item(id string) *Item {
	p.Helper()
	row, err := p.Store.row(p.Context(), id)
	if err != nil {
		p.Fatal(err)
	}
	return &row.it
}

// runs are the runs of a component, the oldest first.
func (p *plant) runs(component string) []Run {
	p.Helper()
	runs, _, err := p.Runs(p.Context(), component, "", 100)
	if err != nil {
		p.Fatal(err)
	}
	slices.Reverse(runs)
	return runs
}

func (p *plant) status(component, run string) Run {
	p.Helper()
	got, _, err := p.RunStatus(p.Context(), component, run, "", 1000)
	if err != nil {
		p.Fatal(err)
	}
	return got
}

// TestRun: a person starts a component; each item that is ready is worked on once, each result is an
// event with what it is based on, and the slot is free again.
func TestRun(t *testing.T) {
	p := newPlant(t)
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
	for id, want := range map[string]string{"item:000001": "it is broken", "item:000002": "the function panicked: a defect",
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
		it.Marks["Checked"].Based != (Based{Item: 2}) || it.Marks["Checked"].ID != rows[2].ID || len(it.Claims) > 0 {
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
	p := newPlant(t)
	d := checker("check", "Checked")
	d.Wake = true
	define(t, p.Store, d)
	parts, tries := 0, 0
	p.work = func(_ context.Context, w Work) (Result, error) {
		switch w.Subject {
		case "000000":
			if tries++; tries < 4 {
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
		if p.tick(); tries > before {
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

// TestLostRun: an execution that is lost is given up after its time; the item whose worker died is
// taken again, and is a failure after some times, with the reason.
func TestLostRun(t *testing.T) {
	p := newPlant(t)
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

// TestLate: a worker stores nothing after the end of its claim, after its run was given up, or after
// the item was taken by another.
func TestLate(t *testing.T) {
	for name, happens := range map[string]func(p *plant){
		"the claim ends": func(p *plant) { p.now = p.now.Add(2 * time.Minute) },
		"the run is interrupted": func(p *plant) {
			if _, err := p.Interrupt(p.Context(), "check", By{Actor: "ada", Reason: "stop"}); err != nil {
				p.Fatal(err)
			}
		},
		"another run takes the item": func(p *plant) {
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
		"the item is forgotten": func(p *plant) {
			if _, err := p.Store.change(p.Context(), "item:000000", func(c *change) error {
				return c.append("item.forget", "", "items", By{}, struct{}{})
			}); err != nil {
				p.Fatal(err)
			}
		},
	} {
		p := newPlant(t)
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
			p := newPlant(t)
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

// TestManyItems: a run of 10,000 items costs a fixed number of calls for each, goes on in another
// execution when one has had enough rounds, and keeps within maxItems.
func TestManyItems(t *testing.T) {
	n := 10_000
	if testing.Short() {
		n = 1000
	}
	p := newPlant(t)
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
	p := newPlant(t)
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
	p := newPlant(t)
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
	p := newPlant(t)
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
	if p.line("check") != "ready 3" || len(p.worked) != 7 || len(runs) > 10 || len(runs[1].Broken) != 3 ||
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
