package v1

import "context"

// States of the runs of components.
const (
	RunGoing       = "running"
	RunEnded       = "ended"
	RunInterrupted = "interrupted"
)

// RunCounts is what was done in a run of a component.
type RunCounts struct {
	// Items with the outcome success.
	Done int64 `json:"done" example:"187"`
	// Items with the outcome failure.
	Failed int64 `json:"failed" example:"1"`
	// Items that it tries again later.
	NotYet int64 `json:"notYet" example:"0"`
	// Parts of work on items that take longer.
	Again int64 `json:"again" example:"0"`
	// Items that were not ready any more when their turn came.
	Passed int64 `json:"passed" example:"0"`
	// Items that cannot be read or saved.
	Broken int64 `json:"broken" example:"0"`
}

// RunItem is what a run did with an item.
type RunItem struct {
	// The id of the item.
	Item string `json:"item" example:"item:delivery-17"`
	// The result: success, failure, notYet or again.
	State string `json:"state" example:"success"`
	// Why.
	Reason string `json:"reason,omitempty" example:"the file metadata.xml is missing"`
	// The id of the event that was recorded.
	Event string `json:"event,omitempty" example:"01M7ZBMEYHBB62YP6RY21T1GQ9.0"`
	// When the work began.
	Started string `json:"started" format:"date-time" example:"2026-11-22T09:31:10Z"`
	// When it ended.
	Ended string `json:"ended" format:"date-time" example:"2026-11-22T09:31:12Z"`
}

// ComponentRun is a run of a component.
type ComponentRun struct {
	// The id of the run.
	ID string `json:"id" example:"01M7ZBMEYHBB62YP6RY21T1GQ8"`
	// The component.
	Component string `json:"component" example:"count-words"`
	// The version of the component's definition.
	Definition int `json:"definition" example:"1"`
	// How far it is. An interrupted run lost its lease.
	State string `json:"state" enum:"running,ended,interrupted" example:"ended"`
	// Why it ended, if there was more to do.
	Why string `json:"why,omitempty" example:"it has worked on 1000 items, the most of a run"`
	// Who started it.
	Actor string `json:"actor,omitempty" example:"an operator"`
	// Why it was started.
	Reason string `json:"reason,omitempty" example:"The metadata is corrected."`
	// When it began.
	Started string `json:"started" format:"date-time" example:"2026-11-22T09:31:00Z"`
	// When it ended.
	Ended string `json:"ended,omitempty" format:"date-time" example:"2026-11-22T09:32:00Z"`
	// When it is given up.
	Until string `json:"until" format:"date-time" example:"2026-11-22T10:31:00Z"`
	// The number of items that it works on, at most.
	MaxItems int `json:"maxItems" example:"1000"`
	// What was done.
	Counts RunCounts `json:"counts"`
	// Items that cannot be read or saved.
	Broken []string `json:"brokenItems,omitempty" example:"[\"item:delivery-3\"]"`
	// A page of its items, the newest first. They are kept for 30 days. A list of runs has none.
	Items []RunItem `json:"items"`
	// Present if there are more items.
	Cursor string `json:"cursor,omitempty"`
}

// ComponentRunRequest is a request to run a component.
type ComponentRunRequest struct {
	// The reason. It is kept with the run.
	Reason string `json:"reason" minLength:"1" maxLength:"500" example:"The metadata is corrected."`
}

// Runs lists the runs of a component, newest first.
func (c *Client) Runs(ctx context.Context, name string, limit int) ([]ComponentRun, error) {
	return list[ComponentRun](ctx, c, at("components", name, "runs"), limit)
}

// Run returns a run of a component, with its newest items.
func (c *Client) Run(ctx context.Context, name, run string) (ComponentRun, error) {
	return get[ComponentRun](ctx, c, at("components", name, "runs", run))
}

// StartRun runs a component. If it is running, it runs once more afterwards.
func (c *Client) StartRun(ctx context.Context, name string, in ComponentRunRequest,
	key string) (ComponentRun, error) {
	return post[ComponentRun](ctx, c, at("components", name, "runs"), in, key)
}
