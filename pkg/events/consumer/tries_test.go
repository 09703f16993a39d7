package consumer_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"archivist/pkg/events/consumer"
	"archivist/pkg/kernel/fault"
)

// TestTriesOverRuns: an event is parked after all of its tries, though the time of a run is over
// before. It is handled if a later try succeeds; what comes after it of its key waits meanwhile, and a
// call that did not reach the target is no try.
func TestTriesOverRuns(t *testing.T) {
	for name, quiet := range map[string]int{"at once": 0, "when it is quiet": 30} {
		b := newBench(t)
		b.apply(define("c", func(d *consumer.Definition) {
			d.Retries, d.Batch = 4, 1
			if quiet > 0 {
				d.Coalesce = &consumer.Coalesce{Debounce: quiet}
			}
		}))
		b.add("maps", "a")
		b.add("maps", "b")
		b.run("c", "maps")
		b.got, b.calls = nil, nil
		b.onCall = func() { b.now = b.now.Add(25 * time.Second) }
		b.add("maps", "a")
		b.add("maps", "a")
		b.add("maps", "b")
		if quiet > 0 {
			b.run("c", "maps")
			b.now = b.now.Add(time.Minute)
			b.got, b.calls = nil, nil
		}
		bad := "a.2"
		if quiet > 0 {
			bad = "a.3" // both as one
		}
		b.fails[bad] = "broken"
		for i := range 10 {
			more, err := b.runtime.Run(t.Context(), "c", "maps", b.now.Add(time.Minute))
			if err != nil {
				t.Fatal(err)
			}
			if !more {
				break
			}
			if parked, _, _ := b.store.Parked(t.Context(), "c", "maps", ""); len(parked) > 0 && i < 1 {
				t.Errorf("%s: parked after %d calls: %+v", name, len(b.calls), parked[0])
			}
			b.now = b.now.Add(time.Minute)
		}
		parked, _, err := b.store.Parked(t.Context(), "c", "maps", "")
		if err != nil || len(parked) == 0 || parked[0].ID != bad || parked[0].Tries != 5 {
			t.Errorf("%s: parked %+v, %v", name, parked, err)
		}
		b.want(name, b.handled(), "b.2")
	}
}

// TestSucceedsInALaterRun: an event whose tries are not used up at the end of a run is handled in the next.
func TestSucceedsInALaterRun(t *testing.T) {
	b := newBench(t)
	b.apply(define("c"))
	b.add("maps", "a")
	b.add("maps", "a")
	b.fails["a.1"] = "not yet"
	b.onCall = func() { b.now = b.now.Add(2 * time.Minute) }
	more, err := b.runtime.Run(t.Context(), "c", "maps", b.now.Add(time.Minute))
	if !more || err != nil {
		t.Fatal(more, err)
	}
	b.fails, b.onCall = nil, nil
	b.run("c", "maps")
	b.want("handled", b.handled(), "a.1 a.2")
	b.want("in the end", b.state("maps"), "2 of 2, 0 parked [], 0 wait, 0 redrives, running false")
}

// TestRedriveEndsInTime: an event that is redriven and fails until the time is over stays parked: it
// does not hold up new events.
func TestRedriveEndsInTime(t *testing.T) {
	b := newBench(t)
	b.apply(define("c", func(d *consumer.Definition) { d.Retries = 9 }))
	b.add("maps", "a")
	b.fails["a.1"] = "broken"
	b.run("c", "maps")
	b.onCall = func() { b.now = b.now.Add(40 * time.Second) }
	if _, err := b.store.Redrive(t.Context(), "c", consumer.Selection{All: true}, bob); err != nil {
		t.Fatal(err)
	}
	b.add("maps", "b")
	for range 2 {
		if _, err := b.runtime.Run(t.Context(), "c", "maps", b.now.Add(time.Minute)); err != nil {
			t.Fatal(err)
		}
	}
	b.want("handled", b.handled(), "b.1")
	b.want("in the end", b.state("maps"), "2 of 2, 1 parked [a.1], 0 wait, 0 redrives, running false")
}

// TestEndOfRunIsNotTheTargets: what a handler is refused because the time of its run is over does not say that the
// target cannot be called, nor is it a try of its event: it is called again, as the first of the next run. Only after
// five runs in a row that came to nothing the cursor is stopped, with the true reason; one that handles anything counts
// anew.
func TestEndOfRunIsNotTheTargets(t *testing.T) {
	b := newBench(t)
	b.apply(define("c", func(d *consumer.Definition) { d.Retries = -1; d.Batch = 1; d.Concurrency = 1 }))
	b.runtime.Grace = 10 * time.Millisecond
	b.runtime.Handlers["note"] = consumer.HandlerFunc(func(ctx context.Context,
		batch consumer.Batch) ([]consumer.Failure, error) {
		if batch.Events[0].Subject.ID == "quick" {
			return b.note(ctx, batch)
		}
		<-ctx.Done()
		b.now = b.now.Add(time.Minute)
		return nil, fault.New(fault.Unavailable, "table: gave up after 1 tries: %w", ctx.Err())
	})
	runs := func(n int) (reason string) {
		t.Helper()
		for range n {
			b.now = b.now.Add(2 * time.Minute)
			if _, err := b.runtime.Run(t.Context(), "c", "maps", b.now.Add(5*time.Millisecond)); err != nil {
				t.Fatal(err)
			}
		}
		st, err := b.store.Show(t.Context(), "c")
		if err != nil || st.Places[0].Parked > 0 {
			t.Errorf("%+v, %v", st.Places[0], err)
		}
		if st.Places[0].Stop == nil {
			return ""
		}
		return st.Places[0].Stop.Reason
	}
	b.add("maps", "quick")
	b.add("maps", "slow")
	if reason := runs(1 + 5); reason != "" {
		t.Errorf("after one run that has handled something, and five that have not: %s", reason)
	}
	want := "the events were not handled before the end of the run: table: gave up"
	if reason := runs(1); !strings.HasPrefix(reason, want) {
		t.Errorf("after six runs: %q", reason)
	}
	b.want("the cursor", b.state("maps"), "1 of 2, 0 parked [], 0 wait, 0 redrives, running false")
}
