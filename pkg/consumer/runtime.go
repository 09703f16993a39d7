package consumer

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"archivist/pkg/envelope"
	"archivist/pkg/event"
	"archivist/pkg/fault"
	"archivist/pkg/filter"
)

// Runtime runs consumers.
type Runtime struct {
	Store    *Store
	Handlers map[string]Handler // by the name in a target

	// Call calls a function or sends to a queue. A Failure or an error without a kind is about
	// the events; an error of the kind fault.Unavailable or fault.Denied is about the target:
	// no event can be handled now.
	Call func(ctx context.Context, t Target, b Batch) ([]Failure, error)

	// Wake starts a Run elsewhere. A wake-up that is lost costs time: Tick repeats it.
	Wake func(ctx context.Context, consumer, partition string) error

	// Place gives all events that have none their place in the log, and returns them: for Drain.
	Place func(ctx context.Context) (placed []envelope.Event, err error)

	// Metric puts a number; see the names of metrics.
	Metric func(name string, value float64)

	// Deferred names the consumers that do not handle the events of a collection's log for now;
	// nil: all do.
	Deferred func(ctx context.Context, log string) ([]string, error)

	// Pruners are those of handlers, by the name in a target. A handler can be without.
	Pruners map[string]Pruner

	// State is what a rebuild reads; nil: there are no rebuilds here.
	State State

	// Grace is how long a lease lasts after the end of a run's time: a call of a target that
	// began before must have ended. 0: a minute.
	Grace time.Duration

	mu      sync.Mutex
	filters map[string]*filter.Filter // compiled, by their text
}

// Metrics of consumers. A 0 is not put.
const (
	MetricLag     = "ConsumerLag"      // seconds: how long the oldest event waits, of all consumers that are not paused
	MetricParked  = "ConsumerParked"   // events that are parked
	MetricStopped = "ConsumerStopped"  // cursors that do not move
	MetricDepth   = "EventDepthLimit"  // events that were not handled because their chain of causes is too long
	MetricErrors  = "ConsumerErrors"   // runs that ended with an error
	MetricFailed  = "ConsumerFailures" // events that were parked, or block a cursor
)

func (r *Runtime) grace() time.Duration {
	if r.Grace > 0 {
		return r.Grace
	}
	return time.Minute
}

func (r *Runtime) now() time.Time { return r.Store.Now() }

func (r *Runtime) metric(name string, value float64) {
	if r.Metric != nil && value > 0 {
		r.Metric(name, value)
	}
}

// Names lists the names of handlers, for a Store.
func Names(handlers map[string]Handler) []string {
	var names []string
	for name := range handlers {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// filter compiles a filter once.
func (r *Runtime) filter(text string) (*filter.Filter, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if f, ok := r.filters[text]; ok {
		return f, nil
	}
	f, err := filter.Compile(text)
	if err != nil {
		return nil, err
	}
	if r.filters == nil || len(r.filters) > 2*MaxConsumers {
		r.filters = map[string]*filter.Filter{}
	}
	r.filters[text] = f
	return f, nil
}

// Reasons why a consumer does not handle an event.
const (
	skipFilter = "its filter does not select it"
	skipEarly  = "it happened before the time at which the consumer starts"
	skipOwn    = "the consumer made it itself"
	skipChain  = "it was caused by a change that the consumer made itself"
	skipDepth  = "its chain of causes is longer than the consumer's maxDepth"
)

// decide returns why a consumer does not handle an event, "" if it does. from is the time
// at which the consumer starts.
func decide(c Consumer, f *filter.Filter, e envelope.Event, from int64) string {
	own := e.Context.Component == c.Name
	switch {
	case !selects(f, e):
		return skipFilter
	case e.Time < from:
		return skipEarly
	case c.OwnEvents != OwnHandle && own:
		return skipOwn
	case c.OwnEvents == OwnChain && slices.Contains(e.Cause.Components, c.Name):
		return skipChain
	case e.Cause.Depth > c.MaxDepth:
		return skipDepth
	}
	return ""
}

// key is the order key of an event. In a log that is split, the events of a collection are
// in order only within each part.
func key(c Consumer, e envelope.Event) string {
	switch c.Order {
	case OrderCollection:
		return e.Log()
	case OrderNone:
		return e.ID
	}
	return e.Subject.Type + "/" + e.Subject.ID
}

// CauseOf is the cause of the changes that are made because of an event.
func CauseOf(e envelope.Event) envelope.Cause {
	root := e.Cause.Root
	if root == "" {
		root = e.ID
	}
	return envelope.Cause{Event: e.ID, Root: root, Depth: e.Cause.Depth + 1,
		Components: append(slices.Clone(e.Cause.Components), e.Context.Component)}
}

// because returns a context in which changes have the event as their cause.
func because(ctx context.Context, e envelope.Event) context.Context {
	o := event.OriginOf(ctx)
	o.Request, o.Cause = e.Context.Request, CauseOf(e)
	return event.From(ctx, o)
}

// deepest is the event of a batch with the longest chain of causes: a change that is made
// because of the whole batch continues that chain, so that the depth limit holds.
func deepest(items []Item) envelope.Event {
	return slices.MaxFunc(items, func(a, b Item) int { return a.Cause.Depth - b.Cause.Depth }).Event
}

// call calls a consumer's target. A handler that panics returns an error with the stack.
func (r *Runtime) call(ctx context.Context, c Consumer, b Batch) (failed []Failure, err error) {
	ctx = because(ctx, deepest(b.Events))
	if c.Target.Handler == "" {
		if r.Call == nil {
			return nil, fault.New(fault.Unavailable, "functions and queues cannot be called here")
		}
		return r.Call(ctx, c.Target, b)
	}
	h, ok := r.Handlers[c.Target.Handler]
	if !ok {
		return nil, fault.New(fault.Unavailable, "this release has no handler %q", c.Target.Handler)
	}
	defer func() {
		if p := recover(); p != nil {
			failed, err = nil, &panicError{text: fmt.Sprintf("the handler panicked: %v", p), stack: stack()}
		}
	}()
	return h.Handle(ctx, b)
}
