package consumer

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"archivist/pkg/events/envelope"
	"archivist/pkg/kernel/definition"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/registry"
	"archivist/pkg/kernel/table"
)

// Log is what consumers read; package eventlog has it.
type Log interface {
	// Partitions lists all partitions, those of earlier generations included.
	Partitions(ctx context.Context) ([]envelope.Partition, error)

	// Partition reads one. One that has no events yet is a NotFound.
	Partition(ctx context.Context, name string) (envelope.Partition, error)

	// Read returns the facts of at most limit events whose seq is greater than after, in order.
	Read(ctx context.Context, partition string, after int64, limit int) ([]envelope.Event, error)

	// At returns the facts of the events at some places, without those that it cannot read at once.
	At(ctx context.Context, places []envelope.Place) (map[envelope.Place]envelope.Event, error)

	// Events returns the events with their payload, in the order of facts. Of the facts it uses
	// the subject, its version, and the place in the log. An event that is not kept is a NotFound.
	Events(ctx context.Context, facts []envelope.Event) ([]envelope.Event, error)
}

// Store keeps consumers: their definitions, their cursors, and what they have parked. Each change
// by a person is an event of the subject type Consumer; the same change again changes nothing. A
// Store has no state of its own, and can be used by several goroutines.
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

	// Shadows are the handlers that can build something else for a shadow; functions and queues
	// can.
	Shadows []string
}

// state of a consumer's row. A deleted one becomes active again when a consumer of its name is
// made.
type state string

const (
	active   state = "active"
	deleting state = "deleting" // its rows are being removed
	deleted  state = "deleted"  // the row keeps the number of its last event
)

// row is a consumer. All are in one partition, so that the relay reads them in one query. Every
// change is conditioned on its revision. Text is the definition as JSON. Times are milliseconds
// since 1970.
type row struct {
	table.Head

	// Number is that of its newest event; the next one has one more.
	Number  int64  `dynamo:"version"`
	Name    string `dynamo:"consumer_name"`
	State   state  `dynamo:"consumer_state"`
	Text    string `dynamo:"definition_json"`
	Created int64  `dynamo:"created_ms"`
	Changed int64  `dynamo:"changed_ms"`

	Requests registry.Requests `dynamo:"requests,omitempty"`

	// Resets are being made, in this order, and Rebuild is the replay that must end. While there is
	// one of either, it does not run.
	Resets  []reset `dynamo:"resets,omitempty"`
	Rebuild string  `dynamo:"rebuild_id,omitempty"`
}

// reset is a change of cursors that is being made. No run begins meanwhile. At is when it was asked
// for, in milliseconds since 1970.
type reset struct {
	ID        string `dynamo:"id"`
	Partition string `dynamo:"log_partition,omitempty"` // "": all
	To        string `dynamo:"target"`                  // as in Definition.Start
	At        int64  `dynamo:"at_ms"`
}

// rowPK is the partition of the table with the rows of all consumers.
const rowPK = "CONSUMERS"

func rowKey(name string) table.Key { return table.Key{PK: rowPK, SK: name} }

// consumer decodes the definition.
func (r *row) consumer() (Consumer, error) {
	c := Consumer{Created: r.Created, Changed: r.Changed, Rebuild: r.Rebuild, Resets: len(r.Resets)}
	if err := json.Unmarshal([]byte(r.Text), &c.Definition); err != nil {
		return c, fmt.Errorf("consumer: the definition of %s: %w", r.Name, err)
	}
	return c, nil
}

// set takes over a definition.
func (r *row) set(d Definition) error {
	text, err := json.Marshal(d)
	if err != nil {
		return err
	}
	r.Text = string(text)
	return nil
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

// Exists returns a NotFound if there is no consumer of that name.
func (s *Store) Exists(ctx context.Context, name string) error {
	_, err := s.Get(ctx, name)
	return err
}

// missing is the NotFound of a consumer that is not there.
func missing(name string) error {
	return fault.New(fault.NotFound, "there is no consumer %q", definition.Clip(name, 60))
}

// row reads a consumer's row, consistently; that of one that never was has the rev 0. A name that
// no consumer can have is a NotFound.
func (s *Store) row(ctx context.Context, name string) (row, error) {
	k := rowKey(name)
	r := row{Head: table.Head{PK: k.PK, SK: k.SK}, Name: name}
	if !definition.Names.MatchString(name) {
		return r, missing(name)
	}
	if err := s.Table.Get(ctx, k, &r); err != nil && !fault.Is(err, fault.NotFound) {
		return r, err
	}
	return r, nil
}

// List lists all consumers by name; there are at most about MaxConsumers, so it has no pages.
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
	return readAll[row](ctx, s.Table, table.Query{PK: rowPK})
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

// runnable reads a consumer that may run now; nil if it is missing, paused, being reset or being
// rebuilt. That is not an error: a wake-up can be older than what a person did.
func (s *Store) runnable(ctx context.Context, name string) (*Consumer, error) {
	r, err := s.row(ctx, name)
	if fault.Is(err, fault.NotFound) {
		return nil, nil
	}

	if err != nil {
		return nil, err
	}

	if r.State != active || len(r.Resets) > 0 || r.Rebuild != "" {
		return nil, nil
	}

	c, err := r.consumer()
	if err != nil || c.Paused {
		return nil, err
	}
	return &c, nil
}

// runs reports whether a consumer may run, as runnable does.
func (c *Consumer) runs() bool { return !c.Paused && c.Rebuild == "" && c.Resets == 0 }

// changeTries bounds how often a run notes what it has done although others change the same rows.
const changeTries = 5
