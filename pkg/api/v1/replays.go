package v1

import "context"

// ReplayRequest asks that a consumer handles events again, or, with `rebuild`, that it gets
// everything that is stored.
type ReplayRequest struct {
	// Instead of events of the log, the consumer gets a snapshot of each collection, object and version that is
	// stored now, and then new events. Has none of the fields that select events.
	Rebuild bool `json:"rebuild,omitempty"`
	// The name of a shadow: the target is called with this name, so that it builds something else beside what is in
	// use. For consumers whose target is a function or a queue.
	Into string `json:"into,omitempty" maxLength:"100" example:"search-new"`
	// Only this partition of the log.
	Partition string `json:"partition,omitempty" maxLength:"200" example:"maps"`
	// The first event: `horizon`, `time:` and a time in ISO 8601, or `seq:` and a number (with a partition). By
	// default `horizon`: the oldest event that is kept.
	From string `json:"from,omitempty" maxLength:"100" example:"time:2026-11-01T00:00:00Z"`
	// The last event, likewise. By default `latest`: the newest event at the beginning of the replay.
	Until string `json:"until,omitempty" maxLength:"100" example:"latest"`
	// Only the events that this filter selects, of those that the consumer's filter selects.
	Filter string `json:"filter,omitempty" maxLength:"4096" example:"Object+Modify"`
	// The reason. It is kept in the events.
	Reason string `json:"reason" minLength:"1" maxLength:"500" example:"The function had a bug."`
}

// States of replays.
const (
	ReplayRunning   = "Running"
	ReplayDone      = "Done"
	ReplayCancelled = "Cancelled"
)

// Replay is a replay of events for a consumer, or a rebuild from what is stored.
type Replay struct {
	// The id of the replay.
	ID string `json:"id" example:"01M7ZBMEYHBB62YP6RY21T1GQ8"`
	// The consumer.
	Consumer string `json:"consumer" example:"mine"`
	// The shadow that it builds.
	Into string `json:"into,omitempty" example:"mine-new"`
	// Whether it is a rebuild from what is stored.
	Rebuild bool `json:"rebuild,omitempty"`
	// Only this partition of the log.
	Partition string `json:"partition,omitempty" example:"maps"`
	// Where it begins.
	From string `json:"from,omitempty" example:"time:2026-11-01T00:00:00Z"`
	// Where it ends.
	Until string `json:"until,omitempty" example:"latest"`
	// Only the events that this filter selects.
	Filter string `json:"filter,omitempty" example:"Object+Modify"`
	// The state of the replay.
	State string `json:"state" enum:"Running,Done,Cancelled" example:"Running"`
	// Why it does not go on now.
	Waiting string `json:"waiting,omitempty" example:"the consumer mine is paused"`
	// While it runs: the number of partitions, or of parts of what is stored, that it reads.
	Partitions *int `json:"partitions,omitempty" example:"16"`
	// While it runs: the number of those that are read.
	PartitionsDone *int `json:"partitionsDone,omitempty" example:"4"`
	// While it runs: the number of events that were looked at, or of snapshots.
	Read *int64 `json:"read,omitempty" example:"1200"`
	// While it runs: the number of events to look at. It is not known for a rebuild.
	Total *int64 `json:"total,omitempty" example:"4000"`
	// The number of events that failed. They are not parked: replay them again, with a filter.
	Failed int64 `json:"failed" example:"1"`
	// The first of those that failed, at most 20, once it has ended.
	Failures []ReplayFailure `json:"failures,omitempty"`
	// The number of interruptions after each of which some events, at most one window, may have been handled
	// twice.
	Repeats int64 `json:"repeats" example:"0"`
	// The reason that was given.
	Reason string `json:"reason" example:"The function had a bug."`
	// Who started it.
	Actor string `json:"actor" example:"an operator"`
	// When it was started.
	Started string `json:"started" format:"date-time" example:"2026-11-22T09:30:00Z"`
	// When it had ended. Absent before.
	Ended string `json:"ended,omitempty" format:"date-time" example:"2026-11-22T09:32:00Z"`
}

// ReplayFailure is an event that failed in a replay.
type ReplayFailure struct {
	// The id of the event, or of the snapshot. What ended the replay, or the replay of a partition, too
	// early has the name of the consumer or of the partition.
	Event string `json:"event" example:"01M7ZBMEYHBB62YP6RY21T1GQ9.Object"`
	// Why it failed.
	Reason string `json:"reason" example:"the function answered: the index is read-only"`
}

// ReplayAction is a request to act on a replay.
type ReplayAction struct {
	// cancel: it ends after the events that it is handling.
	Action string `json:"action" enum:"cancel" example:"cancel"`
	// The reason. It is kept in the events.
	Reason string `json:"reason" minLength:"1" maxLength:"500" example:"It was the wrong filter."`
}

// StartReplay starts a replay for a consumer. The same key again is the same replay.
func (c *Client) StartReplay(ctx context.Context, consumer string, in ReplayRequest,
	key string) (Replay, error) {
	return post[Replay](ctx, c, at("consumers", consumer, "replays"), in, key)
}

// Replays lists the replays of a consumer, the newest first.
func (c *Client) Replays(ctx context.Context, consumer string, limit int) ([]Replay, error) {
	return list[Replay](ctx, c, at("consumers", consumer, "replays"), limit)
}

// Replay returns a replay, with its progress.
func (c *Client) Replay(ctx context.Context, id string) (Replay, error) {
	return get[Replay](ctx, c, at("replays", id))
}

// ActOnReplay acts on a replay.
func (c *Client) ActOnReplay(ctx context.Context, id string, in ReplayAction,
	key string) (Replay, error) {
	return post[Replay](ctx, c, at("replays", id, "actions"), in, key)
}
