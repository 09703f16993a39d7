package api

import (
	"cmp"
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	v1 "archivist/pkg/api/v1"
	"archivist/pkg/event"
	"archivist/pkg/fault"
	"archivist/pkg/ingest"
	"archivist/pkg/queue"
)

// OperationRequest is a request to start an operation.
type OperationRequest struct {
	Acting
	Body v1.OperationRequest
}

// OperationAction is a request to act on an operation.
type OperationAction struct {
	IDInput
	Caller
	Body v1.OperationAction
}

// Started is the response to a started operation.
type Started struct {
	Status   int
	Location string `header:"Location" doc:"The operation's URL, relative." example:"operations/01M7ZBMEYHBB62YP6"`
	Body     v1.Operation
}

// Cursor is a request for a page of a list.
type Cursor struct {
	Cursor string `query:"cursor"`
}

func (a *API) bulk(h huma.API) {
	const path = "/v1/operations"
	huma.Register(h, huma.Operation{Method: http.MethodPost, Path: path, OperationID: "startOperation",
		Summary: "Start a bulk operation", DefaultStatus: http.StatusAccepted}, a.startOperation)
	get(a, h, path, "listOperations", "List the bulk operations",
		func(ctx context.Context, in *Cursor) (v1.List[v1.Operation], error) {
			p, err := a.admin().Operations(ctx, in.Cursor)
			return list(p, WireOperation), err
		})
	get(a, h, path+"/{id}", "getOperation", "Get a bulk operation",
		func(ctx context.Context, in *IDInput) (v1.Operation, error) {
			return operation(a.admin().Operation(ctx, in.ID))
		})
	get(a, h, path+"/{id}/refusals", "listRefusals", "List the jobs on which a bulk operation was refused",
		func(ctx context.Context, in *IDCursor) (v1.List[v1.Refusal], error) {
			p, err := a.admin().Refusals(ctx, in.ID, in.Cursor)
			return list(p, func(r queue.Refusal) v1.Refusal { return v1.Refusal{Job: r.Job, Reason: r.Reason} }), err
		})
	get(a, h, path+"/{id}/items", "listItems", "List the jobs of a bulk operation",
		func(ctx context.Context, in *IDCursor) (v1.List[v1.OperationItem], error) {
			p, err := a.admin().Items(ctx, in.ID, in.Cursor)
			return list(p, wireItem), err
		})
	get(a, h, path+"/{id}/findings", "listFindings", "List the findings of the doctor",
		func(ctx context.Context, in *IDCursor) (v1.List[v1.Finding], error) {
			p, err := a.admin().Findings(ctx, in.ID, in.Cursor)
			return list(p, func(f queue.FindingRow) v1.Finding { return v1.Finding(f.Finding) }), err
		})
	get(a, h, path+"/{id}/events", "listOperationEvents", "List the events of a bulk operation",
		a.events(event.Operation))
	register(a, h, huma.Operation{Method: http.MethodPost, Path: path + "/{id}/actions", OperationID: "actOnOperation",
		Summary: "Interrupt or continue a bulk operation"}, a.actOnOperation)
	get(a, h, "/v1/holds", "listHolds", "List the holds and pauses",
		func(ctx context.Context, _ *struct{}) (v1.List[v1.Hold], error) {
			all, err := a.Queue.Holds(ctx)
			return list(queue.Page[queue.Hold]{Items: all}, wireHold), err
		})
}

func wireItem(i queue.Item) v1.OperationItem {
	return v1.OperationItem{Job: i.Job, Outcome: cmp.Or(string(i.Outcome), v1.ItemLeft), Message: i.Message}
}

func (a *API) admin() queue.Admin { return queue.Admin{Queue: a.Queue} }

func (a *API) startOperation(ctx context.Context, in *OperationRequest) (*Started, error) {
	row, err := a.start(ctx, in)
	if err != nil {
		return nil, a.problem(err)
	}
	o := WireOperation(*row)
	return &Started{http.StatusAccepted, "operations/" + o.ID, o}, nil
}

// start starts an operation.
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
		return a.admin().StartDoctor(ctx, b.Repair, b.Reason, actor, role, request)
	}
	bulk, err := bulkOf(b)
	if err != nil {
		return nil, err
	}
	return a.admin().Start(ctx, bulk, b.Reason, actor, role, request, b.DryRun)
}

