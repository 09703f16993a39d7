package browse

import (
	"context"
	"slices"
	"strings"

	"archivist/pkg/events/check"
	"archivist/pkg/events/consumer"
	"archivist/pkg/events/event"
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
