package backoff

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"
)

func ExamplePolicy() {
	longest := func() float64 { return 1 }
	waits := Policy{First: 100 * time.Millisecond, Most: time.Second}
	for _, tries := range []int{1, 2, 3, 4, 5, 100} {
		fmt.Println(tries, waits.Delay(tries, longest))
	}
	// Output:
	// 1 100ms
	// 2 200ms
	// 3 400ms
	// 4 800ms
	// 5 1s
	// 100 1s
}

// TestJitter: a wait is anywhere below its bound.
func TestJitter(t *testing.T) {
	for _, jitter := range []float64{0, 0.25, 0.75} {
		got := Policy{First: time.Second}.Delay(3, func() float64 { return jitter })
		if want := time.Duration(jitter * float64(4*time.Second)); got != want {
			t.Errorf("jitter %g: %s, want %s", jitter, got, want)
		}
	}
}

// TestSleep: a wait ends with its time or with its context, whichever comes first.
func TestSleep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		if err := Sleep(t.Context(), time.Hour); err != nil || time.Since(began) != time.Hour {
			t.Errorf("after %s: %v", time.Since(began), err)
		}

		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		began = time.Now()
		if err := Sleep(ctx, time.Hour); !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != time.Minute {
			t.Errorf("after %s: %v", time.Since(began), err)
		}
	})
}
