package consumer_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"archivist/pkg/events/consumer"
)

// TestDeferred: a consumer that a collection defers does not handle its events, but those of
// others; the events are queued, and are handled in order when it is released. It counts
// neither as stopped nor as late, and a replay runs in any case.
func TestDeferred(t *testing.T) {
	b := newBench(t)
	names := []string{"c"}
	b.runtime.Deferred = func(_ context.Context, log string) ([]string, error) {
		if log == "maps" {
			return names, nil
		}
		return nil, nil
	}
	b.apply(define("c"))
	b.apply(define("d"))
	b.add("maps", "a")
	b.add("books", "x")
	b.add("maps", "a")
	for _, p := range []string{"maps", "books"} {
		b.run("c", p)
	}
	b.want("handled by c", b.handled(), "x.1")
	b.run("d", "maps")
	b.run("d", "books")
	b.want("handled by both", b.handled(), "x.1 a.1 a.2 x.1")
	b.now = b.now.Add(time.Hour)
	b.settle()
	if b.metrics[consumer.MetricStopped] != 0 || b.metrics[consumer.MetricLag] != 0 {
		t.Errorf("metrics %v", b.metrics)
	}
	st, err := b.store.Show(t.Context(), "c")
	if err != nil || st.Places[0].Stop == nil || st.Places[0].Stop.Kind != consumer.Deferred || st.Behind != 2 {
		t.Errorf("%+v, %v", st, err)
	}
	p := b.replay("", consumer.Range{Partition: "maps", Until: "seq:1"})
	b.got = nil
	b.settle()
	b.show(p.ID)
	b.want("replayed", b.handled(), "a.1")
	names, b.got = nil, nil
	b.add("maps", "b")
	b.now = b.now.Add(5 * time.Minute)
	b.settle()
	b.want("handled when it is released", b.handled(), "a.1 a.2 b.1 b.1") // the last by d, which comes behind c
	if st, err := b.store.Show(t.Context(), "c"); err != nil || st.Places[0].Stop != nil || st.Behind != 0 {
		t.Errorf("%+v, %v", st, err)
	}
}

// TestDeferredUnknown: a run that cannot read the profile handles nothing.
func TestDeferredUnknown(t *testing.T) {
	b := newBench(t)
	b.runtime.Deferred = func(context.Context, string) ([]string, error) { return nil, errors.New("the table is away") }
	b.apply(define("c"))
	b.add("maps", "a")
	if _, err := b.runtime.Run(t.Context(), "c", "maps", b.now.Add(time.Minute)); err == nil || b.got != nil {
		t.Errorf("%v; handled %v", err, b.got)
	}
	b.runtime.Deferred = nil
	b.run("c", "maps")
	b.want("handled", b.handled(), "a.1")
}
