package consumer

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"archivist/pkg/events/envelope"
	"archivist/pkg/events/event"
	"archivist/pkg/events/filter"
)

// Runtime runs consumers. One is shared by all runs of a process; its fields are set before the
// first and not changed.
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

	// Grace is how long a lease lasts after the end of a run's time: a call of a target that began
	// before must have ended. 0: a minute.
	Grace time.Duration

	// Lost is after how long a wake-up that was sent counts as lost; 0 = a minute.
	Lost time.Duration

	mu      sync.Mutex
	filters map[string]*filter.Filter // compiled, by their text
}

// Metrics of consumers. A 0 is not put.
const (
	// MetricLag is in seconds: how long the oldest event waits, of all consumers that are not
	// paused.
	MetricLag = "ConsumerLag"
	// MetricParked counts events that are parked, and MetricStopped cursors that do not move.
	MetricParked  = "ConsumerParked"
	MetricStopped = "ConsumerStopped"
	// MetricDepth counts events that were not handled because their chain of causes is too long.
	MetricDepth = "EventDepthLimit"
	// MetricErrors counts runs that ended with an error.
	MetricErrors = "ConsumerErrors"
	// MetricFailed counts events that were parked, or block a cursor.
	MetricFailed = "ConsumerFailures"
)

func (r *Runtime) grace() time.Duration {
	if r.Grace > 0 {
		return r.Grace
	}
	return time.Minute
}

func (r *Runtime) lost() time.Duration { return cmp.Or(r.Lost, time.Minute) }

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

// CauseOf is the cause of the changes that are made because of an event.
func CauseOf(e envelope.Event) envelope.Cause {
	root := e.Cause.Root
	if root == "" {
		root = e.ID
	}

	c := envelope.Cause{Event: e.ID, Root: root, Depth: e.Cause.Depth + 1,
		Components: slices.Clone(e.Cause.Components)}
	if e.Context.Component != "" {
		c.Components = append(c.Components, e.Context.Component)
	}
	return c
}

// because returns a context in which changes have the event as their cause, and the consumer as what asked for them.
func because(ctx context.Context, consumer string, e envelope.Event) context.Context {
	o := event.OriginOf(ctx)
	o.Request, o.Cause = e.Context.Request, CauseOf(e)
	o.Cause.Components = append(o.Cause.Components, consumer)
	return event.From(ctx, o)
}
