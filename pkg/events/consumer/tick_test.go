package consumer_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"archivist/pkg/events/consumer"
	"archivist/pkg/events/envelope"
	"archivist/pkg/kernel/definition"
	"archivist/pkg/kernel/fault"
)

// tick lets the clock look, and compares whom it woke.
func (b *bench) tick(want string) {
	b.Helper()
	b.woken = nil
	if err := b.runtime.Tick(b.Context(), b.now.Add(time.Minute)); err != nil {
		b.Fatal(err)
	}
	b.want("woken by the clock", strings.Join(b.woken, ", "), want)
}

// placed tells of events, and compares whom that woke.
func (b *bench) placed(want string, events ...envelope.Event) {
	b.Helper()
	b.woken = nil
	if err := b.runtime.Placed(b.Context(), events); err != nil {
		b.Fatal(err)
	}
	b.want("woken", strings.Join(b.woken, ", "), want)
}

// TestPlaced: a wake-up is sent once, to consumers that select an event; a lost one is
// repeated, and a cursor that is behind is woken in the end.
func TestPlaced(t *testing.T) {
	b := newBench(t)
	b.apply(define("all"))
	b.apply(define("deletes", func(d *consumer.Definition) { d.Filter = "*+delete" }))
	b.apply(define("paused", func(d *consumer.Definition) { d.Paused = true }))
	e := b.add("maps", "a")
	b.placed("all maps", e, b.add("maps", "a"))
	b.placed("", e)
	b.tick("deletes maps") // it was never there
}

// TestClock: a lost wake-up is repeated after a minute, a cursor that is behind is woken
// after five, and the run of one that died after its lease.
func TestClock(t *testing.T) {
	b := newBench(t)
	b.apply(define("all"))
	b.apply(define("deletes", func(d *consumer.Definition) { d.Filter = "*+delete" }))
	b.add("maps", "a")
	b.run("all", "maps")
	b.run("deletes", "maps")
	e := b.add("maps", "b")
	b.placed("all maps", e)
	b.tick("")
	b.now = b.now.Add(61 * time.Second)
	b.tick("all maps")
	b.run("all", "maps")
	b.tick("")
	b.now = b.now.Add(4 * time.Minute)
	b.tick("deletes maps")
	b.run("deletes", "maps")

	b.add("maps", "c")
	m := newMortal(b, 3, true) // it dies with the lease
	if _, err := m.runtime.Run(t.Context(), "all", "maps", b.now.Add(time.Minute)); err == nil {
		t.Fatal("it did not die")
	}
	b.run("all", "maps") // the lease is held
	b.want("handled", b.handled(), "a.1 b.1")
	b.now = b.now.Add(2 * time.Minute)
	b.tick("all maps")
	b.run("all", "maps")
	b.want("handled", b.handled(), "a.1 b.1 c.1")
}

// TestStoppedRunDies: the run that tries a stopped cursor again dies, wherever: after its lease the
// clock wakes the cursor, and it goes on. Nobody else would: the event that it is for was placed
// long ago.
func TestStoppedRunDies(t *testing.T) {
	died := 0
	for at := 1; ; at++ {
		b := newBench(t)
		b.apply(define("c", func(d *consumer.Definition) {
			d.OnFailure, d.Retries = consumer.Block, consumer.NoRetries
		}))
		b.fails["a.1"] = "no title"
		b.add("maps", "a")
		b.run("c", "maps")
		b.want("handled", b.handled(), "")
		clear(b.fails)
		b.now = b.now.Add(2 * time.Minute)
		b.tick("c maps")

		m := newMortal(b, at, true)
		if _, err := m.runtime.Run(t.Context(), "c", "maps", b.now.Add(time.Minute)); err == nil {
			break // it needs no more calls
		}
		died++
		for range 10 {
			b.now = b.now.Add(time.Minute)
			if err := b.runtime.Tick(t.Context(), b.now.Add(time.Minute)); err != nil {
				t.Fatal(err)
			}
			for range b.woken {
				b.run("c", "maps")
			}
			b.woken = nil
		}
		b.want(fmt.Sprintf("after a death at call %d: handled", at), b.once(), "a.1")
		if at == 50 {
			t.Fatal("it never ends")
		}
	}
	if died < 5 {
		t.Errorf("it died %d times", died)
	}
}

// TestNewsWhileRunning: an event that is placed while a run is at work, after it has read
// the log, is handled by that run.
func TestNewsWhileRunning(t *testing.T) {
	b := newBench(t)
	more := 3
	b.runtime.Handlers["note"] = consumer.HandlerFunc(func(ctx context.Context, batch consumer.Batch) (
		[]consumer.Failure, error) {
		if more > 0 {
			more--
			b.placed("c maps", b.add("maps", "b"))
		}
		return b.note(ctx, batch)
	})
	b.apply(define("c"))
	b.add("maps", "a")
	b.run("c", "maps")
	b.want("handled", b.handled(), "a.1 b.1 b.2 b.3")
	b.now = b.now.Add(10 * time.Minute)
	b.tick("")
}

