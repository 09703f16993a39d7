package inprocess

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"sync"
	"sync/atomic"
	"time"

	"github.com/aws/aws-lambda-go/lambda/messages"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/lambda/types"

	"archivist/pkg/app/boot"
	"archivist/pkg/events/event"
)

// Function handles an invocation: JSON in, JSON out.
type Function func(ctx context.Context, payload []byte) ([]byte, error)

// process is what an environment of a function runs in. When it has died, none of its calls
// has an effect. A real one would be gone; here its goroutines go on until they notice. So
// every way out of it, the clients and the bodies of uploads, asks check.
type process struct {
	died     atomic.Bool
	function string
	end      func() // ends it
}

// errDead is the error of each call of a process that has died.
var errDead = errors.New("this process is dead")

// check returns errDead for a process that has died. Nil is what is outside of all functions.
func (p *process) check() error {
	if p != nil && p.died.Load() {
		return errDead
	}
	return nil
}

// environment runs one invocation after another, as an execution environment of Lambda does
// ("Understanding the Lambda execution environment lifecycle"). It is busy with one
// invocation at a time, or idle; when it has died, it is neither.
type environment struct {
	process *process
	handle  Function
	close   func() // called when it has died and its handler has returned
	// killed is closed when it dies.
	killed  chan struct{}
	release int // of its function

	mu     sync.Mutex
	busy   bool
	closed bool
}

// die ends the environment: the invocation that it runs has no effect from now on. It can be
// called more than once, and with the lock of its function held.
func (e *environment) die() {
	if !e.process.died.Swap(true) {
		close(e.killed)
		e.settle()
	}
}

// work says whether the handler runs. It is not when the invocation ends: a handler can go on
// after its time-out.
func (e *environment) work(on bool) {
	e.mu.Lock()
	e.busy = on
	e.mu.Unlock()
	e.settle()
}

// settle closes what the environment has open, once it has died and its handler has returned.
// A handler must not use an index that was closed.
func (e *environment) settle() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.busy && !e.closed && e.process.check() != nil {
		e.closed = true
		e.close()
	}
}

// function is a function of Lambda. As many invocations as needed run at once, each in an
// environment of its own, which is kept for later ones.
type function struct {
	name    string
	timeout time.Duration
	env     map[string]string                        // of its environments
	cold    func(*process) (Function, func(), error) // makes an environment, and what closes it
	// deadLetter gets the payload of an asynchronous invocation that is given up; it may be nil.
	deadLetter func(payload []byte)
	all        *functions

	mu      sync.Mutex
	idle    []*environment
	running map[*environment]bool
	release int // environments of earlier releases end after their invocation
	closed  bool
	paused  bool // its concurrency is 0
}

// invocationError is how an invocation failed. It is what Lambda answers with ("Lambda function
// errors in Go").
type invocationError struct {
	Message string `json:"errorMessage"`
	Type    string `json:"errorType"`
}

// functions are the functions of an account, by name.
type functions struct {
	log     *slog.Logger
	ctx     context.Context // of all invocations
	running sync.WaitGroup  // invocations, and handlers that nobody waits for any more

	mu  sync.Mutex
	all map[string]*function
}

// A function of the same name is replaced; its invocations go on.
func (l *functions) add(f *function) *function {
	f.all, f.running = l, map[*environment]bool{}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all[f.name] = f
	return f
}

// named is a function by its name or ARN.
func (l *functions) named(text string) (*function, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	f := l.all[lastPart(text)]
	if f == nil {
		return nil, &types.ResourceNotFoundException{Message: aws.String("there is no function " +
			text)}
	}
	return f, nil
}

// timedOut is the error name of an invocation that lasted too long.
const timedOut = "Sandbox.Timedout"

// answer is what became of an invocation.
type answer struct {
	out    []byte // if failed is not nil, that as JSON
	failed *invocationError
}

// invoke invokes a function and waits for its answer. The error means that the function was
// not invoked, or that nobody waits any more. If ctx ends, the invocation goes on: Lambda
// does not stop a function because its caller is gone.
func (l *functions) invoke(ctx context.Context, name string, payload []byte) (a answer, err error) {
	f, err := l.named(name)
	if err != nil {
		return a, err
	}

	e, err := f.environment()
	if err != nil {
		return a, err
	}

	done := make(chan answer, 1)
	err = l.start(func() { done <- f.run(e, payload) })
	if err != nil {
		f.leave(e)
		return a, err
	}

	select {
	case a = <-done:
		return a, nil
	case <-ctx.Done():
		return a, ctx.Err()
	}
}

// errClosed is the error of calls after the end.
var errClosed = errors.New("the system is closed")

// start starts what Close waits for. After Close nothing is started any more, so that its
// wait has an end.
func (l *functions) start(do func()) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ctx.Err() != nil {
		return errClosed
	}
	l.running.Go(do)
	return nil
}

