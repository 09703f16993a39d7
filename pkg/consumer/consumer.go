// Package consumer runs what reacts to events: each consumer has a filter, a place up to
// which it has come in each partition of the log, and a target that handles the events.
//
// A run takes the lease of one consumer in one partition, reads a window of the log, keeps
// what the filter selects, and calls the target. Then one transaction moves the cursor and
// parks what failed. So the cursor always moves, and a window whose run died is handled
// again: at least once. Events of one order key are handled in the order of the log.
//
// A Replay is a consumer's second reading of a part of the log, or, in a rebuild, of all that
// is stored. It has cursors of its own, with which the same runs work.
package consumer

import (
	"context"

	"archivist/pkg/envelope"
)

// Item is one event that a target is called with, or several of one key that were coalesced.
type Item struct {
	envelope.Event          // the newest, if coalesced
	Types          []string `json:"types,omitempty"`    // of all events that were coalesced, sorted
	Count          int      `json:"count,omitempty"`    // of the events that were coalesced; 0 or 1: one
	FirstSeq       int64    `json:"firstSeq,omitempty"` // the range that is covered, in the event's partition
	LastSeq        int64    `json:"lastSeq,omitempty"`
	IDs            []string `json:"ids,omitempty"` // of all events that were coalesced, oldest first

	// Reference: detail, before and after are left out, because they are too large for the
	// target. They are read by the event's id.
	Reference bool `json:"reference,omitempty"`
}

// Batch is one call of a target. The items of one order key are in the order of the log.
type Batch struct {
	Consumer string `json:"consumer"`
	Version  int    `json:"version"` // of the consumer's definition
	Events   []Item `json:"events"`
	Replay   bool   `json:"replay"` // the events were handled before, or are snapshots: no mail, no outward effects
}

// Failure is an event that a target could not handle. The target has not handled any later
// event of its key in the same call.
type Failure struct {
	ID     string `json:"id"` // of the event
	Reason string `json:"reason"`
}

// Handler handles the events of a batch. It can be called with an event again, after a crash
// or a replay, and must then make its effect once. An error means that no event counts as
// handled; failures name single events.
type Handler interface {
	Handle(ctx context.Context, b Batch) ([]Failure, error)
}

// HandlerFunc is a function as a Handler.
type HandlerFunc func(ctx context.Context, b Batch) ([]Failure, error)

// Handle calls f.
func (f HandlerFunc) Handle(ctx context.Context, b Batch) ([]Failure, error) { return f(ctx, b) }

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

// Places where a new consumer starts.
const (
	StartLatest  = "latest"  // after the newest event
	StartHorizon = "horizon" // at the oldest event that is still kept

	// AtCursor is a place for a reset only: where the cursor is, or at the newest event if it is beyond
	// that. So a consumer goes on after the table was restored from a backup.
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

	Mode     string `json:"mode,omitempty"`
	Schedule string `json:"schedule,omitempty"` // of Scheduled: "rate(1 hour)" or a cron expression
	TimeZone string `json:"timeZone,omitempty"` // of a cron expression; UTC
	Order    string `json:"order,omitempty"`    // OrderSubject
	Coalesce *Merge `json:"coalesce,omitempty"` // nil: each event is handled alone

	Batch         int    `json:"batch,omitempty"`         // events of one call, at most
	Window        int    `json:"window,omitempty"`        // events of the log that one step of a run reads
	Concurrency   int    `json:"concurrency,omitempty"`   // calls of the target at once, in one partition
	Retries       int    `json:"retries,omitempty"`       // of an event inside a run; NoRetries: none
	OnFailure     string `json:"onFailure,omitempty"`     // Park
	MaxDepth      int    `json:"maxDepth,omitempty"`      // of causes; deeper events are not handled, and are an alarm
	OwnEvents     string `json:"ownEvents,omitempty"`     // one of the three below; OwnIgnore
	Start         string `json:"start,omitempty"`         // StartLatest, StartHorizon, "time:2026-…Z" or "seq:N"
	Required      bool   `json:"required,omitempty"`      // nothing expires that it has not passed
	Paused        bool   `json:"paused,omitempty"`        // from the start
	IgnoreReplays bool   `json:"ignoreReplays,omitempty"` // it has outward effects, and is never replayed into
}

// Merge says how events are coalesced: those of one order key inside a window become one item.
type Merge struct {
	Quiet  int  `json:"quietSeconds,omitempty"` // an item waits until its key had no event for so long …
	Most   int  `json:"mostSeconds,omitempty"`  // … but not longer than this
	Cancel bool `json:"cancel,omitempty"`       // a create and a delete of one subject cancel out
}

// Target is what handles a consumer's events. Exactly one field is set.
type Target struct {
	Handler string `json:"handler,omitempty"` // the name of one of ours
	Lambda  string `json:"lambda,omitempty"`  // the ARN of a function
	Queue   string `json:"queue,omitempty"`   // the URL of an SQS queue
}
