package consumer_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"archivist/pkg/events/consumer"
	"archivist/pkg/events/envelope"
	"archivist/pkg/kernel/fault"
)

func changes(before, after, action string) func(*envelope.Event) {
	return func(e *envelope.Event) {
		e.Before, e.After, e.Action = json.RawMessage(before), json.RawMessage(after), action
	}
}

// TestCoalesce: events of a key inside a window are one item, with what changed from the
// first to the last.
func TestCoalesce(t *testing.T) {
	b := newBench(t)
	b.apply(define("c", func(d *consumer.Definition) { d.Coalesce = &consumer.Coalesce{Cancel: true} }))
	b.add("maps", "a", changes(`{"title":"x"}`, `{"title":"y"}`, envelope.Modify))
	b.add("maps", "b", changes(``, `{"title":"n"}`, envelope.Create))
	b.add("maps", "a", changes(`{"title":"y","size":1}`, `{"title":"z","size":2}`, envelope.Modify),
		func(e *envelope.Event) {
			e.Type, e.Cause = "job.held", envelope.Cause{Event: "q", Root: "q", Depth: 1}
		})
	b.add("maps", "b", changes(``, ``, envelope.Delete))
	b.add("maps", "c")
	b.add("maps", "a", changes(`{"size":2}`, `{"size":3}`, envelope.Modify))
	b.run("c", "maps")
	b.want("handled", b.handled(), "a.3 c.1")
	it := b.calls[0].Events[0]
	got := fmt.Sprintln(it.Count, it.FirstSeq, it.LastSeq, it.IDs, it.Types, string(it.Before), string(it.After),
		it.Cause.Depth)
	b.want("item", strings.TrimSpace(got),
		`3 1 6 [a.1 a.2 a.3] [job.held job.state] {"size":1,"title":"x"} {"size":3,"title":"z"} 1`)
}

// TestQuiet: over windows, a key waits until it has been quiet, but not longer than its
// bound, and not for more events than one row has.
func TestQuiet(t *testing.T) {
	b := newBench(t)
	b.apply(define("c", func(d *consumer.Definition) { d.Coalesce = &consumer.Coalesce{Debounce: 60, MaxWait: 150} }))
	step := func(d time.Duration, subjects ...string) {
		b.now = b.now.Add(d)
		for _, s := range subjects {
			b.add("maps", s)
		}
		b.run("c", "maps")
	}
	step(0, "a", "b", "a")
	b.want("at first", b.handled(), "")
	e := b.log.events["maps"][0]
	x, err := b.store.Explain(t.Context(), "c", e)
	if err != nil || x.State != consumer.EventDebounced || !strings.Contains(x.Why, "1 others") {
		t.Errorf("explained as %+v, %v", x, err)
	}
	step(40*time.Second, "a")
	b.tick("")
	b.now = b.now.Add(20 * time.Second)
	b.tick("c maps")
	step(0)
	b.want("b is quiet", b.handled(), "b.1")
	step(30*time.Second, "a")
	step(30*time.Second, "a")
	step(30*time.Second, "a")
	b.want("a has waited long enough", b.handled(), "b.1 a.5")
	if it := b.calls[1].Events[0]; it.Count != 5 || it.IDs[0] != "a.1" {
		t.Errorf("the item is %+v", it)
	}
	many := make([]string, 250)
	for i := range many {
		many[i] = "m"
	}
	b.got = nil
	step(0, many...)
	b.want("full rows", b.handled(), "m.100 m.200")
	step(61 * time.Second)
	b.want("the rest", b.handled(), "m.100 m.200 a.6 m.250")
	b.want("in the end", b.state("maps"), "257 of 257, 0 parked [], 0 wait, 0 redrives, running false")
}

// TestNoLongerQuiet: when the definition does not coalesce any more, what waits is handled
// before newer events.
func TestNoLongerQuiet(t *testing.T) {
	b := newBench(t)
	b.apply(define("c", quietConsumer))
	b.add("maps", "a")
	b.run("c", "maps")
	b.add("maps", "a")
	b.apply(define("c"))
	b.run("c", "maps")
	b.want("handled", b.handled(), "a.1 a.2")
}

// TestEpoch: after the log was restored a cursor stops with an error that says what to do,
// until it is reset.
func TestEpoch(t *testing.T) {
	b := newBench(t)
	b.apply(define("c"))
	b.add("maps", "a")
	b.run("c", "maps")
	b.log.partitions[0].Epoch = 2
	b.add("maps", "b")
	for range 2 {
		_, err := b.runtime.Run(t.Context(), "c", "maps", b.now.Add(time.Minute))
		if !fault.Is(err, fault.Conflict) || !strings.Contains(err.Error(), "archivist consumer reset") {
			t.Fatalf("the error is %v", err)
		}
	}
	b.now = b.now.Add(time.Hour)
	b.tick("")
	if b.metrics[consumer.MetricStopped] != 1 {
		t.Errorf("metrics: %v", b.metrics)
	}
	if err := b.store.Reset(t.Context(), "c", "", "horizon", bob); err != nil {
		t.Fatal(err)
	}
	b.run("c", "maps")
	b.want("handled", b.handled(), "a.1 a.1 b.1")
}

