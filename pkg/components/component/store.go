package component

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"archivist/pkg/kernel/definition"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/table"
)

// Store keeps items, components and their lines. It can be used by several goroutines and
// processes: all that it keeps in memory is the definitions of an epoch.
type Store struct {
	Table *table.Table
	Now   func() time.Time
	NewID func() string

	// Functions are the names of the functions that a runnable may name, and Allowed the ARNs of
	// Lambda functions and of task definitions.
	Functions []string
	Allowed   []string

	// Wake starts a component that has a ready item, as soon as possible. A wake-up that is lost
	// costs time: the scheduler's tick starts it. nil: it always does.
	Wake func(ctx context.Context, component string) error

	// Metric, if it is set, counts what was found wrong and repaired, and items that are at the
	// limit of their chain of causes.
	Metric func(name string, value float64)

	// Log, if it is set, gets what was found wrong.
	Log *slog.Logger

	mu    sync.Mutex
	known *definitions
}

// definitions are those of all components, as of an epoch, sorted by name. They are shared, and not
// changed.
type definitions struct {
	epoch  int64
	spread bool
	all    []compiled
}

// of finds a component; a missing one is a NotFound.
func (d *definitions) of(component string) (*compiled, error) {
	for i := range d.all {
		if d.all[i].Name == component {
			return &d.all[i], nil
		}
	}
	return nil, missing(component)
}

// from is the first component whose name is not before a name; nil if there is none.
func (d *definitions) from(name string) *compiled {
	for i := range d.all {
		if d.all[i].Name >= name {
			return &d.all[i]
		}
	}
	return nil
}

// itemRow is the row of an item. Places are its places in the lines, by component: what a change
// has to take out of them. In the index "list" it is in its part, by its id.
type itemRow struct {
	table.Head
	Number int64 `dynamo:"version"` // of its own events, as in Item

	// Text is the Item as JSON, which is read into it.
	Text string `dynamo:"item_json"`

	// Epoch is that of the definitions by which the places were decided.
	Epoch  int64             `dynamo:"line_epoch"`
	Places map[string]string `dynamo:"places_in,omitempty"`

	// Requests are the newest of people, at most registry.MaxRequests.
	Requests []request `dynamo:"requests,omitempty"`

	it Item
}

// request is an action that was done: the same again has the same answer.
type request struct {
	ID string `dynamo:"id"`

	// Sum is of what was asked for (see sumOf).
	Sum     uint64 `dynamo:"asked_for"`
	Changed bool   `dynamo:"changed"`
	Summary string `dynamo:"summary"`
}

// placeIn is where the item is in a component's line. A place in the line of a deleted component of
// this name is not one.
func (r *itemRow) placeIn(c *compiled) string {
	if r.Epoch < c.born {
		return ""
	}
	return r.Places[c.Name]
}

func shelf(shard uint32) string { return fmt.Sprintf("ITEMS#%02d", shard) }

// row reads an item's row, consistently; that of an item that is not known has the rev 0. A damaged
// one is an Invalid.
func (s *Store) row(ctx context.Context, id string) (*itemRow, error) {
	k := itemSubject(id).Key()
	r := &itemRow{Head: table.Head{PK: k.PK, SK: k.SK, ListPK: shelf(shard(id)), ListSK: id}}
	err := s.Table.Get(ctx, k, r)
	if fault.Is(err, fault.NotFound) {
		r.it = Item{ID: id}
		return r, nil
	}

	if err != nil {
		return nil, err
	}

	if err := json.Unmarshal([]byte(r.Text), &r.it); err != nil {
		return nil, fault.New(fault.Invalid, "item %s: its row is damaged: %w", id, err)
	}
	return r, nil
}

// put puts a row that was read into tx; one that was not there has the rev 0.
func put(tx *table.Tx, row table.Row, rev int64) {
	if rev == 0 {
		tx.Insert(row)
	} else {
		tx.Save(row)
	}
}

// optional is nil for the error of a row that need not be there.
func optional(err error) error {
	if fault.Is(err, fault.NotFound) {
		return nil
	}
	return err
}

// lostRace is nil for the error of a change that another call was faster with.
func lostRace(err error) error {
	if fault.Is(err, fault.Stale) {
		return nil
	}
	return err
}

func missing(name string) error {
	return fault.New(fault.NotFound, "there is no component %q", definition.Clip(name, 60))
}

// changeTries bounds how often something is read or written again because another change was first.
const changeTries = 20
