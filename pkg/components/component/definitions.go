package component

import (
	"context"
	"encoding/json"
	"fmt"

	"archivist/pkg/kernel/definition"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/registry"
	"archivist/pkg/kernel/table"
)

// rowPK is the partition of the definitions.
const rowPK = "COMPONENTS"

// Sort keys of the registry's own rows. They sort before all names.
const (
	headSK     = "#HEAD"
	backfillSK = "#FILL"
)

// head of the registry. Its epoch rises with each change of a definition. The row of an item has
// the epoch of the definitions by which its places were decided. It is small, and read before each
// change of an item: if the epoch is that of the definitions in memory, these need not be read.
type head struct {
	table.Head
	Epoch int64 `dynamo:"line_epoch"`
	// Spread: there is a copy of the epoch for each part of the items (epochKey). Each new item requires its
	// part's: one row could not take the requests of all, and they would conflict. A registry of an earlier
	// release has none until a definition is changed.
	Spread bool `dynamo:"spread,omitempty"`
}

// epochRow is the epoch of the registry's head once more.
type epochRow struct {
	table.Head
	Epoch int64 `dynamo:"line_epoch"`
}

// epochKey is the key of a copy of the epoch. Each has a partition of its own.
func epochKey(part uint32) table.Key {
	return table.Key{PK: fmt.Sprintf("COMPONENTEPOCH#%d", part), SK: "EPOCH"}
}

// epochs reads the copies of the epoch, by their keys; those that cannot be read are left out.
func (s *Store) epochs(ctx context.Context) (map[table.Key]epochRow, error) {
	var keys []table.Key
	for part := range uint32(shards) {
		keys = append(keys, epochKey(part))
	}

	raw, err := s.Table.Many(ctx, keys)
	rows := map[table.Key]epochRow{}
	for k, one := range raw {
		var r epochRow
		if one.Decode(&r) == nil {
			rows[k] = r
		}
	}
	return rows, err
}

// spread puts the epoch of the head into all copies.
func (s *Store) spread(ctx context.Context, tx *table.Tx, h *head) error {
	rows, err := s.epochs(ctx)
	if err != nil {
		return err
	}

	for part := range uint32(shards) {
		k := epochKey(part)
		r := rows[k]
		r.PK, r.SK, r.Epoch = k.PK, k.SK, h.Epoch
		tx.InsertOrSave(&r)
	}
	h.Spread = true
	return nil
}

// backfillRow is the back-fill: all items that were decided by definitions before the epoch Want are
// decided again. A change after which other items may be ready opens it. It is at work while Done
// is below Want.
type backfillRow struct {
	table.Head
	Want int64 `dynamo:"fill_epoch"`

	// Done: all items were decided by this epoch, or a later one.
	Done  int64 `dynamo:"filled_epoch"`
	Since int64 `dynamo:"opened_ms"` // milliseconds since 1970

	// Cursors are those in each part of the list of items; atEnd: it is done.
	Cursors []string `dynamo:"fill_cursors,omitempty"`
	Looked  int64    `dynamo:"looked_n"` // items
	Failed  int64    `dynamo:"failed_n"` // items that could not be decided
}

// atEnd is the cursor of a part of the list of items that is done.
const atEnd = "end"

// parts is how many parts of the list of items are done, of shards.
func (f *backfillRow) parts() (n int) {
	for _, c := range f.Cursors {
		if c == atEnd {
			n++
		}
	}
	return n
}

// state of a component's row.
type state string

const (
	active   state = "active"
	deleting state = "deleting" // its line is being removed
	deleted  state = "deleted"  // the row keeps the number of its last event
)

// definitionRow is a component. It stays when the component is deleted, with the number of its last
// event. Times are milliseconds since 1970.
type definitionRow struct {
	table.Head
	Number  int64  `dynamo:"version"` // of its newest event
	Name    string `dynamo:"component_name"`
	State   state  `dynamo:"component_state"`
	Text    string `dynamo:"definition_json"`
	Created int64  `dynamo:"created_ms"`
	Changed int64  `dynamo:"changed_ms"`

	Requests registry.Requests `dynamo:"requests,omitempty"`

	// Born is the epoch in which the component was made: places that were decided before are those
	// of a deleted component of this name. BackfillEpoch is the epoch of the newest change that opened a
	// back-fill.
	Born          int64 `dynamo:"born_epoch"`
	BackfillEpoch int64 `dynamo:"fill_epoch"`
}

func definitionKey(name string) table.Key { return table.Key{PK: rowPK, SK: name} }

// load reads the definitions of all components, if they are not those of the epoch that was read
// last. They are those of one epoch: no change is half in them. They are shared, and must not be
// changed. An Unavailable means that they keep changing.
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

		next, err := s.loadEpoch(ctx, h)
		if err != nil || next != nil {
			return next, err
		}
	}
	return nil, fault.New(fault.Unavailable,
		"the definitions of components keep changing; try again in a moment")
}

// loadEpoch reads the definitions of a head's epoch; nil if they were changed meanwhile: the head is read
// again after the rows.
func (s *Store) loadEpoch(ctx context.Context, h head) (*definitions, error) {
	next := &definitions{epoch: h.Epoch, spread: h.Spread}
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

	now, err := s.head(ctx)
	if err != nil || now.Epoch != h.Epoch {
		return nil, err
	}

	s.mu.Lock()
	s.known = next
	s.mu.Unlock()
	return next, nil
}

// head reads the registry's head; that of a registry without components has the rev 0.
func (s *Store) head(ctx context.Context) (head, error) {
	h := head{Head: table.Head{PK: rowPK, SK: headSK}}
	if err := optional(s.Table.Get(ctx, h.Key(), &h)); err != nil {
		return h, err
	}
	return h, nil
}

// backfillState reads the state of the back-fill; that of a registry without components has the rev 0,
// and nothing to do.
func (s *Store) backfillState(ctx context.Context) (backfillRow, error) {
	f := backfillRow{Head: table.Head{PK: rowPK, SK: backfillSK}}
	if err := optional(s.Table.Get(ctx, f.Key(), &f)); err != nil {
		return f, err
	}
	return f, nil
}

// definitionRows reads the rows of all components, deleted ones included.
func (s *Store) definitionRows(ctx context.Context) (all []definitionRow, err error) {
	q := table.Query{PK: rowPK, From: "a", To: "~"}
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

// compiled is the definition with what items are judged by. One that was stored compiles, so an
// error is damage.
func (r *definitionRow) compiled() (compiled, error) {
	d, err := r.definition()
	if err != nil {
		return compiled{}, err
	}
	c, err := compile(d)
	if err != nil {
		return compiled{}, err
	}
	c.born, c.backfilled = r.Born, r.BackfillEpoch
	return c, nil
}

// definitionRow reads the row of a component; that of one that never was has the rev 0.
func (s *Store) definitionRow(ctx context.Context, name string) (definitionRow, error) {
	k := definitionKey(name)
	r := definitionRow{Head: table.Head{PK: k.PK, SK: k.SK}, Name: name}
	if !definition.Names.MatchString(name) {
		return r, missing(name)
	}
	if err := optional(s.Table.Get(ctx, k, &r)); err != nil {
		return r, err
	}
	return r, nil
}
