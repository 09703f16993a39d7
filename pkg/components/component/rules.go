package component

import (
	"context"
	"fmt"
	"strings"

	"archivist/pkg/events/check"
	"archivist/pkg/events/consumer"
	"archivist/pkg/events/envelope"
	"archivist/pkg/events/event"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/objects/inventory"
)

// Rules are the rules of components: of their items, and of their lines.
func Rules(pg *check.Page, consumers *consumer.Checked) check.Rules {
	s := &Store{Table: pg.Table, Now: pg.Now, NewID: pg.NewID}
	return check.Rules{Kinds: []check.Kind{
		{PK: "COMPONENTS", SK: "#HEAD", Rule: s.checkEpochs},
		{PK: "COMPONENTS"},
		{PK: "COMPONENTEPOCH", SK: "EPOCH"},
		{PK: "COMPONENTITEM", SK: "COMPONENTITEM", Rule: s.checkItem},
		{PK: "LINE", Rule: s.checkPlace},
		{PK: "COMPONENTRUNS"},
		{PK: "RUN", Expires: true},
		check.Subjects(event.Object, func(ctx context.Context, x *check.Row) error {
			return s.checkObject(ctx, x, consumers)
		}),
	}}
}

// checkItem checks the history of an item, and that it is at the places in the lines of components that follow from
// its events and the definitions of components alone: the events are folded anew, and compared.
func (s *Store) checkItem(ctx context.Context, x *check.Row) error {
	x.Subject = x.ID()
	err := x.Numbered(ctx, event.Item)
	if err != nil {
		return err
	}

	row, err := s.row(ctx, x.Subject)
	if err != nil {
		return err
	}

	wrong, err := s.wrongPlaces(ctx, row)
	if len(wrong) > 0 {
		x.Add("item-place", "", func(ctx context.Context) error {
			var out Reconciled
			err := s.repair(ctx, row.it.ID, &out)
			s.repaired(&out)
			return err
		}, "%s", strings.Join(wrong, "; "))
	}
	return err
}

// wrongPlaces says what is wrong with an item's places in the lines.
func (s *Store) wrongPlaces(ctx context.Context, row *itemRow) ([]string, error) {
	defs, err := s.load(ctx)
	if err != nil {
		return nil, err
	}

	fill, err := s.backfillState(ctx)
	if err != nil {
		return nil, err
	}

	all := row.misplaced(defs, &fill)
	for i := range defs.all {
		d := &defs.all[i]
		is := row.placeIn(d)
		if !stands(is) {
			continue
		}

		var there placeRow
		if err := optional(s.Table.Get(ctx, placeKey(d.Name, is), &there)); err != nil {
			return nil, err
		}

		if there.Rev == 0 {
			all = append(all, fmt.Sprintf("the row %s is missing", placeKey(d.Name, is)))
		}
	}
	return all, nil
}

// checkObject checks that an object has an item that knows its events, once they are passed on: components never find
// an item that does not exist, nor one that does not know what has happened.
func (s *Store) checkObject(ctx context.Context, x *check.Row, consumers *consumer.Checked) error {
	var o inventory.Object
	if !x.Into(&o) {
		return nil
	}

	passed, err := consumers.PassedNewest(ctx, x, FollowerName, event.Subject{Type: event.Object, ID: o.ARK}, o.Number)
	if err != nil || !passed {
		return err
	}

	id := IDOf(envelope.Ref{Type: event.Object.String(), ID: o.ARK})
	row, err := s.row(ctx, id)
	if err != nil {
		return ignoreDamaged(err) // the check of the item says so
	}

	x.Subject = o.ARK
	sync := func(ctx context.Context) error {
		_, err := s.Sync(ctx, id)
		return err
	}
	switch {
	case row.Rev == 0:
		x.Add("item-object", "", sync, "there is no item %s", id)
	case row.it.Applied < o.Number:
		x.Add("item-object", "", sync, "the item %s knows %d of %d events", id, row.it.Applied, o.Number)
	}
	return nil
}

// checkEpochs checks the copies of the epoch of the definitions. Without its own no new item of a part could be made.
func (s *Store) checkEpochs(ctx context.Context, x *check.Row) error {
	h, err := s.head(ctx)
	if err != nil || !h.Spread {
		return err
	}

	rows, err := s.epochs(ctx)
	var parts []string
	for part := range uint32(shards) {
		if rows[epochKey(part)].Epoch != h.Epoch {
			parts = append(parts, fmt.Sprint(part))
		}
	}

	if err == nil && parts != nil {
		x.Add("component-epoch", "", s.repairEpochs,
			"the epoch is %d, and its copies for the parts %s of the items are not", h.Epoch, strings.Join(parts, ", "))
	}
	return err
}

// repairEpochs makes all copies of the epoch of the definitions what it is. A Stale means that a definition was
// changed meanwhile.
func (s *Store) repairEpochs(ctx context.Context) error {
	h, err := s.head(ctx)
	if err != nil {
		return err
	}

	tx := s.Table.Begin(s.NewID())
	if err := s.spread(ctx, tx, &h); err != nil {
		return err
	}
	tx.InsertOrSave(&h)
	return tx.Commit(ctx)
}

// checkPlace checks that a row of a component's line is where its item is. checkItem looks
// from the item to its rows in lines; this finds rows that no item has any more. To remove
// one takes no work away: an item that is due has its row, or checkItem says so.
func (s *Store) checkPlace(ctx context.Context, x *check.Row) error {
	name := x.ID()
	r, err := s.definitionRow(ctx, name)
	switch {
	case err != nil:
		return err
	case r.State == deleting:
		return nil // it is being removed
	case r.State != active:
		x.Add("line-row", "", x.Removing(), "there is no component %s", name)
		return nil
	case classOf(x.SK) == "count":
		return nil
	}

	c, err := r.compiled()
	if err != nil {
		return err
	}

	item := placed(x.SK).Item
	row, err := s.row(ctx, item)
	if err == nil && row.placeIn(&c) != x.SK {
		x.Add("line-row", "", x.Removing(), "its item %s is not at this place", item)
	}
	return err
}

// ignoreDamaged is nil for the error of a row that cannot be read.
func ignoreDamaged(err error) error {
	if fault.Is(err, fault.Invalid) {
		return nil
	}
	return err
}
