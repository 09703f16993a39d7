package consumer

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"archivist/pkg/definition"
	"archivist/pkg/envelope"
	"archivist/pkg/event"
	"archivist/pkg/fault"
	"archivist/pkg/filter"
	"archivist/pkg/table"
)

// MaxConsumers is how many there can be: the filters of all are evaluated for every event.
const MaxConsumers = 200

// maxReason is how long the reason of a change may be, in characters.
const maxReason = 500

// Store keeps consumers: their definitions, their cursors, and what they have parked. Each
// change by a person is an event of the subject type Consumer; the same change again changes
// nothing.
type Store struct {
	Table *table.Table
	Log   Log
	Now   func() time.Time
	NewID func() string

	// Handlers are the names of the handlers that a target may name, and Targets the ARNs of
	// functions and URLs of queues.
	Handlers []string
	Targets  []string

	// Files lists the files of a version, for filters that name File.
	Files envelope.Lister

	// Shadows are the handlers that can build something else for a shadow; functions and queues can.
	Shadows []string
}

// By says who makes a change, and why.
type By struct {
	Actor  string
	Reason string // required, except by Apply

	// Request is the id of the request, "" for none: the same request again changes nothing.
	Request string
}

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

// maxRequests is how many requests a consumer's row remembers.
const maxRequests = 20

// state of a consumer's row.
type state string

const (
	active   state = "active"
	deleting state = "deleting" // its rows are being removed
	deleted  state = "deleted"  // the row keeps the number of its last event
)

// row is a consumer. All are in one partition, so that the relay reads them in one query.
type row struct {
	table.Head
	Number  int64  `dynamo:"version"` // of its newest event
	Name    string `dynamo:"consumer_name"`
	State   state  `dynamo:"consumer_state"`
	Text    string `dynamo:"definition_json"`
	Created int64  `dynamo:"created_ms"`
	Changed int64  `dynamo:"changed_ms"`

	Requests []string `dynamo:"requests,omitempty"`   // the newest that changed something
	Resets   []reset  `dynamo:"resets,omitempty"`     // that are being made
	Rebuild  string   `dynamo:"rebuild_id,omitempty"` // the replay that must end before it runs
}

const registry = "CONSUMERS"

func rowKey(name string) table.Key { return table.Key{PK: registry, SK: name} }

// own is the partition of a consumer's cursors and events.
func own(name string) string { return subject(name).Key().PK }

func subject(name string) event.Subject { return event.Subject{Type: event.Consumer, ID: name} }

// consumer decodes the definition.
func (r *row) consumer() (Consumer, error) {
	c := Consumer{Created: r.Created, Changed: r.Changed, Rebuild: r.Rebuild, Resets: len(r.Resets)}
	if err := json.Unmarshal([]byte(r.Text), &c.Definition); err != nil {
		return c, fmt.Errorf("consumer: the definition of %s: %w", r.Name, err)
	}
	return c, nil
}

func (r *row) set(d Definition) error {
	text, err := json.Marshal(d)
	r.Text = string(text)
	return err
}

// Get reads a consumer. A missing one is a NotFound.
func (s *Store) Get(ctx context.Context, name string) (Consumer, error) {
	r, err := s.row(ctx, name)
	if err != nil {
		return Consumer{}, err
	}
	if r.State != active {
		return Consumer{}, missing(name)
	}
	return r.consumer()
}

func missing(name string) error {
	return fault.New(fault.NotFound, "there is no consumer %q", definition.Clip(name, 60))
}

// row reads a consumer's row; that of one that never was has the rev 0.
func (s *Store) row(ctx context.Context, name string) (row, error) {
	k := rowKey(name)
	r := row{Head: table.Head{PK: k.PK, SK: k.SK}, Name: name}
	if !definition.Names.MatchString(name) {
		return r, missing(name)
	}
	err := s.Table.Get(ctx, k, &r)
	if fault.Is(err, fault.NotFound) {
		err = nil
	}
	return r, err
}

