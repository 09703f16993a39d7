package api

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"

	"github.com/danielgtaylor/huma/v2"

	v1 "archivist/pkg/api/v1"
	"archivist/pkg/ingest"
	"archivist/pkg/queue"
)

// operator is the actor of all requests, until callers have accounts.
const operator = "an operator"

// role is the role of all callers who act: operations that act need the key of an Administrator.
const role = ingest.Administrator

// Caller is who makes a request.
type Caller struct {
	User string `header:"Archivist-User" maxLength:"100"`
}

// actor is the caller's name in events. The name in the request is not verified, so the
// actor says that, and the quotes keep it apart from our own words.
func (c Caller) actor() (string, error) {
	if c.User == "" {
		return operator, nil
	}
	if err := ingest.CheckText(v1.UserHeader, c.User, 100); err != nil {
		return "", err
	}
	return fmt.Sprintf("%s (unverified: %q)", operator, c.User), nil
}

// Repeatable is a request that can be repeated safely with the same key.
type Repeatable struct {
	Key string `header:"Idempotency-Key" maxLength:"190"`
}

// request is the id of the request, "" without a key. The prefix keeps it apart from the ids
// of requests that come in other ways.
func (r Repeatable) request() (string, error) {
	if r.Key == "" {
		return "", nil
	}
	return "api:" + r.Key, ingest.CheckText("Idempotency-Key", r.Key, 190)
}

// Acting is what all requests to act have.
type Acting struct {
	Caller
	Repeatable
	RawBody []byte
}

// Resolve refuses null in the body: a template whose value is missing would otherwise act on
// more than it names, or hold without an end.
func (in *Acting) Resolve(huma.Context) []error {
	var body any
	if json.Unmarshal(in.RawBody, &body) != nil {
		return nil // refused already
	}
	return nulls("body", body)
}

// nulls are the errors of the fields in an object that are null.
func nulls(path string, value any) (out []error) {
	fields, _ := value.(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		at := path + "." + name
		if fields[name] == nil {
			out = append(out, &huma.ErrorDetail{Location: at,
				Message: "expected a value, found null; leave the field out if none is wanted"})
		}
		out = append(out, nulls(at, fields[name])...)
	}
	return out
}

// JobAction and the types below are requests to act.
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

func (a *API) actions(h huma.API) {
	post := func(path, id, summary string) huma.Operation {
		return huma.Operation{Method: http.MethodPost, Path: path + "/actions", OperationID: id, Summary: summary}
	}
	register(a, h, post("/v1/jobs/{id}", "actOnJob", "Act on a job"), a.actOnJob)
	register(a, h, post("/v1/batches/{id}", "actOnBatch", "Act on a batch"),
		func(ctx context.Context, in *BatchAction) (v1.ActionResult, error) {
			b := in.Body
			return a.act(ctx, ingest.Target{Kind: ingest.TargetBatch, ID: in.ID}, in.Acting,
				asked(b.Action, b.ActionOptions, b.Until, nil))
		})
	register(a, h, post("/v1/collections/{name}", "actOnCollection", "Hold or release a collection"),
		func(ctx context.Context, in *CollectionAction) (v1.ActionResult, error) {
			b := in.Body
			return a.act(ctx, ingest.Target{Kind: ingest.TargetCollection, ID: in.Name}, in.Acting,
				asked(b.Action, b.ActionOptions, b.Until, nil))
		})
	pauses := func(kind ingest.TargetKind) func(context.Context, *PauseAction) (v1.ActionResult, error) {
		return func(ctx context.Context, in *PauseAction) (v1.ActionResult, error) {
			b := in.Body
			return a.act(ctx, ingest.Target{Kind: kind}, in.Acting,
				asked(b.Action, b.ActionOptions, b.Until, nil))
		}
	}
	register(a, h, post("/v1/queue", "actOnQueue", "Pause or resume the queue"), pauses(ingest.TargetQueue))
	register(a, h, post("/v1/storage", "actOnStorage", "Pause or resume the storage"), pauses(ingest.TargetStorage))
}

// actOnJob answers with the job, too: the route did so before there were other actions.
func (a *API) actOnJob(ctx context.Context, in *JobAction) (out v1.JobActionResult, err error) {
	b := in.Body
	done, err := a.act(ctx, ingest.Target{Kind: ingest.TargetJob, ID: in.ID}, in.Acting,
		asked(b.Action, b.ActionOptions, b.Until, b.Priority))
	if err != nil {
		return out, err
	}
	out.ActionOutcome, out.Warnings = done.ActionOutcome, done.Warnings
	j, err := a.Queue.Job(ctx, in.ID)
	if err == nil {
		out.Job = wireJob(*j)
	}
	return out, err
}

// asked is the action that a request asks for.
func asked(name string, o v1.ActionOptions, until string, priority *int) v1.Action {
	return v1.Action{Action: name, Reason: o.Reason, Confirm: o.Confirm, DryRun: o.DryRun, Until: until,
		Priority: priority}
}

// act does an action.
func (a *API) act(ctx context.Context, on ingest.Target, by Acting, in v1.Action) (out v1.ActionResult, err error) {
	action := ingest.Action{Name: ingest.ActionName(in.Action), Target: on, Reason: in.Reason, Role: role,
		Confirm: in.Confirm, DryRun: in.DryRun, Priority: in.Priority}
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

// timestamp is a time in ISO 8601, "" for 0.
func timestamp(ms int64) string {
	if ms == 0 {
		return ""
	}
	return ingest.Timestamp(ms)
}

// WireResult is the wire form of what an action did.
func WireResult(r ingest.ActionResult) v1.ActionResult {
	out := v1.ActionResult{Warnings: r.Warnings, ActionOutcome: v1.ActionOutcome{Action: string(r.Action),
		Target: r.Target.String(), Changed: r.Changed, DryRun: r.DryRun, Summary: r.Summary, From: r.From, To: r.To,
		NeedsConfirm: r.NeedsConfirm, Operation: r.Operation}}
	if r.Next != nil {
		next := wireBulk(*r.Next)
		out.Next = &next
	}
	return out
}

func wireBulk(b ingest.Bulk) v1.Bulk {
	return v1.Bulk{Action: string(b.Name), Priority: b.Priority, Confirm: b.Confirm, Until: timestamp(b.Until),
		Filter: wireFilter(b.Filter)}
}

func wireFilter(f ingest.Filter) v1.JobFilter {
	return v1.JobFilter{Batch: f.Batch, Collection: f.Collection, State: string(f.State), Message: f.Message,
		Before: timestamp(f.Before), KeepOwnHolds: f.KeepOwnHolds}
}
