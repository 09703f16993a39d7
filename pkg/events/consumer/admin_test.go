package consumer_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"archivist/pkg/events/consumer"
	"archivist/pkg/events/envelope"
	"archivist/pkg/events/event"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/table/tabletest"
)

var bob = consumer.By{Actor: "bob", Reason: "it was broken"}

// history are the types of the events of a consumer.
func (b *bench) history(name string) string {
	b.Helper()
	rows, _, err := event.Page(b.Context(), b.store.Table, event.Subject{Type: event.Consumer, ID: name}, "")
	if err != nil {
		b.Fatal(err)
	}
	var types []string
	for i, r := range rows {
		types = append(types, strings.TrimPrefix(r.Type, "consumer."))
		if r.Version != int64(i+1) || r.Actor == "" {
			b.Errorf("event %d is %+v", i+1, r)
		}
	}
	return strings.Join(types, " ")
}

// TestApply: a definition is kept once, changes raise its version, and what a person set
// stays.
func TestApply(t *testing.T) {
	b := newBench(t)
	d := define("c", func(d *consumer.Definition) { d.Paused = true })
	b.apply(d)
	if c := b.apply(d); c.Version != 1 || !c.Paused {
		t.Errorf("applied twice: %+v", c)
	}
	if err := b.store.Resume(t.Context(), "c", bob); err != nil {
		t.Fatal(err)
	}
	d.Batch = 7
	if c := b.apply(d); c.Version != 2 || c.Paused || c.Batch != 7 {
		t.Errorf("changed: %+v", c)
	}
	b.want("events", b.history("c"), "created resumed changed")
	list, err := b.store.List(t.Context())
	if err != nil || len(list) != 1 || list[0].Name != "c" {
		t.Errorf("the list is %+v, %v", list, err)
	}
}

// TestStarts: a new consumer begins at its start, and partitions that are made later are
// read from their beginning.
func TestStarts(t *testing.T) {
	b := newBench(t)
	b.add("maps", "a")
	b.now = b.now.Add(48 * time.Hour)
	b.add("maps", "b")
	b.add("maps", "late", func(e *envelope.Event) { e.Time -= 20 * 60 * 60 * 1000 })
	b.add("maps", "c")
	for start, want := range map[string]string{
		"latest": "d.1 x.1", "horizon": "a.1 b.1 late.1 c.1 d.1 x.1", "seq:2": "b.1 late.1 c.1 d.1 x.1",
		"time:" + b.now.Format(time.RFC3339): "b.1 c.1 d.1 x.1",
	} {
		b.apply(define(start[:3], func(d *consumer.Definition) { d.Start = start }))
		defer func() {
			b.got = nil
			b.run(start[:3], "maps")
			b.run(start[:3], "books")
			b.want("start "+start, b.handled(), want)
		}()
	}
	b.add("maps", "d")
	b.add("books", "x")
}

// TestPauseAndResume: a paused consumer does nothing; its place is kept. A repeated request
// changes nothing.
func TestPauseAndResume(t *testing.T) {
	b := newBench(t)
	b.apply(define("c"))
	b.add("maps", "a")
	once := bob
	once.Request = "r1"
	for range 2 {
		if err := b.store.Pause(t.Context(), "c", once); err != nil {
			t.Fatal(err)
		}
	}
	b.run("c", "maps")
	b.want("while paused", b.handled(), "")
	if err := b.store.Resume(t.Context(), "c", bob); err != nil {
		t.Fatal(err)
	}
	if err := b.store.Pause(t.Context(), "c", once); err != nil { // an old request comes late
		t.Fatal(err)
	}
	b.run("c", "maps")
	b.want("after resume", b.handled(), "a.1")
	b.want("events", b.history("c"), "created paused resumed")
	if err := b.store.Pause(t.Context(), "c", consumer.By{Actor: "bob"}); !fault.Is(err, fault.Invalid) {
		t.Errorf("without a reason: %v", err)
	}
}

