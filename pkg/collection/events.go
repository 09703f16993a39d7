package collection

import (
	"context"

	"archivist/pkg/event"
	"archivist/pkg/fault"
	"archivist/pkg/table"
)

// Events lists what happened to a collection's profile, oldest first.
func (s Store) Events(ctx context.Context, name, cursor string) ([]event.Row, string, error) {
	if err := s.moveEvents(ctx, name); err != nil {
		return nil, "", err
	}
	return event.Page(ctx, s.Table, subject(name), cursor)
}

// movedAtOnce is how many events move in one transaction: each is two of its rows.
const movedAtOnce = table.MaxActions / 2

// moveEvents moves a collection's events to the partition of its row. Releases
// before 2026-11-22 kept them in a partition named like the collection alone,
// where they met the rows of the system ("SLOT", "SPACE"). Once they are moved
// it costs one query that finds nothing.
func (s Store) moveEvents(ctx context.Context, name string) error {
	if !names.MatchString(name) {
		return nil // no collection has it; it may be the partition of something else
	}
	for {
		var rows []event.Row
		_, err := s.Table.Page(ctx, table.Query{PK: name, Prefix: event.Prefix, Limit: movedAtOnce}, &rows)
		if err != nil || len(rows) == 0 {
			return err
		}
		tx := s.Table.Begin(s.NewID())
		for _, old := range rows {
			moved := old
			moved.PK = key(name).PK
			tx.Insert(&moved)
			tx.Remove(&old)
		}
		// A Stale means that another request moved them meanwhile.
		if err := tx.Commit(ctx); err != nil && !fault.Is(err, fault.Stale) {
			return err
		}
	}
}
