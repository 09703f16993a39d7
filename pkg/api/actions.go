package api

import (
	"context"

	"github.com/danielgtaylor/huma/v2"

	v1 "archivist/pkg/api/v1"
	"archivist/pkg/ingest"
	"archivist/pkg/ingest/queue"
)

// JobAction and the types below are requests to act. What can be asked of each target is in the schema
// of its body; what fits its state is decided in package ingest.
type JobAction struct {
	IDInput
	Acting
	Body v1.JobAction
}

// BatchAction is a request to act on a batch.
type BatchAction struct {
	IDInput
	Acting
	Body v1.BatchAction
}

// CollectionAction is a request to act on a collection.
type CollectionAction struct {
	Name string `path:"name" pattern:"^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$"`
	Acting
	Body v1.CollectionAction
}

// PauseAction is a request to act on the queue or the storage.
type PauseAction struct {
	Acting
	Body v1.PauseAction
}

// actions registers the routes that act on one thing each. All of them lead to act; bulk has the
// actions on many jobs.
func (a *API) actions(h huma.API) {
	post(a, h, "/v1/jobs/{id}/actions", "actOnJob", "Act on a job", a.actOnJob)
	post(a, h, "/v1/batches/{id}/actions", "actOnBatch", "Act on a batch",
		func(ctx context.Context, in *BatchAction) (v1.ActionResult, error) {
			b := in.Body
			return a.act(ctx, ingest.Target{Kind: ingest.TargetBatch, ID: in.ID}, in.Acting,
				asked(b.Action, b.ActionOptions, b.Until, nil))
		})

	post(a, h, "/v1/collections/{name}/actions", "actOnCollection", "Hold or release a collection",
		func(ctx context.Context, in *CollectionAction) (v1.ActionResult, error) {
			b := in.Body
			return a.act(ctx, ingest.Target{Kind: ingest.TargetCollection, ID: in.Name}, in.Acting,
				asked(b.Action, b.ActionOptions, b.Until, nil))
		})

	type acting = func(context.Context, *PauseAction) (v1.ActionResult, error)
	pauses := func(kind ingest.TargetKind) acting {
		return func(ctx context.Context, in *PauseAction) (v1.ActionResult, error) {
			b := in.Body
			return a.act(ctx, ingest.Target{Kind: kind}, in.Acting,
				asked(b.Action, b.ActionOptions, b.Until, nil))
		}
	}

	post(a, h, "/v1/queue/actions", "actOnQueue", "Pause or resume the queue",
		pauses(ingest.TargetQueue))
	post(a, h, "/v1/storage/actions", "actOnStorage", "Pause or resume the storage",
		pauses(ingest.TargetStorage))
}

// possible are the actions on a kind of target that the caller may do, and that its state allows.
func possible(ctx context.Context, kind ingest.TargetKind, allows func(ingest.ActionName) bool) []string {
	return texts(ingest.Possible(kind, roleOf(identityOf(ctx)), allows))
}

// texts are names of actions as the API has them.
func texts(names []ingest.ActionName) (out []string) {
	for _, name := range names {
		out = append(out, string(name))
	}
	return out
}

// actOnJob answers with the job, too: the route did so before there were other actions. The job is read
// after the action, so another request may have changed it meanwhile. If only that read fails, the
// caller gets an error although the action is done; with an idempotency key it can repeat the request.
func (a *API) actOnJob(ctx context.Context, in *JobAction) (out v1.JobActionResult, err error) {
	b := in.Body
	done, err := a.act(ctx, ingest.Target{Kind: ingest.TargetJob, ID: in.ID}, in.Acting,
		asked(b.Action, b.ActionOptions, b.Until, b.Priority))
	if err != nil {
		return out, err
	}

	out.ActionOutcome, out.Warnings = done.ActionOutcome, done.Warnings
	j, err := a.Queue.Job(ctx, in.ID)
	if err != nil {
		return out, err
	}

	out.Job = wireJob(*j)
	out.Actions = possible(ctx, ingest.TargetJob, j.Allows)
	return out, nil
}

// asked is the action that a request asks for. until is a time in ISO 8601 or "", and priority nil,
// where the route has none.
func asked(name string, o v1.ActionOptions, until string, priority *int) v1.Action {
	return v1.Action{
		Action:   name,
		Reason:   o.Reason,
		Confirm:  o.Confirm,
		DryRun:   o.DryRun,
		Until:    until,
		Priority: priority,
	}
}

// act does an action. It is done in one transaction with its event. The errors are those of
// queue.Admin.Act: an Invalid for fields that do not fit, a NotFound, a Conflict with the state, a
// Held, a Stale after another change, and ingest.ErrUnconfirmed where the caller has to confirm.
func (a *API) act(ctx context.Context, on ingest.Target, by Acting,
	in v1.Action) (out v1.ActionResult, err error) {
	action := ingest.Action{
		Name:     ingest.ActionName(in.Action),
		Target:   on,
		Reason:   in.Reason,
		Role:     by.role(),
		Confirm:  in.Confirm,
		DryRun:   in.DryRun,
		Priority: in.Priority,
	}

	if action.Actor, err = by.actor(); err != nil {
		return out, err
	}

	if action.Request, err = by.request(); err != nil {
		return out, err
	}

	if action.Until, err = ingest.ReadTime("until", in.Until); err != nil {
		return out, err
	}

	r, err := queue.Admin{Queue: a.Queue}.Act(ctx, action)
	return WireResult(r), err
}

// WireResult is the wire form of what an action did. Other packages use it to show the same.
func WireResult(r ingest.ActionResult) v1.ActionResult {
	out := v1.ActionResult{Warnings: r.Warnings, ActionOutcome: v1.ActionOutcome{
		Action:       string(r.Action),
		Target:       r.Target.String(),
		Changed:      r.Changed,
		DryRun:       r.DryRun,
		Summary:      r.Summary,
		From:         r.From,
		To:           r.To,
		NeedsConfirm: r.NeedsConfirm,
		Operation:    r.Operation,
	}}

	if r.Next != nil {
		next := wireBulk(*r.Next)
		out.Next = &next
	}
	return out
}
