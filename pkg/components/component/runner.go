package component

import (
	"context"
	"log/slog"
)

// Runner runs components. Each instance of a component has a slot, which is its lease: a run holds
// it from Start to End. An execution of the state machine component-run does the run:
//
//	Find → WorkLane, in up to as many lanes at once as the component's concurrency → Find → … → End
//
// Find hands out the heads of the component's line. A claim on an item is taken when its turn
// comes, so each lease is short. A lane has a row, which each result is written with: when the run
// loses its slot, its lanes are closed by the same transaction, and what its workers still do is
// not stored.
//
//	COMPONENTRUNS  SLOT#{component}#{instance}  who runs, and until when that is believed
//	COMPONENTRUNS  TIME#{component}             the next time of its schedule
//	RUN#{run}      RUN                          the run
//	RUN#{run}      LANE#{number}                what was done in a lane
//	RUN#{run}      ITEM#{time}#{claim}          what was done with an item
type Runner struct {
	Store     *Store
	Functions map[string]Function

	// Call calls a Lambda function. An error of the kind Unavailable or Denied means that the
	// function cannot be called; another one is its own.
	Call       func(ctx context.Context, arn string, w Work) (Result, error)
	Executions Executions
	Metric     func(name string, value float64)
	Log        *slog.Logger
}

func (r *Runner) now() int64 { return millis(r.Store.Now()) }

// metric counts, if somebody listens.
func (r *Runner) metric(name string, n float64) {
	if r.Metric != nil && n != 0 {
		r.Metric(name, n)
	}
}

// component reads the present definition of a component; a missing one is a NotFound.
func (r *Runner) component(ctx context.Context, name string) (*compiled, error) {
	defs, err := r.Store.load(ctx)
	if err != nil {
		return nil, err
	}
	return defs.of(name)
}
