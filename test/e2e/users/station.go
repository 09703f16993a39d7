package users

import (
	"context"
	"slices"

	"archivist/pkg/components/component"
	"archivist/pkg/events/event"
)

// Station is the runnable of components. It notes each of its calls as a line of JSON in a file. It fails with an item
// of the type "broken-" and the component's name.
func Station(file string) func(context.Context, component.Work) (component.Result, error) {
	return func(_ context.Context, w component.Work) (component.Result, error) {
		if err := note(file, w); err != nil {
			return component.Result{}, err
		}
		if !slices.Contains(w.Types, "broken-"+w.Component) {
			return component.Result{}, nil
		}
		return component.Result{Outcome: event.Failure, Reason: "the item is broken", Report: component.Report{
			Total: 1, Entries: []component.Entry{{File: "METS.xml", Type: "structure", Component: w.Component,
				Description: "a file is missing"}}}}, nil
	}
}
