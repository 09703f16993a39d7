package component

import "context"

// sift removes those rows of a line that are not where their items are.
func (s *Store) sift(ctx context.Context, d *compiled, page []placeRow, out *Reconciled) error {
	ids := make([]string, len(page))
	for i := range page {
		ids[i] = page[i].Item
	}

	items, err := s.rows(ctx, ids)
	if err != nil {
		return err
	}

	right := map[string]bool{}
	for i := range items {
		right[items[i].placeIn(d)] = true // places have the id of the item
		if items[i].lost {
			right["of "+items[i].id] = true // it is not known where it is
		}
	}

	for i := range page {
		if right[page[i].SK] || right["of "+page[i].Item] {
			continue
		}
		if err := lostRace(s.removeForeign(ctx, d, &page[i], out)); err != nil {
			return err
		}
	}
	return nil
}

// removeForeign removes a row of a line that is not where its item is, on the condition that the
// item stays as it was read: it could move there at that moment.
func (s *Store) removeForeign(ctx context.Context, d *compiled, p *placeRow,
	out *Reconciled) error {
	row, err := s.row(ctx, p.Item)
	if err != nil {
		return readable(err, out, p.Item)
	}

	if row.placeIn(d) == p.SK {
		return nil // it moved there meanwhile
	}

	// After the item: of a component that was deleted before the item was decided, its deletion removes the rows.
	now, err := s.load(ctx)
	if err != nil {
		return err
	}

	is, err := now.of(d.Name)
	if err != nil || is.born != d.born {
		return nil // it was deleted
	}

	tx := s.Table.Begin(s.NewID())
	if row.Rev == 0 {
		tx.Require(row.Key(), "attribute_not_exists(pk)")
	} else {
		tx.Require(row.Key(), "rev = ?", row.Rev)
	}

	tx.Remove(p)
	if err := tx.Commit(ctx); err != nil {
		return err
	}

	out.find(&out.Foreign, "%s: its item %s is not at this place", p.Key(), p.Item)
	return nil
}