// List lists all consumers by name.
func (s *Store) List(ctx context.Context) ([]Consumer, error) {
	rows, err := s.rows(ctx)
	if err != nil {
		return nil, err
	}
	var list []Consumer
	for i := range rows {
		if rows[i].State != active {
			continue
		}
		c, err := rows[i].consumer()
		if err != nil {
			return nil, err
		}
		list = append(list, c)
	}
	return list, nil
}

// rows reads the rows of all consumers, deleted ones included.
func (s *Store) rows(ctx context.Context) (all []row, err error) {
	return readAll[row](ctx, s.Table, table.Query{PK: registry})
}

// readAll reads all rows of a query, whose number is bounded by what writes them.
func readAll[R any](ctx context.Context, t *table.Table, q table.Query) (all []R, err error) {
	for {
		var page []R
		if q.Cursor, err = t.Page(ctx, q, &page); err != nil {
			return nil, err
		}
		all = append(all, page...)
		if q.Cursor == "" {
			return all, nil
		}
	}
}

// Apply makes a consumer, or changes its definition; the same definition again changes
// nothing. What it accepts can run: the filter compiles, and the target is one of those that
// are permitted. A definition's Start and Paused hold for a new consumer only. The same request
// again returns the consumer as it is.
func (s *Store) Apply(ctx context.Context, d Definition, by By) (Consumer, error) {
	if err := s.check(&d); err != nil {
		return Consumer{}, err
	}
	for range changeTries {
		r, err := s.row(ctx, d.Name)
		if err != nil {
			return Consumer{}, err
		}
		c, err := s.apply(ctx, r, d, by)
		if !fault.Is(err, fault.Stale) {
			return c, err
		}
	}
	return Consumer{}, busy(d.Name)
}

// changeTries bounds how often a change is decided again because another was first.
const changeTries = 5

func busy(name string) error {
	return fault.New(fault.Unavailable, "consumer %s keeps changing; try again in a moment", name)
}

// apply makes one try of Apply.
func (s *Store) apply(ctx context.Context, r row, d Definition, by By) (Consumer, error) {
	repeated := by.Request != "" && slices.Contains(r.Requests, by.Request)
	switch {
	case repeated && r.State == active: // others may have changed it meanwhile
		return r.consumer()
	case repeated:
		return Consumer{}, fault.New(fault.Conflict, "this request was done before, and consumer %s was deleted "+
			"since; send a new request to create it again", r.Name)
	case r.State == deleting:
		return Consumer{}, fault.New(fault.Conflict, "consumer %s is being deleted; try again in a moment", r.Name)
	case r.State == active:
		return s.redefine(ctx, r, d, by)
	}
	if err := s.room(ctx); err != nil {
		return Consumer{}, err
	}
	now := s.Now().UnixMilli()
	if err := s.placeCursors(ctx, d, now); err != nil {
		return Consumer{}, err
	}
	r.State, r.Created, r.Changed = active, now, now
	r.Resets, r.Rebuild = nil, "" // of a deleted one
	d.Version = 1
	if r.Text != "" { // a deleted one of this name was before
		old, err := r.consumer()
		if err != nil {
			return Consumer{}, err
		}
		d.Version = old.Version + 1
	}
	return s.save(ctx, r, d, "consumer.created", by)
}

// redefine changes the definition of a consumer.
func (s *Store) redefine(ctx context.Context, r row, d Definition, by By) (Consumer, error) {
	old, err := r.consumer()
	if err != nil {
		return old, err
	}
	d.Version, d.Paused = old.Version, old.Paused
	if same(d, old.Definition) {
		return old, nil
	}
	if d.Order != old.Order {
		if err := s.mayReorder(ctx, old); err != nil {
			return old, err
		}
	}
	d.Version++
	r.Changed = s.Now().UnixMilli()
	return s.save(ctx, r, d, "consumer.changed", by)
}

func same(a, b Definition) bool {
	x, _ := json.Marshal(a)
	y, _ := json.Marshal(b)
	return string(x) == string(y)
}

