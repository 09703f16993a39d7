package api

import (
	"context"

	"github.com/danielgtaylor/huma/v2"

	v1 "archivist/pkg/api/v1"
	"archivist/pkg/components/component"
	"archivist/pkg/components/preservation"
	"archivist/pkg/ingest/queue"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/objects/fixity"
	"archivist/pkg/objects/replica"
)

// ProposeRepair is a request to plan the repair of a file.
type ProposeRepair struct {
	ARKInput
	Acting
	Body v1.RepairRequest
}

// ConfirmRepair is a request to do a repair that is planned.
type ConfirmRepair struct {
	ARKInput
	Acting
	ID   string `path:"id" maxLength:"60"`
	Body v1.RepairConfirmation
}

// repairs registers the routes of repairs. The component file-repair does the work.
func (a *API) repairs(h huma.API) {
	const path = "/v1/objects/{naan}/{name}/repairs"
	get(a, h, path, "listRepairs", "List the repairs of an object", a.listRepairs)
	post(a, h, path, "proposeRepair", "Plan the repair of a file", a.proposeRepair)
	post(a, h, path+"/{id}/confirm", "confirmRepair", "Do a repair that is planned",
		a.confirmRepair)
}

// replicas keeps the rows of repairs. It reads no files.
func (a *API) replicas() *replica.Replica {
	return &replica.Replica{
		Table:     a.Queue.Table,
		NewID:     a.Queue.NewID,
		Now:       a.Queue.Now,
		Inventory: a.Inventory,
	}
}

// listRepairs lists the repairs of an object, oldest first.
func (a *API) listRepairs(ctx context.Context, in *ARKCursor) (v1.List[v1.Repair], error) {
	rows, next, err := a.replicas().Repairs(ctx, in.ark(), in.Cursor)
	out := list(queue.Page[replica.Repair]{Items: rows, Cursor: next}, wireRepair)
	if err != nil || len(rows) > 0 || in.Cursor != "" {
		return out, err
	}

	_, err = a.Inventory.Object(ctx, in.ark()) // an object without repairs, or no object
	return out, err
}

// proposeRepair plans a repair and wakes the component that reads both copies. If only waking it fails,
// the caller gets an error although the repair is proposed. A deployment without the component is a
// Conflict.
func (a *API) proposeRepair(ctx context.Context, in *ProposeRepair) (out v1.Repair, err error) {
	by, err := in.by(in.Body.Reason)
	if err != nil {
		return out, err
	}

	if _, err := a.Inventory.Object(ctx, in.ark()); err != nil {
		return out, err
	}

	_, err = a.Components.Get(ctx, preservation.FileRepair)
	if fault.Is(err, fault.NotFound) {
		err = fault.New(fault.Conflict,
			"files are repaired from a second bucket, and this deployment has none: the "+
				"setting replicaBucket is empty")
	}

	if err != nil {
		return out, err
	}

	row, err := a.replicas().Propose(ctx, in.ark(), in.Body.File, locations[in.Body.In], by.Actor, in.Body.Reason)
	if err != nil {
		return out, err
	}
	return wireRepair(*row), a.requestRepair(ctx, row.ARK, by.Actor, in.Body.Reason)
}

// confirmRepair lets a planned repair be done. The token is that of the plan that a person has seen.
func (a *API) confirmRepair(ctx context.Context, in *ConfirmRepair) (out v1.Repair, err error) {
	by, err := in.by(in.Body.Reason)
	if err != nil {
		return out, err
	}
	row, err := a.replicas().Confirm(ctx, in.ark(), in.ID, in.Body.Token, by.Actor)
	if err != nil {
		return out, err
	}
	return wireRepair(*row), a.requestRepair(ctx, row.ARK, by.Actor, in.Body.Reason)
}

// requestRepair wakes the component that makes plans and does repairs.
func (a *API) requestRepair(ctx context.Context, ark, actor, reason string) error {
	return preservation.RequestRepair(ctx, a.Components, ark,
		component.By{Actor: actor, Reason: reason})
}

// wireRepair is the wire form of a repair. Fields of steps that were not reached are "".
func wireRepair(r replica.Repair) v1.Repair {
	at := v1.InStorage
	if r.Where == fixity.InCopy {
		at = v1.InCopy
	}

	return v1.Repair{
		ID:          r.ID,
		In:          at,
		Key:         r.File,
		State:       r.State,
		Expected:    r.Expected,
		Found:       r.Found,
		Source:      r.Source,
		Problem:     r.Problem,
		Token:       r.Token,
		ProposedBy:  r.By,
		Reason:      r.Reason,
		Proposed:    timestamp(r.At),
		ConfirmedBy: r.ConfirmedBy,
		Confirmed:   timestamp(r.ConfirmedAt),
		Quarantine:  r.Quarantine,
		Ended:       timestamp(r.EndedAt),
	}
}
