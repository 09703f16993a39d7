// Package consumer runs what reacts to events: each consumer has a filter, a place up to which it
// has come in each partition of the log, and a target that handles the events.
//
// A run takes the lease of one consumer in one partition, reads a window of the log, keeps what the filter selects,
// and calls the target. Then one transaction moves the cursor and parks what failed, unless the consumer is to stop
// there (see Stop). So a failure stops no others, and a window whose run died is handled again: at least once. Events
// of one order key are handled in the order of the log.
//
// A Replay is a consumer's second reading of a part of the log, or, in a rebuild, of all that is
// stored. It has cursors of its own, with which the same runs work.
//
// The requirements are those of the object-model-events text: events are received asynchronously,
// also after a dormant period, survive crashes, are selected by a filter, can be coalesced, and a
// consumer is not triggered by its own.
//
// # How the parts work together
//
// Store has what people do: Apply, Pause, Reset, Redrive and so on. Each change is one transaction
// with its event, and is made once per request. Runtime has what the system does: Placed wakes
// consumers whose filters select what was just placed, Tick finds each minute what a lost wake-up
// or a dead run has left, and Run does the work.
//
// A step of a run (step in run.go) is the next thing of these: what a person has ordered to be done
// with parked events (redrive.go), keys that have become quiet (debounce.go), the files of a version
// (files.go), a page of a rebuild (rebuild.go), or a window of the log (window.go). Every step ends
// with one transaction of the cursor (move).
//
// # What always holds
//
//   - The cursor's row is the truth. Wake-ups carry none: losing or repeating one costs time only.
//   - Only the holder of the cursor's lease handles events, and writes parked and waiting rows.
//     People leave orders and resets; who puts a cursor elsewhere takes the lease away, and the
//     run's next write is refused.
//   - An event up to the cursor is handled, parked, waiting, or was skipped by a person; never
//     forgotten.
//   - Behind a parked event, later ones of its order key are parked too, so that their order holds.
//   - A target is called at least once with each event. Whoever needs exactly one effect uses a
//     Ledger.
package consumer

import (
	"context"

	"archivist/pkg/events/envelope"
	"archivist/pkg/events/event"
	"archivist/pkg/kernel/definition"
)

// Item is one event that a target is called with, or several of one key that were coalesced. It is
// what functions and queues get as JSON, so names of fields stay.
type Item struct {
	// Event is the newest, if several are coalesced; Before and After are then over all of them.
	envelope.Event

	// Types are those of all events that were coalesced, sorted; empty for one event.
	Types []string `json:"types,omitempty"`

	// Count is how many events were coalesced; 0 or 1: one.
	Count int `json:"count,omitempty"`

	// FirstSeq and LastSeq are the range that is covered, in the event's partition. Events of other
	// keys lie in it, too.
	FirstSeq int64 `json:"firstSeq,omitempty"`
	LastSeq  int64 `json:"lastSeq,omitempty"`

	// IDs are those of all events that were coalesced, oldest first.
	IDs []string `json:"ids,omitempty"`

	// Reference: detail, before and after are left out, because they are too large for the
	// target. They are read by the event's id.
	Reference bool `json:"reference,omitempty"`
}

// Batch is one call of a target. The items of one order key are in the order of the log.
type Batch struct {
	Consumer string `json:"consumer"`
	Version  int    `json:"version"` // of the consumer's definition
	Events   []Item `json:"events"`

	// Replay: the events were handled before, or are snapshots: no mail, no outward effects.
	Replay bool `json:"replay"`
}

// Failure is an event that a target could not handle. The target has not handled any later event of
// its key in the same call: those are not called again before this one.
type Failure struct {
	ID     string `json:"id"` // of the event
	Reason string `json:"reason"`
}

// Handler handles the events of a batch. It can be called with an event again, after a crash or a
// replay, and must then make its effect once. An error means that no event counts as handled;
// failures name single events. An error of the kind fault.Unavailable or fault.Denied means that
// nothing can be handled now, and costs no event a try.
type Handler interface {
	Handle(ctx context.Context, b Batch) ([]Failure, error)
}

// HandlerFunc is a function as a Handler.
type HandlerFunc func(ctx context.Context, b Batch) ([]Failure, error)

// Handle calls f.
func (f HandlerFunc) Handle(ctx context.Context, b Batch) ([]Failure, error) { return f(ctx, b) }

// State is what is stored, for rebuilds.
type State interface {
	// Snapshots returns events that say how collections, objects and versions are now: those
	// of one part (0 to parts-1), from a cursor ("" at the beginning), about limit of them.
	// The events of an object are together, and in order. next is "" at the end. An error is one of
	// the storage: the same page is read again later.
	Snapshots(ctx context.Context, part, parts int, cursor string, limit int) (all []Snapshot,
		next string, err error)
}

// Snapshot is an event that says how something is now.
type Snapshot struct {
	envelope.Event

	// Unreadable says why there is no snapshot of something that is stored, of which the Event has
	// an id and a place: it is a failure of the rebuild. "": the Event is the snapshot.
	Unreadable string
}