// TestPausedWhileRunning: a run ends after its step when its consumer is paused, changed or
// deleted meanwhile.
func TestPausedWhileRunning(t *testing.T) {
	for name, c := range map[string]struct {
		do   func(b *bench) error
		more bool
	}{
		"paused": {do: func(b *bench) error { return b.store.Pause(b.Context(), "c", bob) }},
		"changed": {do: func(b *bench) error {
			_, err := b.store.Apply(b.Context(), define("c", func(d *consumer.Definition) { d.Window = 2 }), bob)
			return err
		}, more: true},
		"reset":   {do: func(b *bench) error { return b.store.Reset(b.Context(), "c", "", "latest", bob) }},
		"deleted": {do: func(b *bench) error { return b.store.Delete(b.Context(), "c", true, bob) }},
	} {
		b := newBench(t)
		b.runtime.Handlers["note"] = consumer.HandlerFunc(func(ctx context.Context, batch consumer.Batch) (
			[]consumer.Failure, error) {
			if len(b.got) == 0 {
				if err := c.do(b); err != nil {
					t.Error(err)
				}
			}
			return b.note(ctx, batch)
		})
		b.apply(define("c", func(d *consumer.Definition) { d.Window = 1 }))
		b.add("maps", "a")
		b.add("maps", "b")
		more, err := b.runtime.Run(t.Context(), "c", "maps", b.now.Add(time.Minute))
		if err != nil || more != c.more {
			t.Errorf("%s: more %v, %v", name, more, err)
		}
		b.want(name, b.handled(), "a.1")
	}
}

// TestSkipAndReset: a cursor is moved forward and back.
func TestSkipAndReset(t *testing.T) {
	b := newBench(t)
	b.apply(define("c"))
	for _, s := range []string{"a", "b", "c", "d"} {
		b.add("maps", s)
	}
	for range 2 {
		if err := b.store.Skip(t.Context(), "c", "maps", 2, bob); err != nil {
			t.Fatal(err)
		}
	}
	b.run("c", "maps")
	b.want("after skip", b.handled(), "c.1 d.1")
	if err := b.store.Reset(t.Context(), "c", "", "horizon", bob); err != nil {
		t.Fatal(err)
	}
	b.run("c", "maps")
	b.want("after reset", b.handled(), "c.1 d.1 a.1 b.1 c.1 d.1")
	if err := b.store.Reset(t.Context(), "c", "maps", "seq:4", bob); err != nil {
		t.Fatal(err)
	}
	b.run("c", "maps")
	b.want("after reset to 4", b.handled(), "c.1 d.1 a.1 b.1 c.1 d.1 d.1")
	b.want("events", b.history("c"), "created skipped reset reset")
	for _, err := range []error{b.store.Skip(t.Context(), "c", "maps", 9, bob), b.store.Reset(t.Context(), "c", "",
		"seq:1", bob), b.store.Reset(t.Context(), "c", "", "never", bob)} {
		if !fault.Is(err, fault.Invalid) {
			t.Errorf("a wrong place: %v", err)
		}
	}
}

