package api

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	v1 "archivist/pkg/api/v1"
	"archivist/pkg/events/event"
	"archivist/pkg/ingest"
	"archivist/pkg/ingest/queue"
	"archivist/pkg/kernel/fault"
)

// OperationRequest is a request to start an operation.
type OperationRequest struct {
	Acting
	Body v1.OperationRequest
}

// OperationAction is a request to act on an operation.
type OperationAction struct {
	IDInput
	Asking
	Body v1.OperationAction
}

// Started is the response to a started operation.
type Started struct {
	Status   int
	Location string `header:"Location" doc:"The operation's URL, relative." example:"operations/01M7ZBMEYHBB62YP6"`
	Body     v1.Operation
}

// bulk registers the routes of operations: actions on many jobs, and the doctor. A request only starts
// one; it runs in an execution of its own, so a gateway's 29 seconds do not bound it.
func (a *API) bulk(h huma.API) {
	const path = "/v1/operations"
	huma.Register(h, huma.Operation{
		Method:        http.MethodPost,
		Path:          path,
		OperationID:   "startOperation",
		Summary:       "Start a bulk operation",
		DefaultStatus: http.StatusAccepted,
	}, a.startOperation)

	get(a, h, path, "listOperations", "List the bulk operations",
		func(ctx context.Context, in *Cursor) (v1.List[v1.Operation], error) {
			p, err := a.admin().Operations(ctx, in.Cursor)
			return list(p, WireOperation), err
		})

	get(a, h, path+"/{id}", "getOperation", "Get a bulk operation",
		func(ctx context.Context, in *IDInput) (v1.Operation, error) {
			row, err := a.admin().Operation(ctx, in.ID)
			out, err := operation(row, err)
			if err == nil {
				out.Actions = texts(row.Possible(roleOf(identityOf(ctx)), a.Queue.Now()))
			}
			return out, err
		})

	get(a, h, path+"/{id}/refusals", "listRefusals",
		"List the jobs on which a bulk operation was refused",
		func(ctx context.Context, in *IDCursor) (v1.List[v1.Refusal], error) {
			p, err := a.admin().Refusals(ctx, in.ID, in.Cursor)
			return list(p,
				func(r queue.Refusal) v1.Refusal {
					return v1.Refusal{Job: r.Job,
						Reason: r.Reason}
				}), err
		})

	get(a, h, path+"/{id}/items", "listItems", "List the jobs of a bulk operation",
		func(ctx context.Context, in *IDCursor) (v1.List[v1.OperationItem], error) {
			p, err := a.admin().Items(ctx, in.ID, in.Cursor)
			return list(p, wireItem), err
		})

	get(a, h, path+"/{id}/findings", "listFindings", "List the findings of the doctor",
		func(ctx context.Context, in *IDCursor) (v1.List[v1.Finding], error) {
			p, err := a.admin().Findings(ctx, in.ID, in.Cursor)
			return list(p, func(f queue.FindingRow) v1.Finding { return v1.Finding(f.Finding) }),
				err
		})

	get(a, h, path+"/{id}/events", "listOperationEvents", "List the events of a bulk operation",
		a.events(event.Operation))
	post(a, h, path+"/{id}/actions", "actOnOperation", "Interrupt or continue a bulk operation",
		a.actOnOperation)
	get(a, h, "/v1/holds", "listHolds", "List the holds and pauses",
		func(ctx context.Context, _ *struct{}) (v1.List[v1.Hold], error) {
			all, err := a.Queue.Holds(ctx)
			return list(queue.Page[queue.Hold]{Items: all}, wireHold), err
		})
}

// admin does what persons ask of the queue.
func (a *API) admin() queue.Admin { return queue.Admin{Queue: a.Queue} }

// startOperation answers 202 with the URL of the operation, which is read until it has ended.
func (a *API) startOperation(ctx context.Context, in *OperationRequest) (*Started, error) {
	row, err := a.start(ctx, in)
	if err != nil {
		return nil, a.problem(err)
	}
	o := WireOperation(*row)
	return &Started{http.StatusAccepted, "operations/" + o.ID, o}, nil
}

// start starts an operation. With an idempotency key the same request returns the operation that the
// first one started. The errors are an Invalid for what does not fit together, and those of
// queue.Admin.
func (a *API) start(ctx context.Context, in *OperationRequest) (*queue.Operation, error) {
	actor, err := in.actor()
	if err != nil {
		return nil, err
	}

	request, err := in.request()
	if err != nil {
		return nil, err
	}

	b := in.Body
	if b.Action == v1.Doctor {
		if err := onlyDoctor(b); err != nil {
			return nil, err
		}
		return a.admin().StartDoctor(ctx, b.Repair, b.Reason, actor, in.role(), request)
	}

	bulk, err := bulkOf(b)
	if err != nil {
		return nil, err
	}
	return a.admin().Start(ctx, bulk, b.Reason, actor, in.role(), request, b.DryRun)
}

// onlyDoctor returns an Invalid if a request for the doctor has a field that only bulk
// operations have.
func onlyDoctor(b v1.OperationRequest) error {
	for _, f := range []struct {
		name string
		set  bool
	}{{"filter", b.Filter != nil}, {"confirm", b.Confirm}, {"until", b.Until != ""},
		{"priority", b.Priority != nil},
		{"dryRun", b.DryRun}} {
		if f.set {
			return fault.New(fault.Invalid,
				"%s: the doctor has none; without repair it changes nothing", f.name)
		}
	}
	return nil
}

// bulkOf is the bulk operation of a request. It says what the schema cannot: which fields exclude each
// other. An error names the field, with "filter." in front if it is one of the filter.
func bulkOf(b v1.OperationRequest) (bulk ingest.Bulk, err error) {
	bulk = ingest.Bulk{Name: ingest.ActionName(b.Action), Priority: b.Priority, Confirm: b.Confirm}
	if b.Repair {
		return bulk, fault.New(fault.Invalid, "repair: only the doctor repairs")
	}

	if bulk.Until, err = ingest.ReadTime("until", b.Until); err != nil {
		return bulk, err
	}

	if b.Filter == nil {
		return bulk, nil // refused, with what is expected
	}

	f := b.Filter
	state, err := filterBy(f.State, v1.JobStates)
	if err != nil {
		return bulk, fault.New(fault.Invalid, "filter.%w", err)
	}

	bulk.Filter = ingest.Filter{
		Batch:        f.Batch,
		Collection:   f.Collection,
		State:        ingest.State(state),
		Message:      f.Message,
		KeepOwnHolds: f.KeepOwnHolds,
	}

	bulk.Filter.Before, err = ingest.ReadTime("filter.before", f.Before)
	return bulk, err
}

// actOnOperation interrupts an operation, or continues it; the schema allows no other action.
func (a *API) actOnOperation(ctx context.Context, in *OperationAction) (v1.Operation, error) {
	actor, err := in.actor()
	if err != nil {
		return v1.Operation{}, err
	}
	act := a.admin().Interrupt
	if in.Body.Action == "continue" {
		act = a.admin().Continue
	}
	return operation(act(ctx, in.ID, in.Body.Reason, actor, in.role()))
}