// TestScheduled: a dormant consumer runs at its times only; missed times count as one; two
// clocks fire it once.
func TestScheduled(t *testing.T) {
	b := newBench(t)
	b.apply(define("c", func(d *consumer.Definition) { d.Mode, d.Schedule = consumer.Scheduled, "rate(1 hour)" }))
	e := b.add("maps", "a")
	b.placed("", e)
	b.tick("")
	b.now = b.now.Add(59 * time.Minute)
	b.tick("")
	b.now = b.now.Add(90 * time.Second)
	b.tick("c maps")
	b.tick("")
	b.run("c", "maps")
	b.want("handled", b.handled(), "a.1")
	b.add("maps", "b")
	b.now = b.now.Add(5 * time.Hour)
	b.tick("c maps")
	b.run("c", "maps")
	b.add("maps", "c")
	b.tick("")
	b.now = b.now.Add(59*time.Minute + 30*time.Second)
	b.tick("c maps") // the rate keeps its times: seven hours after the first look, although it was woken later
}

// TestRunNow: a person lets a dormant consumer run, once however often it is said before it does; then its rate
// begins anew. One without a schedule, or a paused one, is refused.
func TestRunNow(t *testing.T) {
	b := newBench(t)
	b.apply(define("c", func(d *consumer.Definition) { d.Mode, d.Schedule = consumer.Scheduled, "rate(1 hour)" }))
	b.add("maps", "a")
	b.tick("")
	by := consumer.By{Actor: "bob", Reason: "it is needed now"}
	for range 2 {
		if err := b.store.RunNow(t.Context(), "c", by); err != nil {
			t.Fatal(err)
		}
	}
	b.tick("c maps")
	b.run("c", "maps")
	b.add("maps", "b")
	b.now = b.now.Add(59 * time.Minute)
	b.tick("")
	b.now = b.now.Add(time.Minute)
	b.tick("c maps")

	b.apply(define("d"))
	if err := b.store.RunNow(t.Context(), "d", by); !fault.Is(err, fault.Invalid) {
		t.Errorf("one without a schedule: %v", err)
	}
	if err := b.store.Pause(t.Context(), "c", by); err != nil {
		t.Fatal(err)
	}
	if err := b.store.RunNow(t.Context(), "c", by); !fault.Is(err, fault.Conflict) {
		t.Errorf("a paused one: %v", err)
	}
}

// TestFiringSurvivesEveryCrash: wherever the clock dies, the next one wakes the consumer.
func TestFiringSurvivesEveryCrash(t *testing.T) {
	for _, after := range []bool{false, true} {
		for at := 1; ; at++ {
			b := newBench(t)
			b.apply(define("c", func(d *consumer.Definition) {
				d.Mode, d.Schedule = consumer.Scheduled, "rate(1 hour)"
			}))
			b.add("maps", "a")
			b.add("books", "x")
			b.tick("")
			b.now = b.now.Add(time.Hour)
			m := newMortal(b, at, after)
			b.woken = nil
			_ = m.runtime.Tick(t.Context(), b.now.Add(time.Minute))
			if !m.Dead() {
				break
			}
			_ = b.runtime.Tick(t.Context(), b.now.Add(time.Minute))
			b.now = b.now.Add(2 * time.Minute) // a wake-up that was not sent is repeated
			_ = b.runtime.Tick(t.Context(), b.now.Add(time.Minute))
			for _, want := range []string{"c maps", "c books"} {
				if !slices.Contains(b.woken, want) {
					t.Errorf("died at call %d (after it %v): woken %v", at, after, b.woken)
				}
			}
		}
	}
}

// TestWallClock: cron expressions are of the clock on the wall, through both changes of it.
func TestWallClock(t *testing.T) {
	for name, c := range map[string]struct{ cron, zone, after, want string }{
		"winter":       {"30 2 * * *", "Europe/Berlin", "2026-01-10T00:00:00Z", "2026-01-10T01:30:00Z"},
		"summer":       {"30 2 * * *", "Europe/Berlin", "2026-07-10T00:00:00Z", "2026-07-10T00:30:00Z"},
		"left out":     {"30 2 * * *", "Europe/Berlin", "2026-03-28T12:00:00Z", "2026-03-29T01:00:00Z"},
		"day after":    {"30 2 * * *", "Europe/Berlin", "2026-03-29T01:30:00Z", "2026-03-30T00:30:00Z"},
		"twice":        {"30 2 * * *", "Europe/Berlin", "2026-10-24T12:00:00Z", "2026-10-25T00:30:00Z"},
		"not again":    {"30 2 * * *", "Europe/Berlin", "2026-10-25T00:30:00Z", "2026-10-26T01:30:00Z"},
		"hourly":       {"0 * * * *", "America/New_York", "2026-03-08T06:30:00Z", "2026-03-08T07:00:00Z"},
		"leap day":     {"0 0 29 2 *", "UTC", "2026-03-01T00:00:00Z", "2028-02-29T00:00:00Z"},
		"last of it":   {"0 0 1 * 1", "UTC", "2026-11-22T00:00:00Z", "2026-11-23T00:00:00Z"},
		"just reached": {"cron(0 12 * * *)", "UTC", "2026-11-22T12:00:00Z", "2026-11-23T12:00:00Z"},
	} {
		after, _ := time.Parse(time.RFC3339, c.after)
		got, err := definition.NextTime(c.cron, c.zone, after)
		if err != nil || got.UTC().Format(time.RFC3339) != c.want {
			t.Errorf("%s: %s, %v; want %s", name, got.UTC().Format(time.RFC3339), err, c.want)
		}
	}
}

