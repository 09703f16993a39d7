package consumer

import (
	"context"

	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/table"
)

// Delete removes a consumer with its cursors; the events stay in the log. A required consumer is
// not deleted: its definition must say first that it is not required. Nor is one that has parked or
// waiting events, unless discard is set. Both are a Conflict. The first write says that it is being
// deleted: from then on it is not there for anybody, and its rows are removed at once or by the
// clock.
func (s *Store) Delete(ctx context.Context, name string, discard bool, by By) error {
	err := s.act(ctx, name, by, func(tx *table.Tx, r *row) (string, change, error) {
		c, err := r.consumer()
		if err != nil {
			return "", change{}, err
		}

		if c.Required {
			return "", change{},
				fault.New(fault.Conflict, "consumer %s is required: events are kept until it has "+
					"handled them; apply its definition without required first", name)
		}

		if !discard {
			if err := s.mayDiscard(ctx, tx, name); err != nil {
				return "", change{}, err
			}
		}

		r.State, r.Changed = deleting, s.Now().UnixMilli()
		r.Resets, r.Rebuild = nil, "" // one that is made again under this name begins without them
		return "consumer.deleted", change{Definition: &c.Definition}, nil
	})
	if err != nil {
		return err
	}
	return s.finishDelete(ctx, name)
}

// maxFenced is how many cursors one transaction looks at: of table.MaxActions, some are left for
// what else it writes. A log with more partitions is rare.
const maxFenced = table.MaxActions - 10

// mayDiscard refuses to remove events that nobody has handled. What a run parks in the same moment
// makes tx fail, and all is decided again; in a partition that is new, or beyond maxFenced, it is
// not seen.
func (s *Store) mayDiscard(ctx context.Context, tx *table.Tx, name string) error {
	cursors, err := s.cursors(ctx, name)
	if err != nil {
		return err
	}

	var parked, pending int64
	for i, cur := range cursors {
		parked += cur.Parked
		pending += cur.Pending
		if i < maxFenced {
			tx.Require(cur.Key(), "rev = ?", cur.Rev)
		}
	}

	if parked+pending == 0 {
		return nil
	}
	return fault.New(fault.Conflict,
		"consumer %s has %d parked rows, and %d keys that wait until they are quiet: "+
			"their events were not handled; redrive them first, or delete with discard", name,
		parked, pending)
}

// finishDelete removes the rows of a consumer that is being deleted. It can be repeated from any
// point of a crash, and by two callers at once: each removal has the condition that the row is as
// it was read, and who comes second stops. The consumer's own row stays, as deleted: it has the
// number of the last event, from which a new one goes on.
func (s *Store) finishDelete(ctx context.Context, name string) error {
	r, err := s.row(ctx, name)
	if err != nil || r.State != deleting {
		return err
	}

	cursors, err := s.cursors(ctx, name)
	if err != nil {
		return err
	}

	for i := range cursors {
		if err := s.removeCursor(ctx, name, &cursors[i]); err != nil {
			return lostRace(err)
		}
	}

	if err := s.removeRows(ctx, table.Query{PK: own(name), Prefix: scheduleSK}); err != nil {
		return lostRace(err)
	}

	r.State, r.Changed = deleted, s.Now().UnixMilli()
	tx := s.Table.Begin(s.NewID())
	tx.Save(&r)
	return lostRace(tx.Commit(ctx))
}

// removeCursor removes a cursor with what it has parked, and what waits. A run that is at work
// loses its lease first: it could otherwise park an event that nobody would remove any more. The
// cursor goes last, since the next call finds the other rows by it.
func (s *Store) removeCursor(ctx context.Context, name string, cur *cursor) error {
	cur.Release()
	tx := s.Table.Begin(s.NewID())
	tx.Save(cur)
	if err := tx.Commit(ctx); err != nil {
		return err
	}

	for _, pk := range []string{parkedPK(name, cur.partition()),
		pendingKey(name, cur.partition(), "").PK} {
		if err := s.removeRows(ctx, table.Query{PK: pk}); err != nil {
			return err
		}
	}

	tx = s.Table.Begin(s.NewID())
	tx.Remove(cur)
	return tx.Commit(ctx)
}

// removeRows removes all rows of a query, a page in each transaction. It reads the first page again
// each time, until there is none.
func (s *Store) removeRows(ctx context.Context, q table.Query) error {
	for {
		var page []table.Head
		if _, err := s.Table.Page(ctx, q, &page); err != nil || len(page) == 0 {
			return err
		}

		tx := s.Table.Begin(s.NewID())
		for i := range page[:min(len(page), table.MaxActions)] {
			tx.Remove(&page[i])
		}

		if err := tx.Commit(ctx); err != nil {
			return err
		}
	}
}
