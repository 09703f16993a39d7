package boot

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"archivist/pkg/app/lambda"
	"archivist/pkg/app/stepfunctions"
	"archivist/pkg/components/component"
	"archivist/pkg/components/preservation"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/objects/formats"
)

// functionsOf are the functions of components that are part of the system, by their names. A
// new one is an entry here. They run in the function component, not in functions of their
// own.
func (s *System) functionsOf() map[string]component.Function {
	return preservation.Functions(s.preservation())
}

// components keeps the components and their items.
func (s *System) components() *component.Store { return s.runner.Store }

// newRunner makes what runs components. The store and the runner need each other: a change of
// an item wakes what runs it.
func (s *System) newRunner() *component.Runner {
	functions := s.functionsOf()
	store := &component.Store{
		Table:     s.queue.Table,
		Now:       s.queue.Now,
		NewID:     newID,
		Log:       s.log,
		Metric:    s.componentMetric,
		Functions: slices.Sorted(maps.Keys(functions)),
		// A definition that names another ARN is refused.
		Allowed: append(s.targets(), list(s.env(EnvTasks))...),
	}

	r := &component.Runner{
		Store:      store,
		Functions:  functions,
		Call:       s.callComponent,
		Metric:     s.componentMetric,
		Executions: stepfunctions.Runs{Executions: s.executions},
		Log:        s.log,
	}

	store.Wake = r.Wake
	return r
}

// Component is the function of the state machine component-run. open loads the signatures of
// formats: the library that it needs makes a zip 1 MB larger, and other functions do without it.
func (s *System) Component(open formats.Open) *lambda.Component {
	s.open = open
	return &lambda.Component{Runner: s.runner, Metrics: s.metrics, Log: s.log}
}

// callComponent calls a Lambda function that is the runnable of a component. The settings
// name those that may be called; one that was taken out of them is not. The definitions were
// checked when they were applied, but may be older than the settings.
func (s *System) callComponent(ctx context.Context, arn string,
	w component.Work) (component.Result, error) {
	var out component.Result
	if !slices.Contains(s.targets(), arn) {
		return out, fault.New(fault.Denied,
			"this deployment does not allow components to call %s; add it to the "+
				"setting consumerTargets", arn)
	}
	err := s.functions.Call(ctx, arn, w, &out)
	return out, err
}

// tickComponents does what is due of the components at a minute. Definitions that ship are
// installed by it, so that a change of the settings is seen without a person. An error of that
// does not keep the rest back.
func (s *System) tickComponents(ctx context.Context, until time.Time) error {
	err := preservation.Install(ctx, s.components(),
		preservation.Definitions(s.shippedComponents()))
	return errors.Join(err, s.runner.Tick(ctx, until))
}
