package v1

import (
	"context"

	"archivist/pkg/kernel/definition"
)

// Parts of a definition, as package definition has them.
type (
	// ConsumerTarget is what handles the events of a consumer. Exactly one field is set.
	ConsumerTarget = definition.ConsumerTarget
	// ConsumerCoalescing says how the events of one order key become one.
	ConsumerCoalescing = definition.ConsumerCoalescing
)

// ConsumerDefinition is a consumer as it is configured. A field that is left out has its default.
type ConsumerDefinition struct {
	// The name: lower-case letters, digits and hyphens. In a request it may be left out: the path has it.
	Name string `json:"name,omitempty" example:"search"`
	// The version of the definition. Each change raises it. It is ignored in requests.
	Version int `json:"version,omitempty" example:"1"`
	// What the consumer does.
	Description string `json:"description,omitempty" maxLength:"1000" example:"Keeps the search index."`
	// Which events the consumer handles.
	Filter string `json:"filter" maxLength:"4096" example:"Object+Create|Modify|Delete"`
	// What handles them.
	Target ConsumerTarget `json:"target"`
	// async: an event wakes the consumer. scheduled: its schedule does, and it sleeps in between.
	Mode string `json:"mode,omitempty" enum:"async,scheduled"`
	// For scheduled: `rate(1 hour)`, or a cron expression of five fields.
	Schedule string `json:"schedule,omitempty" maxLength:"100" example:"rate(1 hour)"`
	// The IANA time zone of a cron expression. By default UTC.
	TimeZone string `json:"timeZone,omitempty" maxLength:"100" example:"Europe/Brussels"`
	// Events with the same subject, or of the same collection, are handled in the order of the log; of a log that was
	// split, those of a collection in the order of each part. none: in any order.
	Order string `json:"order,omitempty" enum:"subject,collection,none"`
	// How events of one key are coalesced. Absent: each event is handled alone.
	Coalesce *ConsumerCoalescing `json:"coalesce,omitempty"`
	// The number of events in one call of the target, at most.
	Batch int `json:"batch,omitempty" minimum:"0" example:"10"`
	// The number of events of the log that one step of a run reads.
	Window int `json:"window,omitempty" minimum:"0" example:"100"`
	// The number of calls of the target at once, in one partition of the log.
	Concurrency int `json:"concurrency,omitempty" minimum:"0" example:"4"`
	// The number of times that a failed event is tried again in a run. 0: the default; -1: not at all.
	Retries int `json:"retries,omitempty" minimum:"-1" example:"3"`
	// park: an event that still fails, and the later ones of its key, wait for a person; others go on. block: the
	// consumer waits before it.
	OnFailure string `json:"onFailure,omitempty" enum:"park,block"`
	// Events that are the result of a longer chain of events are not handled. -1: all are; only consumers that ship
	// and cause no events have it.
	MaxDepth int `json:"maxDepth,omitempty" minimum:"-1" example:"10"`
	// What is done with events that the consumer itself made: ignore, ignore also what follows from them, or handle.
	OwnEvents string `json:"ownEvents,omitempty" enum:"ignore,ignore-chain,handle"`
	// Where a new consumer starts: `latest`, `horizon` (the oldest event that is kept), `time:` and a time, or `seq:`
	// and a number.
	Start string `json:"start,omitempty" maxLength:"100" example:"latest"`
	// Whether events are kept until the consumer has passed them.
	Required bool `json:"required,omitempty"`
	// Whether it starts paused.
	Paused bool `json:"paused,omitempty"`
	// Whether it has effects outside of the archive, such as mails, so that nothing is replayed into it.
	IgnoreReplays bool `json:"ignoreReplays,omitempty"`
}

// ConsumerPartition is how far a consumer has come in one partition of the log.
type ConsumerPartition struct {
	// The partition: a collection, or site; of a log that is split, one of its parts.
	Partition string `json:"partition" example:"maps"`
	// The number of the last event that the consumer has passed.
	Seq int64 `json:"seq" example:"1841"`
	// The number of the last event of the partition.
	Head int64 `json:"head" example:"1843"`
	// For how many seconds the oldest event that it has not passed has been waiting.
	LagSeconds int64 `json:"lagSeconds" example:"3"`
	// Absent if none waits. The time at which that event happened.
	LagSince string `json:"lagSince,omitempty" format:"date-time" example:"2026-11-22T09:30:00Z"`
	// The number of rows of parked events.
	Parked int64 `json:"parked" example:"0"`
	// The number of order keys whose events wait until they are quiet.
	Waiting int64 `json:"waiting" example:"0"`
	// The number of redrives that are not finished.
	Redrives int `json:"redrives" example:"0"`
	// Why the consumer does not go on in this partition. Absent if it does.
	Problem string `json:"problem,omitempty"`
	// The number of the event before which it stands, if it does not go on.
	ProblemSeq int64 `json:"problemSeq,omitempty" example:"1842"`
}