// environment is one that is idle, or a new one. cold runs without the lock, since it may
// take long. A process that does not start is an error of the invocation, as Lambda's init
// errors are.
func (f *function) environment() (e *environment, err error) {
	e, err = f.take()
	if err != nil || e != nil {
		return e, err
	}

	e = f.fresh()
	e.handle, e.close, err = f.cold(e.process)
	if err != nil {
		return nil, fmt.Errorf("%s does not start: %w", f.name, err)
	}

	f.mu.Lock()
	defer f.mu.Unlock()
	f.running[e] = true
	return e, nil
}

// take is an environment that is idle, nil if there is none. It is the one that was used last. A
// paused function refuses the invocation, as a concurrency of 0 does.
func (f *function) take() (e *environment, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := len(f.idle)
	if f.paused {
		return nil, &types.TooManyRequestsException{Message: aws.String("Rate exceeded")}
	}

	if n > 0 {
		e, f.idle = f.idle[n-1], f.idle[:n-1]
		f.running[e] = true
	}
	return e, nil
}

// fresh is a new environment without a handler.
func (f *function) fresh() *environment {
	f.mu.Lock()
	defer f.mu.Unlock()
	e := &environment{
		process: &process{function: f.name},
		killed:  make(chan struct{}),
		release: f.release,
	}
	e.process.end = e.die
	return e
}

// renew makes new environments from now on, as another configuration of a function does.
// Those that are busy end after their invocation: see leave.
func (f *function) renew() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.release++
	for _, e := range f.idle {
		e.die()
	}
	f.idle = nil
}

// run runs an invocation until it ends, its time is over, or its process dies. The context
// has the origin that boot.Start gives it. Whatever ends first decides, and the handler's
// goroutine may go on without an effect.
func (f *function) run(e *environment, payload []byte) (a answer) {
	ctx, cancel := context.WithTimeout(event.From(f.all.ctx, boot.Origin()), f.timeout)
	defer cancel()
	done := make(chan answer, 1)
	e.work(true)
	f.all.running.Go(func() {
		out := call(ctx, e, payload)
		e.work(false) // before the answer: after it another invocation may have begun
		done <- out
	})

	select {
	case a = <-done:
	case <-ctx.Done():
		e.die()
		a.failed = &invocationError{Type: timedOut,
			Message: fmt.Sprintf("Error: Task timed out after %.2f seconds", f.timeout.Seconds())}
	case <-e.killed:
		a.failed = &invocationError{Type: "Runtime.ExitError", Message: "Error: Runtime exited"}
	}

	f.leave(e)
	if a.failed != nil && f.all.ctx.Err() == nil {
		f.all.log.Warn("an invocation failed", "function", f.name, "type", a.failed.Type, "error",
			a.failed.Message)
	}

	if a.failed != nil {
		a.out, _ = json.Marshal(a.failed) // texts can always be encoded
	}
	return a
}

// leave keeps an environment for the next invocation, if it lives. One of an earlier release,
// or of a function that is closed, ends instead.
func (f *function) leave(e *environment) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.running, e)
	switch {
	case e.process.check() != nil:
	case f.closed || e.release != f.release:
		e.die()
	default:
		f.idle = append(f.idle, e)
	}
}

// call calls the handler. A panic ends the process. As in Lambda's runtime only the outermost
// error names itself. A panic of another goroutine ends the whole program, as it would end
// the process.
func call(ctx context.Context, e *environment, payload []byte) (a answer) {
	defer func() {
		if p := recover(); p != nil {
			e.die()
			a = answer{failed: &invocationError{Type: typeOf(p), Message: fmt.Sprint(p)}}
		}
	}()

	out, err := e.handle(ctx, payload)
	if err == nil {
		return answer{out: out}
	}

	if named, is := err.(messages.InvokeResponse_Error); is {
		return answer{failed: &invocationError{Type: named.Type, Message: named.Message}}
	}
	return answer{failed: &invocationError{Type: typeOf(err), Message: err.Error()}}
}

// typeOf is the error name that the runtime of Go on Lambda gives an error. It is the name of
// the type, without its package and without the star of a pointer.
func typeOf(v any) string {
	t := reflect.TypeOf(v)
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t.Name()
}

// kill ends all invocations that run, and the environments that are idle. It returns how many
// invocations ran.
func (f *function) kill() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := len(f.running)
	for e := range f.running {
		e.die()
	}

	for _, e := range f.idle {
		e.die()
	}

	f.idle = nil
	return n
}

// pause makes the concurrency of the function 0, or unlimited. Invocations that run go on.
func (f *function) pause(on bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.paused = on
}

// close ends all environments. No environment is kept after it; invocations that still come
// find the functions' context ended.
func (f *function) close() {
	f.mu.Lock()
	f.closed = true
	f.mu.Unlock()
	f.kill()
}
