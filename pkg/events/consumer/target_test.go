package consumer_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"archivist/pkg/events/consumer"
	"archivist/pkg/events/envelope"
	"archivist/pkg/events/event"
	"archivist/pkg/kernel/fault"
)

const function = "arn:aws:lambda:eu-central-1:000000000000:function:mine"

// external is a consumer whose target is a function.
func (b *bench) external(call func(consumer.Batch) ([]consumer.Failure, error),
	change ...func(*consumer.Definition)) {
	b.store.Targets = []string{function}
	b.runtime.Call = func(_ context.Context, _ consumer.Target, batch consumer.Batch) ([]consumer.Failure, error) {
		return call(batch)
	}
	change = append(change, func(d *consumer.Definition) { d.Target = consumer.Target{Lambda: function} })
	b.apply(define("c", change...))
}

// TestUnreachable: while a target cannot be called, nothing is parked; the cursor rests, and
// goes on by itself. Resume tries it at once.
func TestUnreachable(t *testing.T) {
	b := newBench(t)
	broken, calls := true, 0
	b.external(func(batch consumer.Batch) ([]consumer.Failure, error) {
		calls++
		if broken {
			return nil, fault.New(fault.Unavailable, "the function is missing")
		}
		return b.note(t.Context(), batch)
	})
	e := b.add("maps", "a")
	b.run("c", "maps")
	b.run("c", "maps") // it rests
	if calls != 1 || !strings.HasPrefix(b.state("maps"), "0 of 1, 0 parked") {
		t.Errorf("%d calls; %s", calls, b.state("maps"))
	}
	x, err := b.store.Explain(t.Context(), "c", e)
	if err != nil || x.State != consumer.EventWaiting || !strings.Contains(x.Why, "the function is missing") {
		t.Errorf("explained as %+v, %v", x, err)
	}
	b.now = b.now.Add(61 * time.Second)
	b.tick("c maps")
	b.run("c", "maps")
	b.run("c", "maps")
	broken = false
	if err := b.store.Resume(t.Context(), "c", bob); err != nil {
		t.Fatal(err)
	}
	b.run("c", "maps")
	if calls != 3 {
		t.Errorf("%d calls", calls)
	}
	b.want("handled", b.handled(), "a.1")
}

// TestWholeCallFails: an error about a whole call parks only the event that is to blame.
func TestWholeCallFails(t *testing.T) {
	for name, fails := range map[string]func(batch consumer.Batch) ([]consumer.Failure, error){
		"error":      func(consumer.Batch) ([]consumer.Failure, error) { return nil, errors.New("division by zero") },
		"unreadable": func(consumer.Batch) ([]consumer.Failure, error) { return []consumer.Failure{{ID: "?"}}, nil },
	} {
		b := newBench(t)
		b.external(func(batch consumer.Batch) ([]consumer.Failure, error) {
			for _, it := range batch.Events {
				if it.ID == "b.1" {
					return fails(batch)
				}
			}
			return b.note(t.Context(), batch)
		})
		for _, s := range []string{"a", "b", "c", "b"} {
			b.add("maps", s)
		}
		b.run("c", "maps")
		b.want(name, b.handled(), "a.1 c.1")
		parked, _, err := b.store.Parked(t.Context(), "c", "maps", "")
		if err != nil || len(parked) != 2 || parked[0].Behind != "" || parked[1].Behind != "b.1" ||
			!strings.Contains(parked[0].Reason, map[string]string{"error": "zero", "unreadable": `"?"`}[name]) {
			t.Errorf("%s: parked %+v, %v", name, parked, err)
		}
	}
}

// TestPanic: a handler that panics parks the event with the stack.
func TestPanic(t *testing.T) {
	b := newBench(t)
	b.runtime.Handlers["note"] = consumer.HandlerFunc(func(context.Context, consumer.Batch) (
		[]consumer.Failure, error) {
		panic("no title")
	})
	b.apply(define("c"))
	b.add("maps", "a")
	b.run("c", "maps")
	parked, _, err := b.store.Parked(t.Context(), "c", "maps", "")
	if err != nil || len(parked) != 1 || !strings.Contains(parked[0].Reason, "no title") ||
		!strings.Contains(parked[0].Stack, "target_test.go") {
		t.Errorf("parked %+v, %v", parked, err)
	}
}