// TestResetToCursor: after the log was restored a consumer goes on from where it is, or from the
// newest event if that is before it; nothing is handled again, and nothing is left out.
func TestResetToCursor(t *testing.T) {
	b := newBench(t)
	b.apply(define("c"))
	for _, s := range []string{"a", "b", "c"} {
		b.add("maps", s)
		b.add("books", s)
	}
	b.run("c", "maps")
	b.run("c", "books")
	books := b.log.find("books")
	books.Head, b.log.events["books"] = 2, b.log.events["books"][:2] // of a moment before
	for i := range b.log.partitions {
		b.log.partitions[i].Epoch = 2
	}
	if err := b.store.Reset(t.Context(), "c", "", consumer.AtCursor, bob); err != nil {
		t.Fatal(err)
	}
	st, err := b.store.Show(t.Context(), "c")
	if err != nil || len(st.Places) != 2 || st.Behind != 0 {
		t.Errorf("%+v, %v", st, err)
	}
	b.got = nil
	b.add("maps", "d")
	b.add("books", "d")
	b.run("c", "maps")
	b.run("c", "books")
	b.want("handled", b.handled(), "d.1 d.2")
	d := define("new")
	d.Start = consumer.AtCursor
	if _, err := b.store.Apply(t.Context(), d, bob); !fault.Is(err, fault.Invalid) {
		t.Errorf("a consumer starts at a cursor that it does not have: %v", err)
	}
}

// TestBlock: by policy, the cursor stays before an event that fails; it is tried again, with
// waits that double, and what came after it is handled once.
func TestBlock(t *testing.T) {
	b := newBench(t)
	b.apply(define("c", func(d *consumer.Definition) {
		d.OnFailure, d.Retries = consumer.Block, consumer.NoRetries
	}))
	b.fails["b.1"] = "no title"
	for _, s := range []string{"a", "b", "c"} {
		b.add("maps", s)
	}
	b.run("c", "maps")
	b.want("handled", b.handled(), "a.1 c.1")
	for range 3 {
		b.now = b.now.Add(time.Hour)
		b.tick("c maps")
		b.run("c", "maps")
	}
	b.want("handled", b.handled(), "a.1 c.1")
	st, err := b.store.Show(t.Context(), "c")
	if err != nil || st.Places[0].Seq != 1 || st.Places[0].Stop.Kind != consumer.Blocked ||
		st.Places[0].Stop.Reason != "no title" || st.Places[0].Stop.Tries != 4 {
		t.Errorf("%+v, %v", st.Places, err)
	}
	if err := b.store.Skip(t.Context(), "c", "maps", 2, bob); err != nil {
		t.Fatal(err)
	}
	b.run("c", "maps")
	b.want("handled", b.handled(), "a.1 c.1 c.1")
	x, err := b.store.Explain(t.Context(), "c", b.log.events["maps"][1])
	if err != nil || x.State != consumer.EventSkipped {
		t.Errorf("explained as %+v, %v", x, err)
	}
}

// TestFull: whatever fails of a window fits a transaction; when as many are parked as can
// be, the cursor stops and says so.
func TestFull(t *testing.T) {
	b := newBench(t)
	b.apply(define("c", func(d *consumer.Definition) { d.Retries, d.Batch = consumer.NoRetries, 90 }))
	reason := strings.Repeat("no title ", 1000)
	for i := range consumer.MaxParked + 5 {
		id := fmt.Sprintf("s%d", i)
		b.fails[id+".1"] = reason
		b.add("maps", id)
	}
	b.run("c", "maps")
	st, err := b.store.Show(t.Context(), "c")
	if err != nil || st.Parked != consumer.MaxParked || st.Places[0].Stop == nil ||
		st.Places[0].Stop.Kind != consumer.Full || st.Behind != 5 {
		t.Fatalf("%+v, %v", st, err)
	}
	x, err := b.store.Explain(t.Context(), "c", b.log.events["maps"][consumer.MaxParked])
	if err != nil || x.State != consumer.EventWaiting || !strings.Contains(x.Why, "as many events are parked") {
		t.Errorf("explained as %+v, %v", x, err)
	}
	b.fails = nil
	if _, err := b.store.Redrive(t.Context(), "c", consumer.Selection{All: true}, bob); err != nil {
		t.Fatal(err)
	}
	b.run("c", "maps")
	if n := len(b.got); n != consumer.MaxParked+5 {
		t.Errorf("%d handled; %s", n, b.state("maps"))
	}
}