// Pruner removes what a handler keeps of things that are not stored: whatever became of the events
// of their deletion.
type Pruner interface {
	// Prune looks at the next page of what is kept, from a cursor ("" at the beginning), and
	// removes what it is right to remove. next is "" at the end. The same page may be looked at
	// again.
	Prune(ctx context.Context, cursor string) (next string, err error)
}

// Order keys: events of one key are handled one after the other, in the order of the log. Parts
// of a log that was split have no common order: there, the events of a collection are in order
// within each part.
const (
	OrderSubject    = "subject"
	OrderCollection = "collection"
	OrderNone       = "none"
)

// Modes say what wakes a consumer.
const (
	Async     = "async"     // an event that its filter selects
	Scheduled = "scheduled" // its schedule; it sleeps in between
)

// What is done with events that the consumer itself caused.
const (
	OwnIgnore = "ignore"       // those that it made are not handled
	OwnChain  = "ignore-chain" // nor those with one that it made among their causes
	OwnHandle = "handle"
)

// What is done with an event that fails after all of its retries.
const (
	Park  = "park"  // it and later events of its key wait; others go on
	Block = "block" // the cursor stays before it
)

// NoRetries is the number of Retries of a consumer that tries each event once.
const NoRetries = -1

// AnyDepth is the MaxDepth of one of our handlers that only keeps a record: it causes nothing that others handle, so no
// cycle goes through it, and it must not miss an event because other consumers made a long chain.
const AnyDepth = -1

// Places where a new consumer starts.
const (
	StartLatest  = "latest"  // after the newest event
	StartHorizon = "horizon" // at the oldest event that is still kept

	// AtCursor is a place for a reset only: where the cursor is, or at the newest event if it is
	// beyond that. So a consumer goes on after the table was restored from a backup.
	AtCursor = "cursor"
)

// Definition is a consumer as it is configured, in JSON or YAML. The zero value of a field is
// its default, which Check sets.
type Definition struct {
	Name        string `json:"name"`
	Version     int    `json:"version"` // raised by each change
	Description string `json:"description,omitempty"`
	Filter      string `json:"filter"`
	Target      Target `json:"target"`

	Mode string `json:"mode,omitempty"`

	// Schedule is that of a Scheduled consumer: "rate(1 hour)" or a cron expression of five fields.
	// TimeZone is the zone of a cron expression; by default UTC.
	Schedule string `json:"schedule,omitempty"`
	TimeZone string `json:"timeZone,omitempty"`

	// Order is one of the order keys; by default OrderSubject.
	Order string `json:"order,omitempty"`

	// Coalesce nil: each event is handled alone.
	Coalesce *Coalesce `json:"coalesce,omitempty"`

	// Batch is how many events one call has, at most, and Window how many events of the log one
	// step of a run reads. Each step costs some reads and a write of the cursor, so a small window
	// costs more for each event.
	Batch  int `json:"batch,omitempty"`
	Window int `json:"window,omitempty"`

	// Concurrency is how many calls of the target are made at once, in one partition.
	Concurrency int `json:"concurrency,omitempty"`

	// Retries are those of an event, before it is parked or blocks; NoRetries: none.
	Retries int `json:"retries,omitempty"`

	// OnFailure is Park or Block; by default Park.
	OnFailure string `json:"onFailure,omitempty"`

	// MaxDepth is of causes; deeper events are not handled, and are an alarm. It ends cycles of
	// consumers that cause each other's events. AnyDepth: they are handled.
	MaxDepth int `json:"maxDepth,omitempty"`

	// OwnEvents is OwnIgnore, OwnChain or OwnHandle; by default OwnIgnore.
	OwnEvents string `json:"ownEvents,omitempty"`

	// Start is StartLatest, which is the default, StartHorizon, "time:2026-…Z" or "seq:N". It holds
	// for a new consumer only.
	Start string `json:"start,omitempty"`

	// Required: no event expires that it has not passed.
	Required bool `json:"required,omitempty"`

	// Paused: a new consumer does not run until it is resumed.
	Paused bool `json:"paused,omitempty"`

	// IgnoreReplays: it has outward effects, and is never replayed into.
	IgnoreReplays bool `json:"ignoreReplays,omitempty"`
}

// Coalesce says how events are coalesced: those of one order key inside a window become one item. With
// Debounce, those of several windows do (source: the object-model-events text, AIP updating: "coalesce
// a batch of changes to an object made close in time").
type Coalesce = definition.ConsumerCoalescing

// Target is what handles a consumer's events. Exactly one field is set.
type Target = definition.ConsumerTarget

// Consumer is a consumer with its state. Paused in its definition is the present state.
// Times are milliseconds since 1970.
type Consumer struct {
	Definition
	Created int64 `json:"created"`
	Changed int64 `json:"changed"` // the definition, or whether it is paused

	// While one of these is set, it does not run.
	Rebuild string `json:"rebuild,omitempty"` // the id of the replay that rebuilds it
	Resets  int    `json:"resets,omitempty"`  // of its cursors, that are not finished
}

// own is the partition of a consumer's cursors and events. It is another for each consumer, so that
// a busy one does not slow the others down.
func own(name string) string { return subject(name).Key().PK }

func subject(name string) event.Subject { return event.Subject{Type: event.Consumer, ID: name} }