// Consumer is the current state of a consumer.
type Consumer struct {
	ConsumerDefinition
	// When the definition was made.
	Created string `json:"created" format:"date-time" example:"2026-11-22T09:30:00Z"`
	// When the definition, or whether it is paused, was changed last.
	Changed string `json:"changed" format:"date-time" example:"2026-11-22T09:30:00Z"`
	// When the numbers were counted. Those of one consumer are counted when it is asked for; those of a list were
	// counted within the last minutes, by the clock of the consumers. Absent if they were not counted yet: then they
	// are 0, and mean nothing.
	Counted string `json:"counted,omitempty" format:"date-time" example:"2026-11-22T09:30:03Z"`
	// The number of events that it has still to handle, in all partitions. Those that its filter does not select do not
	// count, as far as they were looked at.
	Behind int64 `json:"behind" example:"2"`
	// In a list: it is behind by more than `behind`, since events were not counted in all partitions.
	AtLeast bool `json:"atLeast,omitempty"`
	// For how many seconds the oldest event that it has not passed has been waiting.
	LagSeconds int64 `json:"lagSeconds" example:"3"`
	// Absent if none waits. The time at which that event happened.
	LagSince string `json:"lagSince,omitempty" format:"date-time" example:"2026-11-22T09:30:00Z"`
	// The number of rows of parked events.
	Parked int64 `json:"parked" example:"0"`
	// The number of order keys whose events wait until they are quiet.
	Waiting int64 `json:"waiting" example:"0"`
	// The number of partitions in which it does not go on.
	Stopped int `json:"stopped" example:"0"`
	// For scheduled: when it wakes next.
	NextRun string `json:"nextRun,omitempty" format:"date-time" example:"2026-11-22T10:00:00Z"`
	// The id of the replay that rebuilds it: it does not run before the end of that.
	Rebuild string `json:"rebuild,omitempty" example:"01M3XA6Z0000000000000000BF"`
	// The number of resets that are not finished: it does not run before.
	Resets int `json:"resets" example:"0"`
	// Whether its filter cannot be read, so that it handles nothing: a warning says why. How many
	// events it has to handle is not known then.
	Broken bool `json:"broken,omitempty" example:"false"`
	// What its filter asks for in vain: no event has it; or why the filter cannot be read. Absent if there is nothing.
	Warnings []string `json:"warnings,omitempty" example:"[\"filter: Bundle: no event is about one\"]"`
	// Its place in each partition of the log. In a list it is empty.
	Partitions []ConsumerPartition `json:"partitions"`
}

// ParkedEvent is an event that waits for a person, or behind another one of its key.
type ParkedEvent struct {
	// The partition of the log.
	Partition string `json:"partition" example:"maps"`
	// The number of the event in it.
	Seq int64 `json:"seq" example:"1842"`
	// The order key.
	Key string `json:"key" example:"Object#ark:/99999/fk4tq65d6k"`
	// The id of the event; of the newest, if several are handled as one.
	Event string `json:"event" example:"01M7ZBMEYHBB62YP6RY21T1GQ9.Object"`
	// The ids of all events, if several are handled as one.
	Coalesced []string `json:"coalesced,omitempty"`
	// The type of the event.
	Type string `json:"type" example:"object.modify"`
	// What the event is about: its type, a colon and its id.
	Subject string `json:"subject" example:"Object:ark:/99999/fk4tq65d6k"`
	// The number of the event among those of its subject, from 1. What is shown besides the event of
	// another subject, an addition to a collection or a new file, has none.
	Number int64 `json:"number,omitempty" example:"4"`
	// When it happened.
	Time string `json:"time" format:"date-time" example:"2026-11-22T09:31:10Z"`
	// Why it is parked.
	Reason string `json:"reason" example:"the function answered: the index is read-only"`
	// Where the handler failed, if it broke off.
	Stack string `json:"stack,omitempty"`
	// The id of the event that failed, if this one waits behind it.
	Behind string `json:"behind,omitempty" example:"01M7ZBMEYHBB62YP6RY21T1GQ8.Object"`
	// The number of times that it was tried.
	Attempts int `json:"attempts" example:"4"`
	// When it was parked.
	Since string `json:"since" format:"date-time" example:"2026-11-22T09:31:12Z"`
	// The version of the consumer's definition then.
	Version int `json:"version" example:"1"`
}

