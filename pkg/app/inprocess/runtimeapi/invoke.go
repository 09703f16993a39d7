package runtimeapi

import (
	"context"
	"errors"
	"io"
	"time"
)

// Invoke calls the function, in a process that is idle or new. An error of the function is a
// messages.InvokeResponse_Error: what it reported itself, Sandbox.Timedout after Limit, or
// Runtime.ExitError if its process ended. When ctx ends, so does the process. Other errors
// are those of ctx, and of a function that is closed.
func (f *Function) Invoke(ctx context.Context, payload []byte) ([]byte, error) {
	if len(payload) > maxPayload {
		return nil, failed("RequestTooLarge", "the request has %d bytes; the limit is %d",
			len(payload), maxPayload)
	}

	f.once.Do(f.prepare)
	select {
	case f.slots <- struct{}{}:
		defer func() { <-f.slots }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}

	for {
		p, used, err := f.process()
		if err != nil {
			return nil, err
		}

		in := &invocation{id: newID(), payload: payload, answer: make(chan answer, 1)}
		err = p.hand(ctx, in, f.Init)
		switch {
		case err == nil:
			return f.result(ctx, p, in)
		case errors.Is(err, errEnded) && used:
			continue // it died while it was idle
		case errors.Is(err, errEnded):
			return nil, p.failedStart(in)
		}

		p.kill()
		return nil, err
	}
}

// prepare fills in what is not set, before the first invocation.
func (f *Function) prepare() {
	if f.Limit == 0 {
		f.Limit = UsualLimit
	}

	if f.Init == 0 {
		f.Init = UsualInit
	}

	if f.Processes == 0 {
		f.Processes = UsualProcesses
	}

	if f.Output == nil {
		f.Output = io.Discard
	}

	f.slots, f.alive = make(chan struct{}, f.Processes), map[*process]bool{}
}

// process is one that is idle, and was used before, or a new one. A used one may have died
// since, which shows when it is handed an invocation.
func (f *Function) process() (p *process, used bool, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return nil, false, errors.New("the function " + f.Name + " is closed")
	}

	if n := len(f.idle); n > 0 {
		p, f.idle = f.idle[n-1], f.idle[:n-1]
		return p, true, nil
	}

	p, err = f.start()
	if err != nil {
		return nil, false, failed("Runtime.InvalidEntrypoint", "%s", err)
	}

	f.alive[p] = true
	return p, false, nil
}

// result waits for the end of an invocation. A process that did not answer is ended. One that
// answered is idle again, also after an error of the function, as on Lambda.
func (f *Function) result(ctx context.Context, p *process, in *invocation) ([]byte, error) {
	timer := time.NewTimer(f.Limit)
	defer timer.Stop()
	select {
	case a := <-in.answer:
		f.mu.Lock()
		defer f.mu.Unlock()
		f.idle = append(f.idle, p)
		return a.out, a.err
	case <-p.ended:
		select {
		case a := <-in.answer: // it answered, and ended
			return a.out, a.err
		default:
			return nil, p.exited(in)
		}
	case <-timer.C:
		p.kill()
		return nil, failed("Sandbox.Timedout",
			"RequestId: %s Error: Task timed out after %.2f seconds", in.id,
			f.Limit.Seconds())
	case <-ctx.Done():
		p.kill()
		return nil, ctx.Err()
	}
}

// Close ends all processes. Invocations that are under way fail. It returns when they have
// ended.
func (f *Function) Close() {
	f.mu.Lock()
	f.closed, f.idle = true, nil
	var all []*process
	for p := range f.alive {
		all = append(all, p)
	}

	f.mu.Unlock()
	for _, p := range all {
		p.kill()
		<-p.ended
	}
}
