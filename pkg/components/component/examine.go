package component

import (
	"context"
	"fmt"
	"strings"

	"archivist/pkg/kernel/table"
)

// Examine says what is wrong with an item's places in the lines, "" for nothing. It writes nothing,
// so it is for the doctor, who says what is wrong before a person repairs it. An item that cannot
// be read is an Invalid.
func (s *Store) Examine(ctx context.Context, id string) (wrong string, err error) {
	row, err := s.row(ctx, id)
	if err != nil {
		return "", err
	}

	defs, err := s.load(ctx)
	if err != nil {
		return "", err
	}

	fill, err := s.filling(ctx)
	if err != nil {
		return "", err
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
			return "", err
		}

		if there.Rev == 0 {
			all = append(all, fmt.Sprintf("the row %s is missing", placeKey(d.Name, is)))
		}
	}
	return strings.Join(all, "; "), nil
}

// Behind says what an item does not know of its subject, which has had so many events; "" for nothing. Components
// never find an item that does not exist, nor one that does not know what has happened. An item that cannot be read
// is an Invalid.
func (s *Store) Behind(ctx context.Context, id string, events int64) (string, error) {
	row, err := s.row(ctx, id)
	switch {
	case err != nil:
		return "", err
	case row.Rev == 0:
		return fmt.Sprintf("there is no item %s", id), nil
	case row.it.Applied < events:
		return fmt.Sprintf("the item %s knows %d of %d events", id, row.it.Applied, events), nil
	}
	return "", nil
}

// ExamineEpochs says which copies of the epoch of the definitions are not that epoch, "" for none.
func (s *Store) ExamineEpochs(ctx context.Context) (wrong string, err error) {
	h, err := s.head(ctx)
	if err != nil || !h.Spread {
		return "", err
	}

	rows, err := s.epochs(ctx)
	var parts []string
	for part := range uint32(shards) {
		if rows[epochKey(part)].Epoch != h.Epoch {
			parts = append(parts, fmt.Sprint(part))
		}
	}

	if err != nil || parts == nil {
		return "", err
	}
	return fmt.Sprintf("the epoch is %d, and its copies for the parts %s of the items are not", h.Epoch,
		strings.Join(parts, ", ")), nil
}

// RepairEpochs makes all copies of the epoch of the definitions what it is. A Stale means that a definition was
// changed meanwhile.
func (s *Store) RepairEpochs(ctx context.Context) error {
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

// Repair brings an item's places to where its events say that it is. It can be repeated; of an item
// that changes at that moment nothing is repaired.
func (s *Store) Repair(ctx context.Context, id string) error {
	var out Reconciled
	err := s.repair(ctx, id, &out)
	s.repaired(&out)
	return err
}

// ExamineRow says what is wrong with a row of a line, "" for nothing: it is of no component, or its
// item is elsewhere.
func (s *Store) ExamineRow(ctx context.Context, k table.Key) (wrong string, err error) {
	name := strings.TrimPrefix(k.PK, linePK(""))
	r, err := s.definitionRow(ctx, name)
	switch {
	case err != nil:
		return "", err
	case r.State == deleting:
		return "", nil // it is being removed
	case r.State != active:
		return fmt.Sprintf("there is no component %s", name), nil
	case classOf(k.SK) == "count":
		return "", nil
	}

	c, err := r.compiled()
	if err != nil {
		return "", err
	}

	item := placed(k.SK).Item
	row, err := s.row(ctx, item)
	if err != nil {
		return wrong, err
	}

	if row.placeIn(&c) != k.SK {
		wrong = fmt.Sprintf("its item %s is not at this place", item)
	}
	return wrong, nil
}
