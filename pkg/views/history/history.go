// Package history keeps the permanent record of each object: what happened to it and to its
// versions, who made it happen, and what components did with them.
//
// The record is made by a consumer of events. It has the whole events, so it depends neither on
// their rows nor on the log, which may expire, nor on the object's own row. Each event is one
// row, which is written once and never changed:
//
//	HISTORY#{ark}   {time}#{event id}   an event of the object, of one of its versions, or of their items
package history

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"archivist/pkg/events/consumer"
	"archivist/pkg/events/envelope"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/table"
)

// Name of the consumer and of its handler.
const Name = "history"

// Definition is the consumer that keeps the record. An event is never merged with another, and
// each has a row of its own, so their order has no effect. Recording an event again, as a replay
// does, changes nothing.
var Definition = consumer.Definition{
	Name:        Name,
	Version:     1,
	Description: "Keeps the permanent record of each object.",
	Filter:      "Object+All:Version+All:ComponentItem+All",
	Target:      consumer.Target{Handler: Name},
	MaxDepth:    consumer.AnyDepth,
	Order:       consumer.OrderNone,
	Start:       consumer.StartHorizon,
	Required:    true,
}

// row is one event of the record. A row is written once and never changed or removed. The event is kept
// as text.
type row struct {
	table.Head
	Event string `dynamo:"event_json"` // an envelope.Event
}

// partition is the key of an object's record. All versions of the object are in it, so that the record
// is one list in the order of time.
func partition(ark string) string { return "HISTORY#" + ark }

// Recorder keeps the record: the consumer's handler.
type Recorder struct {
	Table *table.Table
	NewID func() string
}

// writers is how many rows are written at once. Each row is a transaction of its own; a batch of events
// is small, so this bounds the requests that one call has under way.
const writers = 8

// Handle records the events that are kept permanently. An event that cannot be recorded is a failure of
// its own. Any other error, e.g. of the table, is returned and ends the whole batch: it is tried again,
// and rows that were written meanwhile stay as they are.
func (r Recorder) Handle(ctx context.Context, b consumer.Batch) ([]consumer.Failure, error) {
	reasons := make([]string, len(b.Events))
	g, calls := errgroup.WithContext(ctx)
	g.SetLimit(writers)
	for i, item := range b.Events {
		g.Go(func() error {
			err := r.record(calls, item.Event)
			if fault.Is(err, fault.Invalid) {
				reasons[i] = err.Error()
				return nil
			}
			return err
		})
	}

	if err := g.Wait(); err != nil {
		return nil, err
	}

	var failures []consumer.Failure
	for i, reason := range reasons {
		if reason != "" {
			failures = append(failures, consumer.Failure{ID: b.Events[i].ID, Reason: reason})
		}
	}
	return failures, nil
}

// KeyOf is where the record has an event. The sort key is {milliseconds since 1970, 13 digits}#{id}, so that rows
// sort by time as text, and events of one millisecond by their ids. kept is false of an event that is not recorded: one
// that is not of the class Permanent, or of an item that is of no object. Any other event that names no object is an
// Invalid.
func KeyOf(e envelope.Event) (k table.Key, kept bool, err error) {
	if kind, known := envelope.KindOf(e.Type); !known || kind.Class != envelope.Permanent {
		return k, false, nil
	}

	ark := ObjectOf(e)
	switch {
	case ark == "" && e.Subject.Type == "ComponentItem":
		return k, false, nil
	case ark == "":
		return k, false, fault.New(fault.Invalid,
			"history: event %s is about %s %q, and names no object",
			e.ID, e.Subject.Type, e.Subject.ID)
	}
	return table.Key{PK: partition(ark), SK: fmt.Sprintf("%013d#%s", e.Time, e.ID)}, true, nil
}

// record writes the row of an event. If there is one, the event was recorded before. The condition of
// the write is that the row is absent; a Stale is therefore a success.
func (r Recorder) record(ctx context.Context, e envelope.Event) error {
	k, kept, err := KeyOf(e)
	if err != nil || !kept {
		return err
	}

	text, err := json.Marshal(e)
	if err != nil {
		return fault.New(fault.Invalid, "history: event %s: %w", e.ID, err)
	}

	tx := r.Table.Begin(r.NewID())
	tx.Insert(&row{Head: table.Head{PK: k.PK, SK: k.SK}, Event: string(text)})
	if err := tx.Commit(ctx); !fault.Is(err, fault.Stale) {
		return err
	}
	return nil
}

// ObjectOf is the ark of the object that an event is about, "" if there is none. An item of a
// component has the object or the version that it is about among its parents.
func ObjectOf(e envelope.Event) string {
	if ark := arkOf(e.Subject); ark != "" || e.Subject.Type != "ComponentItem" {
		return ark
	}
	for _, p := range slices.Backward(e.Parents) { // the innermost
		if ark := arkOf(p); ark != "" {
			return ark
		}
	}
	return ""
}

// arkOf is the ark of an object, or of a version's. The id of a version is its object's with a slash
// and the number, e.g. "ark:/99999/fk4x/v3".
func arkOf(r envelope.Ref) string {
	switch r.Type {
	case "Object":
		return r.ID
	case "Version":
		if i := strings.LastIndex(r.ID, "/v"); i > 0 {
			return r.ID[:i]
		}
	}
	return ""
}

// Store reads the record.
type Store struct{ Table *table.Table }

// Page lists the events of an object's record, oldest first, a page at a time. A page has up to 100
// events; next is "" at the end. An object without a record has an empty page, and so has one that does
// not exist: the caller asks the inventory which it is. A row that cannot be decoded is an error
// without a kind, a defect.
func (s Store) Page(ctx context.Context, ark,
	cursor string) (events []envelope.Event, next string, err error) {
	var rows []row
	next, err = s.Table.Page(ctx, table.Query{PK: partition(ark), Cursor: cursor}, &rows)
	if err != nil {
		return nil, "", err
	}

	for _, r := range rows {
		var e envelope.Event
		if err := json.Unmarshal([]byte(r.Event), &e); err != nil {
			return nil, "", fmt.Errorf("history: %s: %w", r.Key(), err)
		}
		events = append(events, e)
	}
	return events, next, nil
}