// TestGenerations: a log that is split is read in order: the old partition first, also what
// it has parked.
func TestGenerations(t *testing.T) {
	b := newBench(t)
	b.apply(define("c", func(d *consumer.Definition) { d.Retries = consumer.NoRetries }))
	b.fails["a.1"] = "broken"
	b.add("maps", "a")
	b.add("maps", "b")
	b.log.partitions[0].Closed = true
	for i, name := range []string{"maps.1.0", "maps.1.1"} {
		b.add(name, string(rune('a'+i)))
		p := b.log.find(name)
		p.Generation, p.Part = 1, i
	}
	b.woken = nil
	b.run("c", "maps.1.0")
	b.want("too early", b.handled()+strings.Join(b.woken, ","), "c maps")
	b.woken = nil
	b.run("c", "maps")
	b.want("woken", strings.Join(b.woken, ","), "c maps.1.0,c maps.1.1")
	b.run("c", "maps.1.0")
	b.run("c", "maps.1.1")
	b.want("handled", b.handled(), "b.1 b.2")
	b.fails = nil
	all := consumer.Selection{All: true}
	if n, err := b.store.Redrive(t.Context(), "c", all, bob); n != 2 || err != nil {
		t.Fatal(n, err)
	}
	b.run("c", "maps.1.0") // it waits for what is parked before
	b.want("handled", b.handled(), "b.1 b.2")
	b.run("c", "maps")
	if n, err := b.store.Redrive(t.Context(), "c", all, bob); n != 1 || err != nil {
		t.Fatal(n, err)
	}
	b.run("c", "maps.1.0")
	b.want("handled", b.handled(), "b.1 b.2 a.1 a.2")
}

// TestOwnEvents: what a consumer caused is handled by the rule of its definition, and
// explain says so.
func TestOwnEvents(t *testing.T) {
	b := newBench(t)
	b.add("maps", "a")
	own := b.add("maps", "b", func(e *envelope.Event) { e.Cause.Components, e.Cause.Depth = []string{"x", "c"}, 1 })
	b.add("maps", "d", func(e *envelope.Event) { e.Cause.Components, e.Cause.Depth = []string{"c", "x"}, 2 })
	deep := b.add("maps", "e", func(e *envelope.Event) { e.Cause.Depth = 9 })
	// A part of the system may have the name of a consumer.
	b.add("maps", "f", func(e *envelope.Event) { e.Context.Component = "c" })
	for rule, want := range map[string]string{consumer.OwnIgnore: "a.1 d.1 f.1", consumer.OwnChain: "a.1 f.1",
		consumer.OwnHandle: "a.1 b.1 d.1 f.1"} {
		b.apply(define("c", func(d *consumer.Definition) { d.OwnEvents = rule }))
		if err := b.store.Reset(t.Context(), "c", "", "horizon", bob); err != nil {
			t.Fatal(err)
		}
		b.got = nil
		b.run("c", "maps")
		b.want(rule, b.handled(), want)
	}
	if b.metrics[consumer.MetricDepth] != 3 {
		t.Errorf("metrics %v", b.metrics)
	}
	b.apply(define("c"))
	for e, want := range map[string]string{own.ID: "itself", deep.ID: "maxDepth"} {
		x, err := b.store.Explain(t.Context(), "c", b.event(e))
		if err != nil || x.State != consumer.EventNotSelected || !strings.Contains(x.Why, want) {
			t.Errorf("%s: explained as %+v, %v", e, x, err)
		}
	}
}

// TestAnyDepth: one of our handlers that only keeps a record handles every event, however long its chain of causes is.
// A function of a user must have a limit.
func TestAnyDepth(t *testing.T) {
	b := newBench(t)
	for n := range 25 {
		b.add("maps", "a", func(e *envelope.Event) { e.Cause.Depth = n })
	}
	b.apply(define("c", func(d *consumer.Definition) {
		d.Start, d.MaxDepth = consumer.StartHorizon, consumer.AnyDepth
	}))
	b.run("c", "maps")
	if len(b.got) != 25 || b.metrics[consumer.MetricDepth] != 0 {
		t.Errorf("%d handled, %v", len(b.got), b.metrics)
	}
	d := define("f", func(d *consumer.Definition) {
		d.Target, d.MaxDepth = consumer.Target{Queue: "https://sqs.us-east-1.amazonaws.com/1/q"}, consumer.AnyDepth
	})
	if err := d.Check(); !fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), "maxDepth") {
		t.Errorf("a queue without a limit: %v", err)
	}
}