// onlyDoctor returns an Invalid if a request for the doctor has a field that only bulk
// operations have.
func onlyDoctor(b v1.OperationRequest) error {
	for _, f := range []struct {
		name string
		set  bool
	}{{"filter", b.Filter != nil}, {"confirm", b.Confirm}, {"until", b.Until != ""}, {"priority", b.Priority != nil},
		{"dryRun", b.DryRun}} {
		if f.set {
			return fault.New(fault.Invalid, "%s: the doctor has none; without repair it changes nothing", f.name)
		}
	}
	return nil
}

// bulkOf is the bulk operation of a request.
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
	bulk.Filter = ingest.Filter{Batch: f.Batch, Collection: f.Collection, State: ingest.State(state),
		Message: f.Message, KeepOwnHolds: f.KeepOwnHolds}
	bulk.Filter.Before, err = ingest.ReadTime("filter.before", f.Before)
	return bulk, err
}

func (a *API) actOnOperation(ctx context.Context, in *OperationAction) (v1.Operation, error) {
	actor, err := in.actor()
	if err != nil {
		return v1.Operation{}, err
	}
	act := a.admin().Interrupt
	if in.Body.Action == "continue" {
		act = a.admin().Continue
	}
	return operation(act(ctx, in.ID, in.Body.Reason, actor, role))
}

// operation is an operation that was read, in its wire form.
func operation(row *queue.Operation, err error) (v1.Operation, error) {
	if err != nil {
		return v1.Operation{}, err
	}
	return WireOperation(*row), nil
}

// WireOperation is the wire form of an operation.
func WireOperation(row queue.Operation) v1.Operation {
	o, b := row.Operation, wireBulk(row.Bulk)
	out := v1.Operation{ID: o.ID, Action: b.Action, State: string(o.State), Reason: o.Reason, Actor: o.Actor,
		DryRun: o.DryRun, Confirm: b.Confirm, Until: b.Until, Priority: b.Priority, Repair: o.Repair,
		Planning: o.Planning, Progress: o.Progress, Started: timestamp(o.Created), Ended: timestamp(o.Ended),
		Counts: wireTally(row.Tally)}
	if o.Name != ingest.ActDoctor {
		out.Filter = &b.Filter
	}
	if o.State == ingest.OperationRunning {
		out.Execution = row.RunBy()
	}
	return out
}

func wireTally(n ingest.Tally) v1.OperationCounts {
	return v1.OperationCounts{Planned: n.Planned, Done: n.Done, Refused: n.Refused, Left: n.Left(),
		Checked: n.Checked, Findings: n.Findings, Repaired: n.Repaired}
}

func wireChange(c queue.OperationChange) v1.OperationChange {
	out := v1.OperationChange{Action: string(c.Action), State: string(c.State), Exec: c.Exec, Reason: c.Reason,
		DryRun: c.DryRun, Counts: wireTally(c.Tally)}
	if c.Filter != nil {
		f := wireFilter(*c.Filter)
		out.Filter = &f
	}
	return out
}

func wireHold(h queue.Hold) v1.Hold { return holdOf(h.Target(), h.Hold) }

// holdOn is the hold that stops a job or a batch: its own, that of its batch, or that of its
// collection.
func holdOn(h *ingest.Hold, job, batch, collection string) *v1.Hold {
	t := ingest.Target{Kind: h.Scope, ID: job}
	switch h.Scope {
	case ingest.TargetBatch:
		t.ID = batch
	case ingest.TargetCollection:
		t.ID = collection
	}
	out := holdOf(t, *h)
	return &out
}

// active returns the hold of the first of some targets that is held, nil if none is.
func (a *API) active(ctx context.Context, targets ...ingest.Target) (*v1.Hold, error) {
	all, err := a.Queue.Holds(ctx)
	for _, t := range targets {
		for _, h := range all {
			if h.Target() == t {
				out := wireHold(h)
				return &out, err
			}
		}
	}
	return nil, err
}

func holdOf(t ingest.Target, h ingest.Hold) v1.Hold {
	return v1.Hold{Target: t.String(), Reason: h.Reason, Actor: h.Actor, Since: timestamp(h.Since),
		Until: timestamp(h.Until)}
}
