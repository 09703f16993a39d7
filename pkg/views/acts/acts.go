// Package acts keeps what people did: who, when, on what, and why. It is one list over all logs,
// newest first, and one for each of them.
//
// The lists are made by a consumer of events from events alone: so they need no row of what was
// acted upon, they can be made again by a replay, and they stay when the events of batches and
// operations expire. An act is two rows, which are written once and never changed:
//
//	ACTS#all        {time}#{event id}   in the list of all
//	ACTSOF#{who}    {time}#{event id}   in the list of who did it
package acts

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"archivist/pkg/events/consumer"
	"archivist/pkg/events/envelope"
	"archivist/pkg/kernel/access"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/table"
)

// Name of the consumer and of its handler.
const Name = "acts"

// selection is a filter that selects all acts, and little else: what the consumer is woken for.
// Work on jobs, which makes most events, is left out by it.
const selection = "Job|Batch+All{component=admin}:" +
	"Operation+All{component=admin, !type=operation.done}:" +
	"Batch+Create{property=" + CorrectionProperty + "}:" +
	"Object+Modify{type=object.repair, component=replica}:" +
	"Collection+All{!type=collection.add}:" +
	"Queue|Token|Component|ResearchProject+All:" +
	"Consumer+All{!type=consumer.replay-done}:" +
	"Upload+All{type=upload.discarded}:" +
	"ComponentItem+All{component=items}:" +
	"Episode|Clip+All{component=api}:" +
	"Archive|Revision|Task+All{!actor=revision-queue|object-archives}"

// CorrectionProperty is the property of a batch that corrects an object: why.
const CorrectionProperty = "correction"

// Definition is the consumer that keeps the lists. The rows of two events do not depend on each
// other, so their order has no effect. Recording an event again, as a replay does, changes
// nothing.
var Definition = consumer.Definition{
	Name:        Name,
	Version:     1,
	Description: "Lists what people did, and why.",
	Filter:      selection,
	Target:      consumer.Target{Handler: Name},
	MaxDepth:    consumer.AnyDepth,
	Order:       consumer.OrderNone,
	Start:       consumer.StartHorizon,
	Required:    true,
}

// Act is what somebody did.
type Act struct {
	// Event has what filters look at: who, when, on what. Its payload is not kept.
	Event  envelope.Event
	Reason string // "" if none was given
}

// row is an act in a list.
type row struct {
	table.Head
	Event  string `dynamo:"event_json"` // an envelope.Event
	Reason string `dynamo:"reason,omitempty"`
}

// ofPeople are types of subjects, and types of events, that only people change, also without a
// reason.
var ofPeople = []string{"Collection", "Queue", "Token", "Consumer", "Component", "ResearchProject", "Archive",
	"Operation", "revision.skipped"}

// ownID is the form of the ids of operations. Requests of people have others.
var ownID = regexp.MustCompile(`^[0-9A-Z]{26}$`)

// cancels is the action of operations that only the cancelling of a batch starts, at once or
// later, again if one has left some of its jobs: the act is that of the batch.
const cancels = "cancel"

// Of is the act that an event tells of; is is false if it is none: nobody did it, or it is a part
// of a larger act. The jobs of an operation are in the list of the operation, which is the act. A
// preview is none: it changes nothing. What was previewed is an act once it is done.
func Of(e envelope.Event) (a Act, is bool) {
	who := e.Context.Actor
	if who == "" || access.Machine(who) {
		return a, false
	}

	var said struct {
		Reason, Why, Request, Action string
		DryRun                       bool
	}
	var after struct{ Correction string }
	_ = json.Unmarshal(e.Detail, &said) // a detail of another form says none of these
	_ = json.Unmarshal(e.After, &after)
	if said.DryRun || ownID.MatchString(said.Request) ||
		e.Type == "operation.started" && said.Action == cancels {
		return a, false
	}

	a.Reason = cmp.Or(said.Reason, said.Why, after.Correction)
	if a.Reason == "" && !slices.Contains(ofPeople, e.Subject.Type) &&
		!slices.Contains(ofPeople, e.Type) {
		return a, false
	}

	a.Event = envelope.Event{ID: e.ID, Subject: e.Subject, Version: e.Version, Type: e.Type, Action: e.Action,
		Time: e.Time, Outcome: e.Outcome, Parents: e.Parents, Properties: e.Properties,
		Context: envelope.Context{Actor: who, Component: e.Context.Component}}
	return a, true
}