// TestSizes: calls stay below the limit of a function, and the payload of an event that is
// too large is left out.
func TestSizes(t *testing.T) {
	b := newBench(t)
	var sizes []string
	b.external(func(batch consumer.Batch) ([]consumer.Failure, error) {
		data, err := json.Marshal(batch)
		if err != nil || len(data) > 6_000_000 {
			t.Errorf("a call of %d bytes, %v", len(data), err)
		}
		line := ""
		for _, it := range batch.Events {
			line += it.ID
			if it.Reference {
				line += " by reference"
			}
		}
		sizes = append(sizes, line)
		return nil, nil
	})
	detail := func(n int) func(*envelope.Event) {
		return func(e *envelope.Event) { e.Detail = json.RawMessage(`"` + strings.Repeat("x", n) + `"`) }
	}
	for i := range 7 {
		b.add("maps", fmt.Sprint("a", i), detail(900_000))
	}
	b.add("maps", "b", detail(1_100_000))
	b.run("c", "maps")
	b.want("calls", strings.Join(sizes, ", "), "a0.1a1.1a2.1a3.1a4.1, a5.1a6.1b.1 by reference")
}

// TestCause: what a handler changes has the event as its cause, of the batch or of each item.
func TestCause(t *testing.T) {
	b := newBench(t)
	var causes []envelope.Cause
	b.runtime.Handlers["note"] = consumer.HandlerFunc(func(ctx context.Context, batch consumer.Batch) (
		[]consumer.Failure, error) {
		causes = append(causes, event.OriginOf(ctx).Cause)
		return consumer.Each(ctx, batch, nil, func(ctx context.Context, it consumer.Item) error {
			causes = append(causes, event.OriginOf(ctx).Cause)
			return nil
		})
	})
	b.apply(define("c"))
	b.add("maps", "a")
	b.add("maps", "b", func(e *envelope.Event) {
		e.Cause = envelope.Cause{Event: "x.1", Root: "r.1", Depth: 2, Components: []string{"m"}}
		e.Context.Component = "n"
	})
	b.run("c", "maps")
	want := "[{b.1 r.1 3 [m n c]} {a.1 a.1 1 [c]} {b.1 r.1 3 [m n c]}]"
	b.want("causes", fmt.Sprint(causes), want)
}

// TestEach: after an event fails, later ones of its key are not handled.
func TestEach(t *testing.T) {
	var batch consumer.Batch
	for _, id := range []string{"a.1", "b.1", "a.2"} {
		batch.Events = append(batch.Events, consumer.Item{Event: envelope.Event{ID: id,
			Subject: envelope.Ref{Type: "Job", ID: id[:1]}}})
	}
	done := ""
	broken := errors.New("broken")
	failed, err := consumer.Each(t.Context(), batch, nil, func(_ context.Context, it consumer.Item) error {
		if it.ID == "a.1" {
			return broken
		}
		done += it.ID
		return nil
	})
	if err != nil || done != "b.1" || len(failed) != 1 || failed[0] != (consumer.Failure{ID: "a.1", Reason: "broken"}) {
		t.Errorf("%v, %v, done %s", failed, err, done)
	}
	broken = fault.New(fault.Unavailable, "no table")
	if _, err := consumer.Each(t.Context(), batch, nil, func(context.Context, consumer.Item) error {
		return broken
	}); !fault.Is(err, fault.Unavailable) {
		t.Errorf("without the table: %v", err)
	}
}

// TestLedger: an effect is entered once, with its transaction.
func TestLedger(t *testing.T) {
	b := newBench(t)
	l := consumer.Ledger{Table: b.store.Table, Consumer: "c"}
	enter := func(event string) error {
		tx := b.store.Table.Begin(b.store.NewID())
		l.Enter(tx, event, 0)
		return tx.Commit(t.Context())
	}
	if err := enter("a.1"); err != nil {
		t.Fatal(err)
	}
	if err := enter("a.1"); !fault.Is(err, fault.Stale) {
		t.Errorf("the second time: %v", err)
	}
	for id, want := range map[string]bool{"a.1": true, "b.1": false} {
		if done, err := l.Done(t.Context(), id); done != want || err != nil {
			t.Errorf("%s: %v, %v", id, done, err)
		}
	}
}