// TestRedrive: parked events run in order before new ones of their key, until one fails.
func TestRedrive(t *testing.T) {
	b := newBench(t)
	b.apply(define("c", func(d *consumer.Definition) { d.Retries = consumer.NoRetries }))
	b.fails["a.1"], b.fails["b.1"] = "broken", "broken"
	for _, s := range []string{"a", "b", "a", "c", "a"} {
		b.add("maps", s)
	}
	b.run("c", "maps")
	b.want("handled", b.handled(), "c.1")
	parked, _, err := b.store.Parked(t.Context(), "c", "maps", "")
	if err != nil || len(parked) != 4 {
		t.Fatalf("parked: %+v, %v", parked, err)
	}
	delete(b.fails, "a.1")
	b.fails["a.3"] = "broken too"
	b.add("maps", "a")
	if n, err := b.store.Redrive(t.Context(), "c", consumer.Selection{Event: "a.2"}, bob); n != 1 || err != nil {
		t.Fatal(n, err)
	}
	b.run("c", "maps")
	b.want("handled", b.handled(), "c.1 a.1 a.2")
	b.fails = map[string]string{}
	for range 2 { // the second time it waits already
		if _, err := b.store.Redrive(t.Context(), "c", consumer.Selection{Filter: "*+*{id=a}"}, bob); err != nil {
			t.Fatal(err)
		}
	}
	b.run("c", "maps")
	b.want("handled", b.handled(), "c.1 a.1 a.2 a.3 a.4")
	if _, err := b.store.Discard(t.Context(), "c", consumer.Selection{All: true}, bob); err != nil {
		t.Fatal(err)
	}
	b.run("c", "maps")
	b.add("maps", "b")
	b.run("c", "maps")
	b.want("handled", b.handled(), "c.1 a.1 a.2 a.3 a.4 b.2")
	st, err := b.store.Show(t.Context(), "c")
	if err != nil || st.Parked != 0 || st.Behind != 0 || st.Places[0].Redrives != 0 {
		t.Errorf("in the end: %+v, %v", st, err)
	}
	b.want("events", b.history("c"), "created redriven redriven discarded")
	_, err = b.store.Redrive(t.Context(), "c", consumer.Selection{Event: "a.2"}, bob)
	if !fault.Is(err, fault.NotFound) {
		t.Errorf("an event that is not parked: %v", err)
	}
}

// TestDelete: a consumer is removed with its rows, and can be made again; its events stay.
func TestDelete(t *testing.T) {
	b := newBench(t)
	b.apply(define("c", func(d *consumer.Definition) { d.Required, d.Retries = true, consumer.NoRetries }))
	b.fails["a.1"] = "broken"
	b.add("maps", "a")
	b.add("maps", "b")
	b.run("c", "maps")
	if err := b.store.Delete(t.Context(), "c", true, bob); !fault.Is(err, fault.Conflict) {
		t.Errorf("a required one: %v", err)
	}
	b.apply(define("c", func(d *consumer.Definition) { d.Retries = consumer.NoRetries }))
	if err := b.store.Delete(t.Context(), "c", false, bob); !fault.Is(err, fault.Conflict) {
		t.Errorf("with parked events: %v", err)
	}
	if err := b.store.Delete(t.Context(), "c", true, bob); err != nil {
		t.Fatal(err)
	}
	for _, it := range b.fake.All() {
		if pk := text(it["pk"]); strings.HasPrefix(pk, "PARKED") || strings.HasPrefix(text(it["sk"]), "CURSOR") {
			t.Errorf("the row %s %s is left", pk, text(it["sk"]))
		}
	}
	if _, err := b.store.Show(t.Context(), "c"); !fault.Is(err, fault.NotFound) {
		t.Errorf("a deleted consumer is shown: %v", err)
	}
	b.run("c", "maps")
	b.fails, b.got = nil, nil
	if c := b.apply(define("c")); c.Version != 3 {
		t.Errorf("made again: %+v", c)
	}
	b.run("c", "maps")
	b.want("the new one handles", b.handled(), "a.1 b.1")
	b.want("events", b.history("c"), "created changed deleted created")
}

// TestDeleteSeesWhatIsParkedMeanwhile: an event that is parked after the look at the cursors, and
// before the consumer is deleted, is not lost.
func TestDeleteSeesWhatIsParkedMeanwhile(t *testing.T) {
	b := newBench(t)
	b.apply(define("c", func(d *consumer.Definition) { d.Retries = consumer.NoRetries }))
	b.add("maps", "b")
	b.run("c", "maps")
	b.fails["a.1"] = "broken"
	b.add("maps", "a")
	parked := false
	s := b.storeOn(tabletest.Table(&tabletest.Client{DynamoDBAPI: b.fake, Do: func(op string, call func() error) error {
		if op == "TransactWriteItems" && !parked {
			parked = true
			b.run("c", "maps")
		}
		return call()
	}}))
	if err := s.Delete(t.Context(), "c", false, bob); !fault.Is(err, fault.Conflict) || !parked {
		t.Errorf("with an event that was parked meanwhile: %v", err)
	}
	if err := b.store.Delete(t.Context(), "c", true, bob); err != nil {
		t.Error(err)
	}
}