// all is the partition of the list of all acts.
const all = "ACTS#all"

// mostWho bounds what a key has of who did something, in bytes.
const mostWho = 1000

// ofWho is the partition of the list of an actor. What follows the subject of a token in an actor,
// the name that the issuer knows, can change: it is not in the key.
func ofWho(actor string) string {
	who, _, _ := strings.Cut(actor, " (")
	return "ACTSOF#" + who[:min(len(who), mostWho)]
}

// keys are where the lists have an act. The sort key is {milliseconds since 1970, 13 digits}#{id},
// so that rows sort by time as text, and acts of one millisecond by their ids.
func (a Act) keys() (keys []table.Key) {
	for _, pk := range []string{all, ofWho(a.Event.Context.Actor)} {
		keys = append(keys, table.Key{PK: pk, SK: at(a.Event.Time) + "#" + a.Event.ID})
	}
	return keys
}

// at begins the sort keys of a time.
func at(ms int64) string { return fmt.Sprintf("%013d", ms) }

// Recorder keeps the lists: the consumer's handler.
type Recorder struct {
	Table *table.Table
	NewID func() string
}

// writers is how many acts are written at once.
const writers = 8

// Handle records the acts among events. An error, e.g. of the table, ends the whole batch: it is
// tried again, and rows that were written meanwhile stay as they are.
func (r Recorder) Handle(ctx context.Context, b consumer.Batch) ([]consumer.Failure, error) {
	g, calls := errgroup.WithContext(ctx)
	g.SetLimit(writers)
	for _, item := range b.Events {
		if a, is := Of(item.Event); is {
			g.Go(func() error { return r.record(calls, a) })
		}
	}
	return nil, g.Wait()
}

// record writes the rows of an act that are not there yet: a Stale is a success. A call that dies
// between them is made again.
func (r Recorder) record(ctx context.Context, a Act) error {
	text, err := json.Marshal(a.Event)
	if err != nil {
		return fmt.Errorf("acts: event %s: %w", a.Event.ID, err)
	}

	for _, k := range a.keys() {
		tx := r.Table.Begin(r.NewID())
		tx.Insert(&row{Head: table.Head{PK: k.PK, SK: k.SK}, Event: string(text), Reason: a.Reason})
		if err := tx.Commit(ctx); err != nil && !fault.Is(err, fault.Stale) {
			return err
		}
	}
	return nil
}

// Store reads the lists.
type Store struct{ Table *table.Table }

// Query selects acts: those of an actor, or of all for "". An actor can be given with or without
// the name that follows the subject of a token.
type Query struct {
	Actor  string
	Before int64 // only those before this time, in milliseconds since 1970; 0 = all
	Limit  int
	Cursor string // of the page before; "" = the first page
}

// Page lists acts, the newest first; next is "" at the end. It is one query. An act that is
// recorded late takes its place by its time, so a later page neither leaves out nor repeats
// another one.
func (s Store) Page(ctx context.Context, of Query) (acts []Act, next string, err error) {
	q := table.Query{PK: all, Desc: true, Limit: of.Limit, Cursor: of.Cursor}
	if of.Actor != "" {
		q.PK = ofWho(of.Actor)
	}
	if of.Before > 0 {
		q.From, q.To = "0", at(of.Before)
	}
	var rows []row
	next, err = s.Table.Page(ctx, q, &rows)
	if err != nil {
		return nil, "", err
	}

	for _, r := range rows {
		a := Act{Reason: r.Reason}
		if err := json.Unmarshal([]byte(r.Event), &a.Event); err != nil {
			return nil, "", fmt.Errorf("acts: %s: %w", r.Key(), err)
		}
		acts = append(acts, a)
	}
	return acts, next, nil
}
