// Package backoff computes the wait between the tries of a request: a random
// time below a bound that doubles with each try ("full jitter"), so that clients
// that failed together do not retry together.
//
//	waits := backoff.Policy{First: 50 * time.Millisecond, Most: 5 * time.Second}
//	for try := 1; send() != nil; try++ {
//		if err := backoff.Sleep(ctx, waits.Delay(try, rand.Float64)); err != nil {
//			return err
//		}
//	}
//
// The caller decides which errors are retried, and how often.
// (Source: "Exponential Backoff And Jitter", AWS Architecture Blog.)
package backoff

import (
	"context"
	"time"
)

// Policy limits the waits between tries. Without Most the bound overflows after a few dozen
// tries, so the caller bounds the tries then.
type Policy struct {
	First time.Duration // the wait after the first try is shorter than this; the bound doubles
	Most  time.Duration // the bound grows no further; 0: it always doubles
}

// Delay returns the wait after a number of tries, counted from 1. jitter is uniform in [0,1).
// A caller that needs the same waits each time (a simulation) passes a jitter of its own.
func (p Policy) Delay(tries int, jitter func() float64) time.Duration {
	bound := p.First
	for range tries - 1 {
		bound *= 2
		if p.Most > 0 && bound >= p.Most {
			bound = p.Most
			break
		}
	}

	return time.Duration(jitter() * float64(bound))
}

// Sleep waits for d. It returns the context's error if that ends first. A d of 0 or less
// returns at once.
func Sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()

	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}
