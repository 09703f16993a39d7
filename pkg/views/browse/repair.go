package browse

import (
	"context"
	"fmt"
	"slices"

	"archivist/pkg/kernel/table"
	"archivist/pkg/objects/inventory"
)

// listing is what the rows say of an object: the row that names its entries, and those of the entries that
// it has or should have and that are there, by their keys.
type listing struct {
	place
	rows map[table.Key]Entry
}

// read reads the entries that a row names, and those that there should be.
func (s Store) read(ctx context.Context, p place, should []Entry) (l listing, err error) {
	l = listing{place: p, rows: map[table.Key]Entry{}}
	var keys []table.Key
	for _, is := range l.Entries {
		keys = append(keys, is.table())
	}
	for _, e := range should {
		keys = append(keys, e.Key())
	}

	rows, err := s.Table.Many(ctx, keys)
	for k, raw := range rows {
		var e Entry
		if raw.Decode(&e) == nil && e.Key() == k {
			l.rows[k] = e
		}
	}
	return l, err
}

// Wrong is what is wrong with the entries of an object, "" if each list has what its row says, and nothing
// else of it. It compares with the row as it is given, so it is right only while that does not change. What
// Handle has not been called for yet is wrong, too.
func (s Store) Wrong(ctx context.Context, o *inventory.Object) (string, error) {
	should := entries(o)
	p, err := s.named(ctx, o.ARK)
	if err != nil {
		return "", err
	}

	is, err := s.read(ctx, p, should)
	if err != nil {
		return "", err
	}

	if len(is.Entries) != len(should) {
		return fmt.Sprintf("it is at %d places of the lists, and should be at %d", len(is.Entries), len(should)), nil
	}

	for i, e := range should {
		row, there := is.rows[e.Key()]
		switch {
		case is.Entries[i].table() != e.Key():
			return fmt.Sprintf("it is not where it should be in %s", e.PK), nil
		case !there:
			return fmt.Sprintf("its entry in %s is missing", e.PK), nil
		case row.Owner != e.Owner || row.Value != e.Value:
			return fmt.Sprintf("its entry in %s is that of %s, listed by %q", e.PK, row.Owner, row.Value), nil
		}
	}
	return "", nil
}

// Repair makes the entries of an object those of its row now, whatever the row that names them says. A Stale
// means that another has changed them meanwhile. As for an update, what is listed is read before the object.
func (s Store) Repair(ctx context.Context, ark string) error {
	p, err := s.named(ctx, ark)
	if err != nil {
		return err
	}

	should, err := s.should(ctx, ark)
	if err != nil {
		return err
	}

	is, err := s.read(ctx, p, should)
	if err != nil {
		return err
	}

	tx := s.Table.Begin(s.NewID())
	var keys []key
	for _, e := range should {
		keys = append(keys, keyOf(e))
		row, there := is.rows[e.Key()]
		if !there || row.Owner != e.Owner || row.Value != e.Value {
			e.Rev = row.Rev
			tx.InsertOrSave(&e)
		}
	}

	for _, named := range is.Entries {
		row, there := is.rows[named.table()]
		if there && row.Owner == ark && !slices.Contains(keys, named) {
			tx.Remove(&row)
		}
	}

	is.Entries = keys
	switch {
	case len(keys) > 0:
		tx.InsertOrSave(&is.place)
	case is.Rev > 0:
		tx.Remove(&is.place)
	default:
		return nil // there is no such object, and nothing names entries of it
	}
	return tx.Commit(ctx)
}