// mayReorder refuses another order key while events wait under the present one.
func (s *Store) mayReorder(ctx context.Context, c Consumer) error {
	cursors, err := s.cursors(ctx, c.Name)
	if err != nil {
		return err
	}
	for _, cur := range cursors {
		if n := cur.Parked + cur.Pending; n > 0 {
			return fault.New(fault.Conflict, "order: %d events of consumer %s are parked or wait in the partition %s "+
				"under the order key %s; redrive or discard them first", n, c.Name, cur.partition(), c.Order)
		}
	}
	return nil
}

// room refuses one consumer too many.
func (s *Store) room(ctx context.Context) error {
	list, err := s.List(ctx)
	if err == nil && len(list) >= MaxConsumers {
		err = fault.New(fault.Conflict, "there are %d consumers, and can be no more; delete one first", len(list))
	}
	return err
}

// change is the detail of a consumer's event.
type change struct {
	Reason     string      `json:"reason,omitempty"`
	Definition *Definition `json:"definition,omitempty"`
	Partition  string      `json:"partition,omitempty"`
	To         string      `json:"to,omitempty"`        // of a reset or skip
	Selection  string      `json:"selection,omitempty"` // of parked events
	Replay     string      `json:"replay,omitempty"`    // the id of one
	Into       string      `json:"into,omitempty"`
	Range      *Range      `json:"range,omitempty"`
	Failed     int64       `json:"failed,omitempty"` // of the events of a replay
}

// save writes a consumer's row with its definition and the event.
func (s *Store) save(ctx context.Context, r row, d Definition, eventType string, by By) (Consumer, error) {
	if err := r.set(d); err != nil {
		return Consumer{}, err
	}
	tx := s.Table.Begin(s.NewID())
	if err := s.put(tx, &r, eventType, by, change{Definition: &d}); err != nil {
		return Consumer{}, err
	}
	if err := tx.Commit(ctx); err != nil {
		return Consumer{}, err
	}
	return r.consumer()
}

// put puts a consumer's row into tx, with its next event.
func (s *Store) put(tx *table.Tx, r *row, eventType string, by By, detail change) error {
	detail.Reason = strings.TrimSpace(by.Reason)
	r.Number++
	if by.Request != "" {
		r.Requests = append(r.Requests, by.Request)
		r.Requests = slices.Clone(r.Requests[max(0, len(r.Requests)-maxRequests):])
	}
	tx.InsertOrSave(r)
	return event.Append(tx, subject(r.Name), r.Number, event.New{Type: eventType, Time: s.Now().UnixMilli(),
		Actor: by.Actor, Component: "consumers", Detail: detail, Identifiers: []string{r.Name}})
}

// check is all that is checked of a definition before it is accepted.
func (s *Store) check(d *Definition) error {
	if err := d.Check(); err != nil {
		return err
	}
	if err := checkFilter(d.Filter); err != nil {
		return err
	}
	switch t := d.Target; {
	case t.Handler != "" && !slices.Contains(s.Handlers, t.Handler):
		return fault.New(fault.Invalid, "target.handler: there is no handler %q; there are: %s",
			definition.Clip(t.Handler, 60),
			strings.Join(s.Handlers, ", "))
	case t.Handler == "" && !slices.Contains(s.Targets, t.Lambda+t.Queue):
		return fault.New(fault.Invalid, "target: %q is not among the consumerTargets of this deployment; add it there "+
			"and deploy, so that the permission to call it is granted", definition.Clip(t.Lambda+t.Queue, 200))
	}
	return nil
}

// checkFilter refuses a filter that does not compile, if it is not empty.
func checkFilter(text string) error {
	if text == "" {
		return nil
	}
	if _, err := filter.Compile(text); err != nil {
		return fault.New(fault.Invalid, "%w", err)
	}
	return nil
}

// checkReason refuses a change without a reason.
func (b By) checkReason() error {
	switch n := len([]rune(strings.TrimSpace(b.Reason))); {
	case n == 0:
		return fault.New(fault.Invalid, "reason: empty; say why, others will read it")
	case n > maxReason:
		return fault.New(fault.Invalid, "reason: %d characters; at most %d are accepted", n, maxReason)
	}
	return nil
}
