package component

import (
	"context"
	"time"

	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/table"
)

// finishDelete removes the line of a component that is being deleted, until it is gone or the time
// is over. It can be repeated from any point of a crash, and by two callers at once.
//
// The counts are removed first: then no change of an item that was decided by older definitions can
// put a row into the line. The items keep the names of their places until they change; these are
// older than a component that is made under this name again.
func (s *Store) finishDelete(ctx context.Context, name string,
	until time.Time) (more bool, err error) {
	r, err := s.definitionRow(ctx, name)
	if err != nil || r.State != deleting {
		return false, err
	}

	for _, q := range []table.Query{{PK: linePK(name), Prefix: "count#"},
		{PK: linePK(name), Prefix: Failed + "#"},
		{PK: linePK(name), Prefix: Later + "#"}, {PK: linePK(name), Prefix: Ready + "#"},
		{PK: linePK(name), Prefix: Running + "#"}} {
		if more, err := s.removeRows(ctx, &r, q, until); more || err != nil {
			return more, err
		}
	}

	r.State = deleted
	tx := s.Table.Begin(s.NewID())
	tx.Save(&r)
	return false, lostRace(tx.Commit(ctx))
}

// removeRows removes all rows of a query, a page in each transaction, until the time is over; each on the condition
// that the component is still being deleted: else a caller that was slow would remove the line of a component that
// was made under this name since. more is true if rows may be left, or have changed meanwhile.
func (s *Store) removeRows(ctx context.Context, of *definitionRow, q table.Query,
	until time.Time) (more bool, err error) {
	for {
		var page []table.Head
		if _, err := s.Table.Page(ctx, q, &page); err != nil || len(page) == 0 {
			return false, err
		}

		tx := s.Table.Begin(s.NewID())
		tx.Require(of.Key(), "rev = ?", of.Rev)
		for i := range page[:min(len(page), table.MaxActions-1)] {
			tx.Remove(&page[i])
		}

		err := tx.Commit(ctx)
		if fault.Is(err, fault.Stale) {
			return true, nil
		}
		if err != nil {
			return false, err
		}

		if s.Now().After(until) {
			return true, nil
		}
	}
}

// Delete removes a component with its line. The events that it recorded stay, and count for others.
// From the first write on it is not there for anybody; what remains of its line is removed by the
// scheduler's tick.
func (s *Store) Delete(ctx context.Context, name string, by By) error {
	err := s.act(ctx, name, by, func(e *edit) error {
		d, err := e.row.definition()
		if err != nil {
			return err
		}
		e.row.State = deleting
		e.raise(false)
		_, err = e.save(ctx, s.Table.Begin(s.NewID()), d, "component.deleted", by)
		return err
	})
	if err != nil {
		return err
	}

	_, err = s.finishDelete(ctx, name, s.Now().Add(deleteTime))
	return err
}

// deleteTime is how long a call of Delete removes rows; a back-fill goes on with it.
const deleteTime = 10 * time.Second
