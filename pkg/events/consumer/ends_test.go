package consumer_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"archivist/pkg/events/consumer"
)

// TestReplayFull: a partition of which more fails than can be kept is not replayed to its end, and the
// result says so.
func TestReplayFull(t *testing.T) {
	b := newBench(t)
	b.apply(define("c", func(d *consumer.Definition) { d.Retries, d.Batch, d.Paused = consumer.NoRetries, 90, true }))
	for i := range consumer.MaxParked + 5 {
		id := fmt.Sprintf("s%d", i)
		b.fails[id+".1"] = "broken"
		b.add("maps", id)
	}
	b.add("books", "x")
	p := b.replay("again", consumer.Range{})
	b.settle()
	got := b.show(p.ID)
	if got.Failed != consumer.MaxParked+1 || got.Failures[0].ID != "maps" ||
		!strings.Contains(got.Failures[0].Reason, "as many failures") {
		t.Errorf("the result is %+v", got)
	}
	b.want("handled", b.handled(), "x.1")
}

// half replays two partitions of a consumer, until the event a.1 of the first has failed.
func (b *bench) half() consumer.Replay {
	b.apply(define("c", func(d *consumer.Definition) { d.Retries, d.Paused = consumer.NoRetries, true }))
	b.add("maps", "a")
	b.add("books", "x")
	b.fails["a.1"] = "it is broken"
	p := b.replay("again", consumer.Range{})
	if err := b.runtime.Tick(b.Context(), b.now.Add(time.Minute)); err != nil {
		b.Fatal(err)
	}
	b.run("c~"+p.ID, "maps")
	b.now = b.now.Add(10 * time.Minute)
	return p
}

// TestReplayEndsEarly: the result of a replay that ends too early has what failed, and why it ended.
func TestReplayEndsEarly(t *testing.T) {
	remove := func(b *bench, _ consumer.Replay) error { return b.store.Delete(b.Context(), "c", true, bob) }
	for _, c := range []struct {
		name string
		do   func(b *bench, p consumer.Replay) error
		want string
	}{
		{"cancelled", func(b *bench, p consumer.Replay) error {
			return b.store.CancelReplay(b.Context(), p.ID, bob)
		}, ""},
		{"deleted", remove, "c: consumer c was deleted"},
		{"another of its name", func(b *bench, p consumer.Replay) error {
			err := remove(b, p)
			b.apply(define("c", func(d *consumer.Definition) { d.Paused = true }))
			return err
		}, "c: consumer c was deleted, and another of its name was made"},
		{"not replayed any more", func(b *bench, _ consumer.Replay) error {
			b.apply(define("c", func(d *consumer.Definition) { d.Retries, d.IgnoreReplays = consumer.NoRetries, true }))
			return nil
		}, "c: consumer c is not replayed any more (ignoreReplays in its definition)"},
	} {
		b := newBench(t)
		p := b.half()
		if err := c.do(b, p); err != nil {
			t.Fatal(err)
		}
		b.run("c~"+p.ID, "books") // before the clock looks
		b.settle()
		got := b.show(p.ID)
		if len(got.Failures) == 0 {
			t.Fatalf("%s: the result has no failures: %+v", c.name, got)
		}
		reasons := ""
		for _, f := range got.Failures[:len(got.Failures)-1] {
			reasons += f.ID + ": " + f.Reason
		}
		b.want(c.name, reasons, c.want)
		last := got.Failures[len(got.Failures)-1]
		if !got.Cancelled || got.Failed != int64(len(got.Failures)) || last.ID != "a.1" {
			t.Errorf("%s: %+v", c.name, got)
		}
		b.want(c.name+": handled", b.handled(), "")
		if left := b.leftovers(); left != nil {
			t.Errorf("%s: rows are left: %q", c.name, left)
		}
	}
}

// TestReplayOfRestored: a replay ends if the log is restored meanwhile: no reset of the consumer helps.
func TestReplayOfRestored(t *testing.T) {
	b := newBench(t)
	p := b.half()
	b.log.find("books").Epoch++
	b.settle()
	got := b.show(p.ID)
	if got.Failed != 2 || got.Failures[0].ID != "books" || !strings.Contains(got.Failures[0].Reason, "begin again") ||
		strings.Contains(got.Failures[0].Reason, "reset") {
		t.Errorf("the result is %+v", got)
	}
}
