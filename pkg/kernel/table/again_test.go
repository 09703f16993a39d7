package table_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/table"
)

// TestAgain: a change is made again while others are first, and only then; the second try at once.
func TestAgain(t *testing.T) {
	other, stale := errors.New("other"), fault.New(fault.Stale, "x")
	for _, c := range []struct {
		fails int
		with  error
		calls int
		kind  fault.Kind
	}{{0, nil, 1, ""}, {3, stale, 4, ""}, {1, other, 1, ""}, {1000, stale, 20, fault.Unavailable}} {
		n, waits := 0, []time.Duration{}
		tb := &table.Table{Jitter: func() float64 { return 0.5 }, Wait: func(_ context.Context, d time.Duration) error {
			waits = append(waits, d)
			return nil
		}}
		err := tb.Again(t.Context(), "the shelf", func() error {
			n++
			if n <= c.fails {
				return c.with
			}
			return nil
		})
		if n != c.calls || fault.Of(err) != c.kind || c.with == other && err != other {
			t.Errorf("%+v: %d calls, %v", c, n, err)
		}
		if len(waits) > 1 && (waits[0] != 0 || waits[1] != 5*time.Millisecond) {
			t.Errorf("%+v: it has waited for %v", c, waits)
		}
	}

	ended := &table.Table{Jitter: func() float64 { return 1 },
		Wait: func(context.Context, time.Duration) error { return context.Canceled }}
	if err := ended.Again(t.Context(), "the shelf", func() error { return stale }); !errors.Is(err, context.Canceled) {
		t.Errorf("at the end of its context: %v", err)
	}
}
