package consumer_test

import (
	"testing"

	"archivist/pkg/events/consumer"
)

// TestRun: events are handled once, in order, and a later run continues.
func TestRun(t *testing.T) {
	b := newBench(t)
	b.apply(define("c"))
	b.add("maps", "a")
	b.add("maps", "b")
	b.add("maps", "a")
	b.add("books", "x")
	b.run("c", "maps")
	b.want("handled", b.handled(), "a.1 b.1 a.2")
	b.run("c", "maps")
	b.run("c", "books")
	b.add("maps", "b")
	b.run("c", "maps")
	b.want("handled", b.handled(), "a.1 b.1 a.2 x.1 b.2")
}

// TestPark: an event that fails is parked with those behind it, and other keys go on.
func TestPark(t *testing.T) {
	b := newBench(t)
	b.apply(define("c", func(d *consumer.Definition) { d.Batch, d.Concurrency, d.Retries = 2, 1, 2 }))
	b.fails["a.1"] = "it is broken"
	for _, s := range []string{"a", "b", "a", "c", "b"} {
		b.add("maps", s)
	}
	b.run("c", "maps")
	b.want("handled", b.handled(), "b.1 c.1 b.2")
	if b.waits != 2 {
		t.Errorf("%d waits before tries; want 2", b.waits)
	}
	b.add("maps", "a")
	b.run("c", "maps")
	b.want("handled, although a.1 is parked", b.handled(), "b.1 c.1 b.2")
}

// TestPlacedMeanwhile: what is placed while a run is at work is handled by it, also if the run passes the head that it
// began with, and the flag was cleared by an earlier step: no other run comes, since the wake-up found this one.
func TestPlacedMeanwhile(t *testing.T) {
	b := newBench(t)
	b.apply(define("c", func(d *consumer.Definition) { d.Window, d.Batch = 2, 2 }))
	for range 3 {
		b.add("maps", "a")
	}
	b.onCall = func() {
		b.onCall = nil
		b.mu.Unlock() // the handler has locked it
		defer b.mu.Lock()
		b.placed("c maps", b.add("maps", "a"), b.add("maps", "a"), b.add("maps", "a"), b.add("maps", "a"))
		b.run("c", "maps") // the other has the lease
	}
	b.run("c", "maps")
	b.want("handled", b.handled(), "a.1 a.2 a.3 a.4 a.5 a.6 a.7")
	b.tick("")
}