// ConsumerAction is a request to act on a consumer.
type ConsumerAction struct {
	// pause: it handles no more events. resume: the pause ends. run: one with a schedule
	// runs within a minute, as if its time had come. skip: it passes the events up to `seq` of the
	// `partition` without handling them. reset: it goes to the place `to`, and handles the events after it (again).
	// redrive: parked events are handled again. discard: parked events are given up, and those behind them are
	// handled. delete: the consumer and its places are removed; events stay.
	Action string `json:"action" enum:"pause,resume,run,skip,reset,redrive,discard,delete" example:"redrive"`
	// The reason. It is kept in the events.
	Reason string `json:"reason" minLength:"1" maxLength:"500" example:"The index can be written again."`
	// For skip and reset: only this partition of the log.
	Partition string `json:"partition,omitempty" maxLength:"200" example:"maps"`
	// For skip: the number of the last event that is passed.
	Seq int64 `json:"seq,omitempty" minimum:"1" example:"1842"`
	// For reset: `latest`, `horizon`, `cursor` (where it is), `time:` and a time in ISO 8601, or `seq:` and a number
	// (with a partition).
	To string `json:"to,omitempty" maxLength:"100" example:"latest"`
	// For redrive and discard: all parked events.
	All bool `json:"all,omitempty"`
	// For redrive and discard: only the event with this id.
	Event string `json:"event,omitempty" maxLength:"200" example:"01M7ZBMEYHBB62YP6RY21T1GQ9.Object"`
	// For redrive and discard: only the events that this filter selects.
	Filter string `json:"filter,omitempty" maxLength:"4096" example:"Object+Modify"`
	// For delete: give up the parked events, too. Without it, a consumer that has some is not deleted.
	Discard bool `json:"discard,omitempty"`
}

// ConsumerOutcome is what an action on a consumer did.
type ConsumerOutcome struct {
	// The action.
	Action string `json:"action" example:"redrive"`
	// What was done, in a sentence.
	Summary string `json:"summary" example:"the parked events of search are handled again"`
	// The consumer after it. Absent if it was deleted.
	Consumer *Consumer `json:"consumer,omitempty"`
}

// Consumers lists the consumers by name, without their places in the partitions. Counted says of when the numbers are.
func (c *Client) Consumers(ctx context.Context) ([]Consumer, error) {
	return list[Consumer](ctx, c, "/v1/consumers", 0)
}

// Consumer returns one consumer, with its place in each partition of the log.
func (c *Client) Consumer(ctx context.Context, name string) (Consumer, error) {
	return get[Consumer](ctx, c, at("consumers", name))
}

// ApplyConsumer creates or replaces a consumer's definition.
func (c *Client) ApplyConsumer(ctx context.Context, d ConsumerDefinition,
	reason string) (Consumer, error) {
	return put[Consumer](ctx, c, at("consumers", d.Name)+query("reason", reason), d)
}

// Parked lists the parked events of a consumer, in the order in which they will be handled.
func (c *Client) Parked(ctx context.Context, name string, limit int) ([]ParkedEvent, error) {
	return list[ParkedEvent](ctx, c, at("consumers", name, "parked"), limit)
}

// ActOnConsumer acts on a consumer. A repeated request with the same key does nothing more.
func (c *Client) ActOnConsumer(ctx context.Context, name string, in ConsumerAction,
	key string) (ConsumerOutcome, error) {
	return post[ConsumerOutcome](ctx, c, at("consumers", name, "actions"), in, key)
}

// FilterTrial asks what a filter would select of the past log.
type FilterTrial struct {
	// The filter.
	Filter string `json:"filter" maxLength:"4096" example:"Object+Create|Modify"`
	// Only this partition of the log. By default all.
	Partition string `json:"partition,omitempty" maxLength:"200" example:"maps"`
	// Where in the log to begin: `horizon`, `time:` and a time, or `seq:` and a number (with a partition).
	From string `json:"from,omitempty" maxLength:"100" example:"horizon"`
	// The cursor of the previous response, to go on from there.
	Cursor string `json:"cursor,omitempty" maxLength:"1000"`
}

// FilterTrialResult is what a filter selects.
type FilterTrialResult struct {
	// The number of events that were looked at.
	Read int `json:"read" example:"1000"`
	// The number of those that it selects.
	Selected int `json:"selected" example:"12"`
	// The first of the selected events, at most 100.
	Events []SelectedEvent `json:"events"`
	// Present if there are more events to look at.
	Cursor string `json:"cursor,omitempty"`
}

// SelectedEvent is an event that a filter selects.
type SelectedEvent struct {
	// The id of the event.
	ID string `json:"id" example:"01M7ZBMEYHBB62YP6RY21T1GQ9.Object"`
	// Its type.
	Type string `json:"type" example:"object.create"`
	// What it is about: its type, a colon and its id.
	Subject string `json:"subject" example:"Object:ark:/99999/fk4tq65d6k"`
	// Its number among the events of its subject, from 1. What is shown besides the event of
	// another subject, an addition to a collection or a new file, has none.
	Number int64 `json:"number,omitempty" example:"4"`
	// The partition of the log.
	Partition string `json:"partition" example:"maps"`
	// Its number in the partition.
	Seq int64 `json:"seq" example:"1842"`
	// When it happened.
	Time string `json:"time" format:"date-time" example:"2026-11-22T09:31:10Z"`
}

// TryFilter applies a filter to the past log, and changes nothing.
func (c *Client) TryFilter(ctx context.Context, in FilterTrial) (FilterTrialResult, error) {
	return post[FilterTrialResult](ctx, c, "/v1/filters", in)
}
