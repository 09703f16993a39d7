package consumer_test

import (
	"strings"
	"testing"
	"time"

	"github.com/aws/smithy-go"

	"archivist/pkg/events/consumer"
	"archivist/pkg/kernel/table/tabletest"
)

// TestWaitAgainAndAgain: an event that is read again while its key waits to be quiet, because the cursor was moved
// back, is one event of its item.
func TestWaitAgainAndAgain(t *testing.T) {
	b := newBench(t)
	b.apply(define("c", func(d *consumer.Definition) {
		d.Coalesce = &consumer.Coalesce{Debounce: 60, MaxWait: 600}
	}))
	b.add("maps", "a")
	b.add("maps", "a")
	b.run("c", "maps")
	if err := b.store.Reset(t.Context(), "c", "", "horizon", bob); err != nil {
		t.Fatal(err)
	}
	b.run("c", "maps")
	b.now = b.now.Add(2 * time.Minute)
	b.run("c", "maps")
	b.want("handled", b.handled(), "a.2")
	if it := b.calls[0].Events[0]; it.Count != 2 || len(it.IDs) != 2 {
		t.Errorf("the item is %+v", it)
	}
}

// TestSleeperIsNotLate: a consumer with a schedule that has not come yet is not late, however long ago its events were
// placed.
func TestSleeperIsNotLate(t *testing.T) {
	b := newBench(t)
	b.apply(define("c", func(d *consumer.Definition) { d.Mode, d.Schedule = consumer.Scheduled, "rate(24 hours)" }))
	b.tick("")
	b.add("maps", "a")
	b.now = b.now.Add(20 * time.Hour)
	b.tick("")
	if lag := b.metrics[consumer.MetricLag]; lag != 0 {
		t.Errorf("it is %v seconds late", lag)
	}
}

// TestStopsAnew: a consumer that stops at another event begins with its tries and waits anew.
func TestStopsAnew(t *testing.T) {
	b := newBench(t)
	b.apply(define("c", func(d *consumer.Definition) {
		d.OnFailure, d.Retries = consumer.Block, consumer.NoRetries
	}))
	b.fails["a.1"], b.fails["b.1"] = "no title", "no title"
	b.add("maps", "a")
	b.add("maps", "b")
	tries := func(want int) {
		t.Helper()
		st, err := b.store.Show(t.Context(), "c")
		if err != nil || st.Places[0].Stop == nil || st.Places[0].Stop.Tries != want {
			t.Fatalf("%+v, %v", st.Places, err)
		}
	}
	for n := range 3 {
		b.run("c", "maps")
		tries(n + 1)
		b.now = b.now.Add(2 * time.Hour)
	}
	delete(b.fails, "a.1")
	b.run("c", "maps")
	tries(1)
}

// TestFailuresAreCounted: the metric counts events that have failed, not those that wait behind them.
func TestFailuresAreCounted(t *testing.T) {
	b := newBench(t)
	b.apply(define("c", func(d *consumer.Definition) { d.Retries = consumer.NoRetries }))
	b.fails["a.1"] = "broken"
	for _, s := range []string{"a", "a", "a", "b"} {
		b.add("maps", s)
	}
	b.run("c", "maps")
	if n := b.metrics[consumer.MetricFailed]; n != 1 {
		t.Errorf("%v events are counted", n)
	}
}

// TestPausedDuringRun: what waits until its key is quiet is handled after a pause, whenever in a run it came.
func TestPausedDuringRun(t *testing.T) {
	for at, calls := 1, 1; at <= calls; at++ {
		b := newBench(t)
		b.apply(define("c", func(d *consumer.Definition) {
			d.Coalesce = &consumer.Coalesce{Debounce: 60, MaxWait: 600}
		}))
		b.add("maps", "a")
		b.run("c", "maps")
		b.now = b.now.Add(2 * time.Minute)

		plain := b.runtime.Store
		calls = 0
		pause := func(_ string, call func() error) error {
			err := call()
			calls++
			if calls == at {
				paused := plain.Pause(t.Context(), "c", bob)
				if paused != nil {
					t.Fatal(paused)
				}
			}
			return err
		}
		b.runtime.Store = b.storeOn(tabletest.Table(&tabletest.Client{DynamoDBAPI: b.fake, Do: pause}))
		b.runtime.Store.Handlers = plain.Handlers
		b.run("c", "maps")
		b.runtime.Store = plain
		if err := plain.Resume(t.Context(), "c", bob); err != nil {
			t.Fatal(err)
		}
		for range 3 {
			b.now = b.now.Add(10 * time.Minute)
			b.woken = nil
			if err := b.runtime.Tick(t.Context(), b.now.Add(time.Minute)); err != nil {
				t.Fatal(err)
			}
			for range b.woken {
				b.run("c", "maps")
			}
		}
		if got := b.handled(); got != "a.1" {
			t.Errorf("paused after call %d of %d: handled %q", at, calls, got)
		}
	}
}

// TestReplaySaysThatItRepeats: a replay whose write fails after the target was called has perhaps repeated events, and
// says so, although its process goes on.
func TestReplaySaysThatItRepeats(t *testing.T) {
	b := newBench(t)
	b.apply(define("c", func(d *consumer.Definition) { d.Start = consumer.StartLatest }))
	b.add("maps", "a")
	if err := b.store.Reset(t.Context(), "c", "maps", consumer.StartLatest, bob); err != nil {
		t.Fatal(err)
	}
	p := b.replay("", consumer.Range{})
	failed := false
	m := newMortal(b, 1<<30, false)
	m.store = b.storeOn(tabletest.Through(b.fake, func(op string, call func() error) error {
		writes := strings.HasPrefix(op, "Put") || strings.HasPrefix(op, "Transact") || strings.HasPrefix(op, "Update")
		if len(b.got) > 0 && writes && !failed {
			failed = true
			return &smithy.GenericAPIError{Code: "AccessDeniedException", Message: "not now"}
		}
		return call()
	}))
	m.store.Handlers, m.runtime.Store = b.store.Handlers, m.store
	b.woken = nil
	_ = m.runtime.Tick(t.Context(), b.now.Add(time.Minute))
	for len(b.woken) > 0 && !failed {
		name, partition, _ := strings.Cut(b.woken[0], " ")
		b.woken = b.woken[1:]
		_, _ = m.runtime.Run(t.Context(), name, partition, b.now.Add(time.Minute))
	}
	b.now = b.now.Add(10 * time.Minute) // the flag of the run counts as lost
	b.settle()
	if got := b.show(p.ID); !failed || got.Repeats != 1 {
		t.Errorf("the write failed: %v; handled %q, %d repeats", failed, b.handled(), got.Repeats)
	}
}
