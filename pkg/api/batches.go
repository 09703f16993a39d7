package api

import (
	"context"
	"net/http"
	"slices"

	"github.com/danielgtaylor/huma/v2"

	"archivist/pkg/api/status"
	v1 "archivist/pkg/api/v1"
	"archivist/pkg/events/event"
	"archivist/pkg/ingest"
	"archivist/pkg/ingest/queue"
	"archivist/pkg/kernel/fetch"
)

// batches registers the routes of batches, and those of the queue and the storage as a whole.
func (a *API) batches(h huma.API) {
	huma.Register(h, huma.Operation{
		Method:        http.MethodPost,
		Path:          "/v1/batches",
		Summary:       "Submit a batch",
		OperationID:   "submitBatch",
		DefaultStatus: http.StatusAccepted,
	}, a.submit)

	post(a, h, "/v1/batches/check", "checkBatch", "Check a submission", a.checkBatch)
	get(a, h, "/v1/batches", "listBatches", "List batches", a.listBatches)
	get(a, h, "/v1/batches/{id}", "getBatch", "Get a batch", a.oneBatch)
	redirect(a, h, "/v1/batches/{id}/report", "getBatchReport", "Get a batch's report", a.report,
		a.orCSV(a.reportCSV))
	get(a, h, "/v1/batches/{id}/events", "listBatchEvents", "List a batch's events",
		a.events(event.Batch))
	get(a, h, "/v1/status", "getStatus", "Get the whole deployment on one screen",
		func(ctx context.Context, in *StatusInput) (v1.Status, error) {
			return a.Status().Status(ctx, in.Attention), nil
		})
	get(a, h, "/v1/queue", "getQueue", "Get the queue at a glance", a.overview)
	get(a, h, "/v1/queue/events", "listQueueEvents", "List the pauses of the queue",
		a.pauses("ingest"))
	get(a, h, "/v1/storage/events", "listStorageEvents", "List the pauses of the storage",
		a.pauses("storage"))
}

// StatusInput says whether only what needs a person is asked for.
type StatusInput struct {
	Attention bool `query:"attention"`
}

// pauses lists the events of the queue or of the storage. Both are subjects of the type Queue; id is
// "ingest" or "storage". There may be no events yet, which is no error.
func (a *API) pauses(id string) func(context.Context, *Cursor) (v1.List[v1.Event], error) {
	return func(ctx context.Context, in *Cursor) (v1.List[v1.Event], error) {
		p, err := a.Queue.Events(ctx, event.Subject{Type: event.Queue, ID: id}, in.Cursor)
		return list(p, wireEvent), err
	}
}

// Status is what reads the status of the deployment.
func (a *API) Status() *status.Service {
	return &status.Service{Queue: a.Queue, Consumers: a.Consumers, Components: a.Components, Revisions: a.Revisions,
		Research: a.Research, Alarms: a.Alarms, Now: a.Queue.Now}
}

// overview is the queue at a glance: numbers of jobs by what they wait for, free space in bytes, and
// all holds.
func (a *API) overview(ctx context.Context, _ *struct{}) (v1.Queue, error) {
	o, err := a.Queue.Overview(ctx)
	if err != nil {
		return v1.Queue{}, err
	}

	now, err := a.Queue.InWork(ctx, o)
	out := status.NumbersOf(o)
	for _, kind := range []ingest.TargetKind{ingest.TargetQueue, ingest.TargetStorage} {
		paused := slices.ContainsFunc(o.Holds, func(h queue.Hold) bool { return h.Scope == kind })
		if names := possible(ctx, kind, ingest.HoldAllows(paused)); names != nil {
			if out.Actions == nil {
				out.Actions = map[string][]string{}
			}
			out.Actions[string(kind)] = names
		}
	}

	out.Now, out.Heads = each(now.Running, wireRunning), each(now.Heads, wireHead)
	out.Locks, out.Limits = wireLocks(now), wireLimits(now.Limits)
	return out, err
}

// oneBatch is a batch with what lists leave out, because it costs more reads: the mails that failed,
// and, while the batch works, the hold of its collection.
func (a *API) oneBatch(ctx context.Context, in *IDInput) (v1.Batch, error) {
	b, err := a.Queue.Batch(ctx, in.ID)
	if err != nil {
		return v1.Batch{}, err
	}

	// They are rows of their own, and can be newer than the state: they are read after it.
	c, err := a.Queue.Counts(ctx, in.ID)
	wire := wireBatch(b, c)
	if err != nil {
		return wire, err
	}

	err = a.mails(ctx, b, &wire)
	own := ingest.Target{Kind: ingest.TargetBatch, ID: in.ID}
	if err == nil && wire.Hold == nil && !v1.Ended(wire.State) {
		wire.Hold, err = a.active(ctx, ingest.Target{Kind: ingest.TargetCollection, ID: b.Collection}, own)
	}

	held := wire.Hold != nil && wire.Hold.Target == own.String()
	wire.Actions = possible(ctx, own.Kind, func(name ingest.ActionName) bool { return b.Allows(name, c, held) })
	return wire, err
}

// wireBatch is the wire form of a batch with these counts.
func wireBatch(b *queue.Batch, c ingest.Counts) v1.Batch {
	var hold *v1.Hold
	if b.Hold != nil {
		hold = holdOn(b.Hold, "", b.Batch.ID, b.Collection)
	}

	var cancelled *v1.Cancellation
	if by := b.Cancelled; by != nil {
		cancelled = &v1.Cancellation{Reason: by.Reason, Actor: by.Actor, At: timestamp(by.At)}
	}
	return v1.Batch{
		ID:                b.Batch.ID,
		State:             string(b.State),
		Collection:        b.Collection,
		Submitter:         b.Depositor(),
		Note:              b.Note,
		Hold:              hold,
		Cancelled:         cancelled,
		StopAfterFailures: b.StopAfter,
		Created:           ingest.Timestamp(b.Created),
		Since:             timestamp(b.Entered),
		Message:           b.Message,
		Callback:          fetch.Redact(b.Callback),
		Upload:            b.Upload,
		Warnings:          b.AllWarnings(),
		Report:            reportPath(b),
		Reports:           b.LastReport(),
		Bytes:             c.Bytes,
		Callbacks:         callbackCounts(c),
		Counts: v1.Counts{
			Expected:   b.Expected,
			Processing: c.Processing,
			Held:       c.Held,
			Failed:     c.Failed,
			Completed:  c.Completed,
			Deleted:    c.Deleted,
		},
	}
}
