package inprocess

import (
	"context"
	"time"
)

// Of asynchronous invocations: an invocation that fails is repeated twice, as is one that is
// refused, for a time ("How Lambda handles errors and retries with asynchronous invocation").
const (
	// asyncAge is less than on AWS (6 hours), as infra sets it.
	asyncTries = 3
	asyncWait  = time.Minute // before the second try; before the third it is twice that
	asyncAge   = 15 * time.Minute
)

// send invokes a function asynchronously. The error is that of a function that does not
// exist, or of a closed system: what becomes of the invocation is not known to the caller.
func (l *functions) send(name string, payload []byte) error {
	f, err := l.named(name)
	if err != nil {
		return err
	}
	return l.start(func() { f.deliver(payload) })
}

// deliver invokes the function until it succeeds, or is given up. A function that is refused
// (its concurrency is 0) is tried again after 1, 2, 4 … seconds, which do not count as tries.
func (f *function) deliver(payload []byte) {
	ctx, began := f.all.ctx, time.Now()
	refused := time.Second
	for try := 1; ctx.Err() == nil; {
		a, err := f.all.invoke(ctx, f.name, payload)
		wait := time.Duration(try) * asyncWait
		switch {
		case err == nil && a.failed == nil:
			return
		case err != nil:
			wait, refused = refused, min(2*refused, 5*time.Minute)
		default:
			try++
		}

		if try > asyncTries || time.Since(began)+wait > asyncAge {
			f.giveUp(payload, a, err)
			return
		}

		sleep(ctx, wait)
	}
}

// giveUp tells of an asynchronous invocation that failed for good. Its dead-letter queue gets
// the payload.
func (f *function) giveUp(payload []byte, a answer, err error) {
	f.all.log.Error("an asynchronous invocation is given up", "function", f.name, "answer",
		string(a.out), "error", err)
	if f.deadLetter != nil {
		f.deadLetter(payload)
	}
}

// sleep waits for a time, or for the end of ctx.
func sleep(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
