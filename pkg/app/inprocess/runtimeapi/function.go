// Package runtimeapi runs programs of this machine as Lambda functions: it serves each process
// the runtime API of Lambda ("Using the Lambda runtime API for custom runtimes" in the Lambda
// Developer Guide).
//
//	f := &runtimeapi.Function{Name: "words", ARN: arn, Command: []string{"./words"}}
//	defer f.Close()
//	out, err := f.Invoke(ctx, payload)
//
// A process is started when an invocation finds none idle, and kept for the next ones. It has
// one invocation at a time. It is killed, with all that it has started, after a time-out and
// at Close, so nothing of it is left.
package runtimeapi

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/aws/aws-lambda-go/lambda/messages"
)

// Usual values of a Function.
const (
	UsualLimit     = 5 * time.Second  // of make function, too
	UsualInit      = 60 * time.Second // Lambda's is 10 s; here programs are perhaps compiled when they start
	UsualProcesses = 10
)

// maxPayload is the most bytes of a request and of a response (Lambda quotas, synchronous
// invocations).
const maxPayload = 6 << 20

// Function is a program that is run as a function. It is safe for concurrent use.
type Function struct {
	Name, ARN string
	Command   []string      // the program and its arguments
	Dir       string        // in which it runs
	Env       []string      // of the process: "NAME=value". The variables that Lambda sets are added
	Limit     time.Duration // of an invocation; 0 = UsualLimit
	Init      time.Duration // until a new process asks for its first invocation; 0 = UsualInit
	Processes int           // at once, one invocation each; more invocations wait; 0 = UsualProcesses
	Output    io.Writer     // what the processes print, whole lines; nil = nowhere

	// slots bounds the invocations at once; mu guards what follows.
	once   sync.Once
	slots  chan struct{}
	mu     sync.Mutex
	idle   []*process
	alive  map[*process]bool
	closed bool
}

// invocation is one call of a function. id is a UUID, which the process gets and has to name
// in its answer.
type invocation struct {
	id      string
	payload []byte
	answer  chan answer // holds one
}

// An error is one of the function, not of the process.
type answer struct {
	out []byte
	err error
}

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

// gone forgets a process that has ended.
func (f *Function) gone(p *process) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.alive, p)
}

// failed is an error as Lambda returns it.
func failed(kind, format string, args ...any) error {
	return messages.InvokeResponse_Error{Type: kind, Message: fmt.Sprintf(format, args...)}
}
