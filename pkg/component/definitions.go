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

// headSK is the sort key of the registry's head. It sorts before all names.
const headSK = "#HEAD"

// head of the registry. Its epoch rises with each change after which items may be ready that were
// not, or the other way round. The row of an item has the epoch of the definitions by which its
// places were decided.
type head struct {
	table.Head
	Epoch int64 `dynamo:"line_epoch"`
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

	// The back-fill decides the places of all items again: up to which epoch, and how far it is.
	Fill       int64  `dynamo:"fill_epoch,omitempty"` // 0: it is done
	FillShard  int    `dynamo:"fill_shard,omitempty"`
	FillCursor string `dynamo:"fill_cursor,omitempty"`
	Filled     int64  `dynamo:"filled_n,omitempty"` // items that were looked at
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
// last.
func (s *Store) load(ctx context.Context) (*definitions, error) {
	var h head
	err := s.Table.Get(ctx, table.Key{PK: registry, SK: headSK}, &h)
	if fault.Is(err, fault.NotFound) {
		return &definitions{}, nil
	}
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	known := s.known
	s.mu.Unlock()
	if known != nil && known.epoch == h.Epoch {
		return known, nil
	}
	// The head is read first: definitions that are newer than it cost another try.
	next := &definitions{epoch: h.Epoch}
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
	s.mu.Lock()
	s.known = next
	s.mu.Unlock()
	return next, nil
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
	return compile(d)
}
