package runner

import (
	"context"
	"encoding/json"
	"fmt"
	"time"
)

// tries is how often a container tries what may succeed later. The waits between double, up to the
// last: 2 minutes together, which is within Pulling.
const (
	tries       = 8
	longestWait = 30 * time.Second
)

// Contain does what a container is started for: it runs the Job that is stored under a key, and
// stores its Result. What fails is tried again, as the state machine does with a function. An error
// means that the container has left no Result; another one may.
//
// A context that ends (ECS sends SIGTERM when it stops a container) ends the run, and its result is
// still stored.
func (r *Runner) Contain(ctx context.Context, key string) (result Result, err error) {
	var job Job
	err = r.again(ctx, func(bool) error {
		data, _, err := r.Bucket.Read(ctx, key)
		if err != nil {
			return err
		}
		return json.Unmarshal(data, &job)
	})
	if err != nil {
		return result, fmt.Errorf("runner: the job %s: %w", key, err)
	}

	err = r.again(ctx, func(last bool) error {
		result, err = r.try(ctx, job, last)
		return err
	})
	if err != nil {
		return result, err
	}

	ctx = context.WithoutCancel(ctx) // who is told to end says what came of the run
	err = r.again(ctx, func(bool) error {
		result, err = r.store(ctx, job, result)
		return err
	})
	return result, err
}

// again does something until it succeeds, an error is final, the context has ended, or it was tried
// often enough. do is told whether it is the last try.
func (r *Runner) again(ctx context.Context, do func(last bool) error) error {
	wait := r.pace.tries
	if wait == 0 {
		wait = betweenTries
	}

	for n := 1; ; n++ {
		err := do(n == tries)
		if err == nil || final(err) || n == tries {
			return err
		}

		r.Log.Warn("it is tried again", "error", err, "try", n)
		select {
		case <-ctx.Done():
			return err
		case <-time.After(wait):
		}

		wait = min(2*wait, longestWait)
	}
}
