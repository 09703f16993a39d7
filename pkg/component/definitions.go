package component

import (
	"context"
	"encoding/json"
	"fmt"

	"archivist/pkg/fault"
	"archivist/pkg/table"
)

// registry is the partition of the definitions.
const registry = "COMPONENTS"

// Sort keys of the registry's own rows. They sort before all names.
const (
	headSK = "#HEAD"
	fillSK = "#FILL"
)

// head of the registry. Its epoch rises with each change of a definition. The row of an item has the
// epoch of the definitions by which its places were decided.
type head struct {
	table.Head
	Epoch int64 `dynamo:"line_epoch"`
}

// fillRow is the back-fill: all items that were decided by definitions before the epoch Want are
// decided again. A change after which other items may be ready opens it.
type fillRow struct {
	table.Head
	Want    int64    `dynamo:"fill_epoch"`
	Done    int64    `dynamo:"filled_epoch"`           // all items were decided by this epoch, or a later one
	Since   int64    `dynamo:"opened_ms"`              // milliseconds since 1970
	Cursors []string `dynamo:"fill_cursors,omitempty"` // in each part of the list of items; atEnd: it is done
	Looked  int64    `dynamo:"looked_n"`               // items
	Failed  int64    `dynamo:"failed_n"`               // items that could not be decided
}

// state of a component's row.
type state string

const (
	active   state = "active"
	deleting state = "deleting" // its line is being removed
	deleted  state = "deleted"  // the row keeps the number of its last event
)

// definitionRow is a component.
type definitionRow struct {
	table.Head
	Number  int64  `dynamo:"version"` // of its newest event
	Name    string `dynamo:"component_name"`
	State   state  `dynamo:"component_state"`
	Text    string `dynamo:"definition_json"`
	Created int64  `dynamo:"created_ms"`
	Changed int64  `dynamo:"changed_ms"`

	Requests []string `dynamo:"requests,omitempty"` // the newest that changed something

	// Born is the epoch in which the component was made: places that were decided before are those of
	// a deleted component of this name. Fill is the epoch of the newest change that opened a back-fill.
	Born int64 `dynamo:"born_epoch"`
	Fill int64 `dynamo:"fill_epoch"`
}

func definitionKey(name string) table.Key { return table.Key{PK: registry, SK: name} }

// definitions are those of all components, as of an epoch.
type definitions struct {
	epoch int64
	all   []compiled
}

func (d *definitions) of(component string) (*compiled, error) {
	for i := range d.all {
		if d.all[i].Name == component {
			return &d.all[i], nil
		}
	}
	return nil, missing(component)
}

// load reads the definitions of all components, if they are not those of the epoch that was read
// last. They are those of one epoch: no change is half in them.
func (s *Store) load(ctx context.Context) (*definitions, error) {
	for range changeTries {
		h, err := s.head(ctx)
		if err != nil {
			return nil, err
		}
		s.mu.Lock()
		known := s.known
		s.mu.Unlock()
		if known != nil && known.epoch == h.Epoch {
			return known, nil
		}
		next, err := s.loadEpoch(ctx, h.Epoch)
		if err != nil || next != nil {
			return next, err
		}
	}
	return nil, fault.New(fault.Unavailable, "the definitions of components keep changing; try again in a moment")
}

// loadEpoch reads the definitions of an epoch; nil if they were changed meanwhile.
func (s *Store) loadEpoch(ctx context.Context, epoch int64) (*definitions, error) {
	next := &definitions{epoch: epoch}
	rows, err := s.definitionRows(ctx)
	if err != nil {
		return nil, err
	}
	for i := range rows {
		if rows[i].State != active {
			continue
		}
		c, err := rows[i].compiled()
		if err != nil {
			return nil, err
		}
		next.all = append(next.all, c)
	}
	h, err := s.head(ctx)
	if err != nil || h.Epoch != epoch {
		return nil, err
	}
	s.mu.Lock()
	s.known = next
	s.mu.Unlock()
	return next, nil
}

// head reads the registry's head; that of a registry without components has the rev 0.
func (s *Store) head(ctx context.Context) (head, error) {
	h := head{Head: table.Head{PK: registry, SK: headSK}}
	return h, optional(s.Table.Get(ctx, h.Key(), &h))
}

// filling reads the state of the back-fill.
func (s *Store) filling(ctx context.Context) (fillRow, error) {
	f := fillRow{Head: table.Head{PK: registry, SK: fillSK}}
	return f, optional(s.Table.Get(ctx, f.Key(), &f))
}

// optional is nil for the error of a row that need not be there.
func optional(err error) error {
	if fault.Is(err, fault.NotFound) {
		return nil
	}
	return err
}

// definitionRows reads the rows of all components, deleted ones included.
func (s *Store) definitionRows(ctx context.Context) (all []definitionRow, err error) {
	q := table.Query{PK: registry, From: "a", To: "~"}
	for {
		var page []definitionRow
		if q.Cursor, err = s.Table.Page(ctx, q, &page); err != nil {
			return nil, err
		}
		all = append(all, page...)
		if q.Cursor == "" {
			return all, nil
		}
	}
}

// definition decodes the definition.
func (r *definitionRow) definition() (d Definition, err error) {
	if err := json.Unmarshal([]byte(r.Text), &d); err != nil {
		return d, fmt.Errorf("component: the definition of %s: %w", r.Name, err)
	}
	return d, nil
}

func (r *definitionRow) compiled() (compiled, error) {
	d, err := r.definition()
	if err != nil {
		return compiled{}, err
	}
	c, err := compile(d)
	c.born, c.filled = r.Born, r.Fill
	return c, err
}
