package v1

import (
	"context"

	"archivist/pkg/ingest"
	"archivist/pkg/kernel/fault"
)

// ActOnJob acts on a job. A repeated request with the same key, if it has one, does nothing
// more and has the same result.
func (c *Client) ActOnJob(ctx context.Context, job string, in Action,
	key string) (JobActionResult, error) {
	return post[JobActionResult](ctx, c, at("jobs", job, "actions"), in, key)
}

// Act acts on a target of any kind. The key is as for ActOnJob.
func (c *Client) Act(ctx context.Context, on ingest.Target, in Action,
	key string) (ActionResult, error) {
	path := ""
	switch on.Kind {
	case ingest.TargetJob:
		path = at("jobs", on.ID)
	case ingest.TargetBatch:
		path = at("batches", on.ID)
	case ingest.TargetCollection:
		path = at("collections", on.ID)
	case ingest.TargetQueue, ingest.TargetStorage:
		path = at(string(on.Kind))
	default:
		return ActionResult{}, fault.New(fault.Invalid, "target: there is no kind %q", on.Kind)
	}
	return post[ActionResult](ctx, c, path+"/actions", in, key)
}

// Start starts a bulk operation, or the doctor. The same key with the same request gives the
// same operation.
func (c *Client) Start(ctx context.Context, in OperationRequest, key string) (Operation, error) {
	return post[Operation](ctx, c, "/v1/operations", in, key)
}

// Operations lists bulk operations, newest first.
func (c *Client) Operations(ctx context.Context, limit int) ([]Operation, error) {
	return list[Operation](ctx, c, "/v1/operations", limit)
}

// Operation returns one bulk operation.
func (c *Client) Operation(ctx context.Context, id string) (Operation, error) {
	return get[Operation](ctx, c, at("operations", id))
}

// OperationEvents lists the events of a bulk operation, oldest first.
func (c *Client) OperationEvents(ctx context.Context, id string) ([]Event, error) {
	return list[Event](ctx, c, at("operations", id, "events"), 0)
}

// Items lists the jobs that an operation acts on, with what was done or would be done.
func (c *Client) Items(ctx context.Context, id string, limit int) ([]OperationItem, error) {
	return list[OperationItem](ctx, c, at("operations", id, "items"), limit)
}

// Refusals lists the jobs on which the action of an operation was refused.
func (c *Client) Refusals(ctx context.Context, id string, limit int) ([]Refusal, error) {
	return list[Refusal](ctx, c, at("operations", id, "refusals"), limit)
}

// Findings lists what the doctor has found.
func (c *Client) Findings(ctx context.Context, id string, limit int) ([]Finding, error) {
	return list[Finding](ctx, c, at("operations", id, "findings"), limit)
}

// ActOnOperation interrupts or continues an operation.
func (c *Client) ActOnOperation(ctx context.Context, id string,
	in OperationAction) (Operation, error) {
	return post[Operation](ctx, c, at("operations", id, "actions"), in)
}

// Holds lists the active pauses and holds.
func (c *Client) Holds(ctx context.Context, limit int) ([]Hold, error) {
	return list[Hold](ctx, c, "/v1/holds", limit)
}
