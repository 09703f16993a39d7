package api

import (
	"context"

	"github.com/danielgtaylor/huma/v2"

	v1 "archivist/pkg/api/v1"
	"archivist/pkg/components/component"
)

// RunInput names a run, and a page of its items.
type RunInput struct {
	ComponentCursor
	Run string `path:"run" maxLength:"64"`
}

// RunRequest is a request to start a run of a component.
type RunRequest struct {
	ComponentInput
	Acting
	Body v1.ComponentRunRequest
}

// componentRuns registers the routes of the runs of components.
func (a *API) componentRuns(h huma.API) {
	const path = "/v1/components/{name}/runs"
	get(a, h, path, "listRuns", "List the runs of a component", a.listRuns)
	get(a, h, path+"/{run}", "getRun", "Get a run of a component", a.getRun)
	post(a, h, path, "startRun", "Run a component", a.startRun)
}

// listRuns lists the runs of a component, the newest first, 20 to a page, without their items. The
// component is read first, so that a name that does not exist is a NotFound.
func (a *API) listRuns(ctx context.Context,
	in *ComponentCursor) (out v1.List[v1.ComponentRun], err error) {
	if _, err := a.Components.Get(ctx, in.Name); err != nil {
		return out, err
	}
	runs, next, err := a.Runs.Runs(ctx, in.Name, in.Cursor, 20)
	out.Items, out.Cursor = each(runs, wireRun), next
	return out, err
}

// getRun is a run with a page of 100 of its items. The cursor in the response is of the items.
func (a *API) getRun(ctx context.Context, in *RunInput) (v1.ComponentRun, error) {
	r, next, err := a.Runs.RunStatus(ctx, in.Name, in.Run, in.Cursor, 100)
	out := wireRun(r)
	out.Cursor = next
	return out, err
}

// startRun starts a run, and answers with how far it is; the work itself takes place in an execution.
func (a *API) startRun(ctx context.Context, in *RunRequest) (v1.ComponentRun, error) {
	by, err := in.by(in.Body.Reason)
	if err != nil {
		return v1.ComponentRun{}, err
	}
	run, err := a.Runs.Start(ctx, in.Name, by)
	if err != nil {
		return v1.ComponentRun{}, err
	}
	r, _, err := a.Runs.RunStatus(ctx, in.Name, run, "", 1)
	return wireRun(r), err
}

// wireRun is the wire form of a run, with those of its items that were read.
func wireRun(r component.Run) v1.ComponentRun {
	out := v1.ComponentRun{
		ID:         r.ID,
		Component:  r.Component,
		Definition: r.Definition,
		State:      string(r.State),
		Why:        r.Why,
		Actor:      r.Actor,
		Reason:     r.Reason,
		Started:    timestamp(r.Started),
		Ended:      timestamp(r.Ended),
		Until:      timestamp(r.Until),
		MaxItems:   r.MaxItems,
		Broken:     r.Broken,
		Items:      []v1.RunItem{},
		Counts:     v1.RunCounts(r.Counts),
	}

	for _, i := range r.Items {
		out.Items = append(out.Items, v1.RunItem{
			Item:    i.Item,
			State:   i.State,
			Reason:  i.Reason,
			Event:   i.Event,
			Started: timestamp(i.Started),
			Ended:   timestamp(i.Ended),
		})
	}
	return out
}