// TestMetrics: lag, parked and stopped are put; a failed wake-up of one consumer does not
// keep others from theirs.
func TestMetrics(t *testing.T) {
	b := newBench(t)
	b.apply(define("c", func(d *consumer.Definition) { d.Retries = consumer.NoRetries }))
	b.apply(define("d"))
	b.fails["a.1"] = "broken"
	b.add("maps", "a")
	b.run("c", "maps")
	b.now = b.now.Add(90 * time.Second)
	b.tick("d maps")
	want := fmt.Sprint(map[string]float64{consumer.MetricLag: 90, consumer.MetricParked: 1, consumer.MetricFailed: 1})
	b.want("metrics", fmt.Sprint(b.metrics), want)
	b.now = b.now.Add(2 * time.Minute)
	sent := 0
	b.runtime.Wake = func(context.Context, string, string) error { sent++; return errors.New("throttled") }
	if err := b.runtime.Placed(t.Context(), []envelope.Event{b.add("maps", "b")}); err == nil || sent != 2 {
		t.Errorf("%d sent, %v", sent, err)
	}
}

// TestDrain: in local mode events are placed and handled until there are no more, those that
// handlers make included; two consumers that wake each other end at the depth limit.
func TestDrain(t *testing.T) {
	b := newBench(t)
	var unplaced []func()
	b.runtime.Place = func(context.Context) ([]envelope.Event, error) {
		n := len(unplaced)
		for _, f := range unplaced {
			f()
		}
		unplaced = nil
		return make([]envelope.Event, n), nil
	}
	pong := func(name string) consumer.Handler {
		return consumer.HandlerFunc(func(ctx context.Context, batch consumer.Batch) ([]consumer.Failure, error) {
			for _, it := range batch.Events {
				unplaced = append(unplaced, func() {
					b.add("maps", "a", func(e *envelope.Event) {
						e.Cause = consumer.CauseOf(it.Event)
						e.Cause.Components = append(e.Cause.Components, name)
					})
				})
			}
			return b.note(ctx, batch)
		})
	}
	b.runtime.Handlers = map[string]consumer.Handler{"ping": pong("ping"), "pong": pong("pong")}
	b.store.Handlers = consumer.Names(b.runtime.Handlers)
	for _, name := range b.store.Handlers {
		b.apply(define(name, func(d *consumer.Definition) { d.Target.Handler, d.MaxDepth = name, 3 }))
	}
	unplaced = append(unplaced, func() { b.add("maps", "a") })
	if err := b.runtime.Drain(t.Context()); err != nil {
		t.Fatal(err)
	}
	// Both handle the first; then each what the other made, up to depth 3.
	if len(b.got) != 2+2+2+2 || b.metrics[consumer.MetricDepth] != 2 {
		t.Errorf("%d handled: %s; %v", len(b.got), b.handled(), b.metrics)
	}
}

// slowLog takes some time for each read.
type slowLog struct {
	consumer.Log
	b *bench
}

func (s slowLog) Read(ctx context.Context, p string, after int64, n int) ([]envelope.Event, error) {
	s.b.now = s.b.now.Add(10 * time.Millisecond)
	return s.b.log.Read(ctx, p, after, n)
}

// TestTickTakesTurns: consumers that take all the time of a minute do not starve those behind them.
func TestTickTakesTurns(t *testing.T) {
	b := newBench(t)
	names := []string{"a", "b", "search"}
	for _, n := range names {
		b.apply(define(n))
	}
	for i := range 400 {
		b.add(fmt.Sprintf("p%d", i), "s")
	}
	b.store.Log = slowLog{b.log, b}
	woken := map[string]int{}
	b.runtime.Wake = func(_ context.Context, c, _ string) error { woken[c]++; return nil }
	for range len(names) {
		begun := b.now
		if err := b.runtime.Tick(t.Context(), b.now.Add(time.Second)); err != nil {
			t.Fatal(err)
		}
		b.now = begun.Add(time.Minute)
	}
	if len(woken) != len(names) {
		t.Errorf("woken are %v", woken)
	}
}
