package v1

import (
	"context"
	"net/http"
	"net/url"

	"archivist/pkg/ingest"
	"archivist/pkg/kernel/fault"
)

// ActOnJob acts on a job. A repeated request with the same key, if it has one, does nothing
// more and has the same result.
func (c *Client) ActOnJob(ctx context.Context, job string, in Action,
	key string) (out JobActionResult, err error) {
	err = c.act(ctx, jobPath(job), in, key, &out)
	return out, err
}

// Act acts on a target of any kind. The key is as for ActOnJob.
func (c *Client) Act(ctx context.Context, on ingest.Target, in Action,
	key string) (out ActionResult, err error) {
	path := ""
	switch on.Kind {
	case ingest.TargetJob:
		path = jobPath(on.ID)
	case ingest.TargetBatch:
		path = batchPath(on.ID)
	case ingest.TargetCollection:
		path = collectionPath(on.ID)
	case ingest.TargetQueue, ingest.TargetStorage:
		path = "/v1/" + string(on.Kind)
	default:
		return out, fault.New(fault.Invalid, "target: there is no kind %q", on.Kind)
	}

	err = c.act(ctx, path, in, key, &out)
	return out, err
}

func (c *Client) act(ctx context.Context, path string, in Action, key string, out any) error {
	return c.Call(ctx, http.MethodPost, path+"/actions", in, out, "Idempotency-Key", key)
}

// Start starts a bulk operation, or the doctor. The same key with the same request gives the
// same operation.
func (c *Client) Start(ctx context.Context, in OperationRequest,
	key string) (out Operation, err error) {
	err = c.Call(ctx, http.MethodPost, "/v1/operations", in, &out, "Idempotency-Key", key)
	return out, err
}

// Operations lists bulk operations, newest first.
func (c *Client) Operations(ctx context.Context, limit int) ([]Operation, error) {
	return list[Operation](ctx, c, "/v1/operations", Filter{Limit: limit})
}

// Operation returns one bulk operation.
func (c *Client) Operation(ctx context.Context, id string) (Operation, error) {
	return get[Operation](ctx, c, operationPath(id))
}

// OperationEvents lists the events of a bulk operation, oldest first.
func (c *Client) OperationEvents(ctx context.Context, id string) ([]Event, error) {
	return list[Event](ctx, c, operationPath(id)+"/events", Filter{})
}

// Items lists the jobs that an operation acts on, with what was done or would be done.
func (c *Client) Items(ctx context.Context, id string, limit int) ([]OperationItem, error) {
	return list[OperationItem](ctx, c, operationPath(id)+"/items", Filter{Limit: limit})
}

// Refusals lists the jobs on which the action of an operation was refused.
func (c *Client) Refusals(ctx context.Context, id string, limit int) ([]Refusal, error) {
	return list[Refusal](ctx, c, operationPath(id)+"/refusals", Filter{Limit: limit})
}

// Findings lists what the doctor has found.
func (c *Client) Findings(ctx context.Context, id string, limit int) ([]Finding, error) {
	return list[Finding](ctx, c, operationPath(id)+"/findings", Filter{Limit: limit})
}

// ActOnOperation interrupts or continues an operation.
func (c *Client) ActOnOperation(ctx context.Context, id string,
	in OperationAction) (out Operation, err error) {
	err = c.Call(ctx, http.MethodPost, operationPath(id)+"/actions", in, &out)
	return out, err
}

// Holds lists the active pauses and holds.
func (c *Client) Holds(ctx context.Context, limit int) ([]Hold, error) {
	return list[Hold](ctx, c, "/v1/holds", Filter{Limit: limit})
}

func operationPath(id string) string { return "/v1/operations/" + url.PathEscape(id) }
