package browse

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"archivist/pkg/events/check"
	"archivist/pkg/events/consumer"
	"archivist/pkg/events/event"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/table"
	"archivist/pkg/objects/inventory"
)

// Rules are the rules of lists: their rows follow from the objects alone, so they can be made again at any time.
func Rules(pg *check.Page, consumers *consumer.Checked) check.Rules {
	s := Store{Table: pg.Table, NewID: pg.NewID}
	return check.Rules{Kinds: []check.Kind{
		check.Subjects(event.Object, func(ctx context.Context, x *check.Row) error {
			return s.checkObject(ctx, x, consumers)
		}),
		{PK: "OBJECT", SK: "BROWSE"},
		{PK: "BROWSE", Rule: checkEntry, Needs: placeOf},
	}}
}

// checkObject checks that an object is listed as its row says, once the consumer that keeps the lists has passed its
// newest event.
func (s Store) checkObject(ctx context.Context, x *check.Row, consumers *consumer.Checked) error {
	var o inventory.Object
	if !x.Into(&o) {
		return nil
	}

	of := event.Subject{Type: event.Object, ID: o.ARK}
	passed, err := consumers.PassedNewest(ctx, x, Name, of, o.Number)
	if err != nil || !passed {
		return err
	}

	wrong, err := s.Wrong(ctx, &o)
	if wrong != "" {
		x.Subject = o.ARK
		x.Add("browse-entry", "", func(ctx context.Context) error { return s.Repair(ctx, o.ARK) }, "%s", wrong)
	}
	return err
}

// placeOf is the key of the row that should name an entry, if the row is an entry at all.
func placeOf(entry table.Raw) []table.Key {
	var e Entry
	if entry.Decode(&e) != nil || e.Owner == "" {
		return nil
	}
	return []table.Key{placeKey(e.Owner)}
}

// checkEntry checks that the object of an entry of a list has it there: else the object would be listed by
// what it is not any more.
func checkEntry(ctx context.Context, x *check.Row) error {
	keys := placeOf(x.Raw)
	if len(keys) == 0 {
		return nil // its object lacks it then
	}

	names := func(p *place) bool {
		return slices.ContainsFunc(p.Entries, func(k key) bool { return k.table() == x.Key })
	}

	var p place
	if x.Paired(keys[0], &p) && names(&p) {
		return nil
	}

	p = place{}
	_, err := x.Read(ctx, keys[0], &p)
	if err != nil || names(&p) {
		return err
	}

	_, x.Subject, _ = strings.Cut(keys[0].PK, "#")
	x.Add("browse-surplus", "", x.Removing(), "the entry %s is not one of its object", x.Key)
	return nil
}

// listing is what the rows say of an object: the row that names its entries, and those of the entries that
// it has or should have and that are there, by their keys.
type listing struct {
	place
	rows map[table.Key]Entry
}

// named reads the row that names an object's entries; one that is missing has the rev 0.
func (s Store) named(ctx context.Context, ark string) (place, error) {
	k := placeKey(ark)
	p := place{Head: table.Head{PK: k.PK, SK: k.SK}}
	err := s.Table.Get(ctx, k, &p)
	if fault.Is(err, fault.NotFound) {
		err = nil
	}
	return p, err
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