func (b *bench) event(id string) envelope.Event {
	for _, all := range b.log.events {
		for _, e := range all {
			if e.ID == id {
				return e
			}
		}
	}
	b.Fatalf("no event %s", id)
	return envelope.Event{}
}

// TestExplain: each state of an event has its reason.
func TestExplain(t *testing.T) {
	b := newBench(t)
	b.add("maps", "old")
	b.apply(define("c", func(d *consumer.Definition) {
		d.Filter, d.Start, d.Retries = "*+modify", consumer.StartLatest, consumer.NoRetries
	}))
	b.fails["a.1"] = "no title"
	for _, s := range []string{"a", "a", "b"} {
		b.add("maps", s)
	}
	b.add("maps", "c", func(e *envelope.Event) { e.Action = envelope.Delete })
	b.run("c", "maps")
	b.add("maps", "d")
	for id, want := range map[string]string{
		"old.1": "skipped in the log before the consumer started", "a.1": "parked no title",
		"a.2": "parked behind the event a.1", "b.1": "handled has handled it", "c.1": "not-selected *+modify",
		"d.1": "waiting will be woken",
	} {
		x, err := b.store.Explain(t.Context(), "c", b.event(id))
		state, reason, _ := strings.Cut(want, " ")
		if err != nil || x.State != state || !strings.Contains(x.Why, reason) {
			t.Errorf("%s: explained as %+v, %v; want %s", id, x, err, want)
		}
	}
	e := b.event("d.1")
	if err := b.store.Pause(t.Context(), "c", bob); err != nil {
		t.Fatal(err)
	}
	if x, _ := b.store.Explain(t.Context(), "c", e); !strings.Contains(x.Why, "paused") {
		t.Errorf("explained as %+v", x)
	}
	e.Seq = 0
	if x, _ := b.store.Explain(t.Context(), "c", e); x.State != consumer.EventUnplaced {
		t.Errorf("explained as %+v", x)
	}
}

// TestDryRun: a filter is tried on the past log, page by page, and nothing changes.
func TestDryRun(t *testing.T) {
	b := newBench(t)
	for i := range 6000 {
		b.add("maps", fmt.Sprintf("s%d", i%7), func(e *envelope.Event) { e.Version = int64(i) })
	}
	b.add("books", "s1")
	read, selected, pages := 0, 0, 0
	for cursor := ""; pages == 0 || cursor != ""; pages++ {
		page, err := b.store.DryRun(t.Context(), "*+*{id=s1}", "", "horizon", cursor)
		if err != nil || len(page.Events) > 100 {
			t.Fatal(len(page.Events), err)
		}
		read, selected, cursor = read+page.Read, selected+page.Selected, page.Cursor
	}
	if read != 6001 || selected != 858 || pages != 2 {
		t.Errorf("read %d, selected %d, in %d pages", read, selected, pages)
	}
	page, err := b.store.DryRun(t.Context(), "*+*", "books", "horizon", "")
	if err != nil || page.Read != 1 {
		t.Errorf("%+v, %v", page, err)
	}
	if _, err := b.store.DryRun(t.Context(), "Itme+*", "", "horizon", ""); !fault.Is(err, fault.Invalid) ||
		!strings.Contains(err.Error(), "column 1") {
		t.Errorf("a wrong filter: %v", err)
	}
	if len(b.fake.All()) != 0 {
		t.Errorf("it wrote %d rows", len(b.fake.All()))
	}
}

// TestPassed: what a required consumer has not handled is held back: what is parked and what
// waits, too.
func TestPassed(t *testing.T) {
	b := newBench(t)
	passed := func() string {
		t.Helper()
		seqs, ok, err := b.store.Passed(t.Context(), b.log.partitions)
		if err != nil {
			t.Fatal(err)
		}
		return fmt.Sprint(ok, seqs)
	}
	for _, s := range []string{"a", "b", "c", "b"} {
		b.add("maps", s)
	}
	b.apply(define("free"))
	b.want("without a required one", passed(), "false map[]")
	b.apply(define("c", func(d *consumer.Definition) { d.Required, d.Retries = true, consumer.NoRetries }))
	b.want("before", passed(), "true map[maps:0]")
	b.fails["b.1"] = "broken"
	b.run("c", "maps")
	b.want("parked", passed(), "true map[maps:1]")
	b.fails = nil
	if _, err := b.store.Redrive(t.Context(), "c", consumer.Selection{Event: "b.2"}, bob); err != nil {
		t.Fatal(err)
	}
	b.run("c", "maps")
	b.want("handled", passed(), "true map[maps:4]")
}
