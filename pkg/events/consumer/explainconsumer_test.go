package consumer_test

import (
	"strings"
	"testing"
	"time"

	"archivist/pkg/events/consumer"
	"archivist/pkg/kernel/explain"
	"archivist/pkg/kernel/fault"
)

// TestExplainConsumer: what a consumer waits for: a person first, then what the system does by itself.
func TestExplainConsumer(t *testing.T) {
	b := newBench(t)
	says := func(state string, waits explain.Wait, says, todo string) {
		t.Helper()
		x, err := b.store.ExplainConsumer(t.Context(), "c")
		if err != nil || x.State != state || x.Waits != waits || !strings.Contains(x.Why, says) {
			t.Errorf("%+v, %v; want one that waits for %s: %s", x, err, waits, says)
		}
		for _, s := range x.Do {
			if strings.HasPrefix(s.Command, todo) {
				return
			}
		}
		if todo != "" {
			t.Errorf("to do is %+v; want %s", x.Do, todo)
		}
	}
	b.apply(define("c", func(d *consumer.Definition) {
		d.Retries, d.OnFailure = consumer.NoRetries, consumer.Block
	}))
	says("up to date", explain.Nothing, "all events", "")
	if err := b.store.Pause(t.Context(), "c", bob); err != nil {
		t.Fatal(err)
	}
	says("up to date", explain.Hold, "end of the log; it is paused", "archivist consumer resume c")
	if err := b.store.Resume(t.Context(), "c", bob); err != nil {
		t.Fatal(err)
	}
	b.add("books", "z")
	b.run("c", "books")
	b.add("maps", "a") // no lag yet: what is behind is told, not the first partition
	says("behind", explain.Turn, "1 events behind; in the partition maps it has come to event 0 of 1", "")
	if err := b.store.Pause(t.Context(), "c", bob); err != nil {
		t.Fatal(err)
	}
	says("behind", explain.Hold, "it is paused", "archivist consumer resume c")
	if err := b.store.Resume(t.Context(), "c", bob); err != nil {
		t.Fatal(err)
	}
	b.fails["a.1"] = "no title"
	b.run("c", "maps")
	says("behind", explain.Person, "no title", "archivist consumer skip c --partition maps --seq 1")

	b.apply(define("c", func(d *consumer.Definition) { d.Retries = consumer.NoRetries }))
	b.now = b.now.Add(time.Hour)
	b.run("c", "maps")
	says("parked", explain.Person, "It has handled all events. 1 events are parked", "archivist consumer parked c")
	if _, err := b.store.ExplainConsumer(t.Context(), "other"); !fault.Is(err, fault.NotFound) {
		t.Error(err)
	}
}
