package collection

import (
	"context"

	"archivist/pkg/events/event"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/table"
)

// Events lists the events of a collection's profile, oldest first.
func (s Store) Events(ctx context.Context, name, cursor string) ([]event.Row, string, error) {
	if err := s.moveEvents(ctx, name); err != nil {
		return nil, "", err
	}
	return event.Page(ctx, s.Table, subject(name), cursor)
}

// movedAtOnce is the number of events that one transaction moves: each takes two actions.
const movedAtOnce = table.MaxActions / 2

// moveEvents moves a collection's events to the partition of its row. Releases before
// 2026-11-22 kept them in a partition with the bare name of the collection, where they
// could collide with rows of the system ("SLOT", "SPACE"). After the move it costs one
// query that finds nothing.
func (s Store) moveEvents(ctx context.Context, name string) error {
	if !names.MatchString(name) {
		return nil // no collection can have this name; it may be a partition of other rows
	}
	for {
		var rows []event.Row
		_, err := s.Table.Page(ctx, table.Query{
			PK:     name,
			Prefix: event.Prefix,
			Limit:  movedAtOnce,
		}, &rows)
		if err != nil || len(rows) == 0 {
			return err
		}

		// An event is moved as a whole, and is at one of the two places at any moment.
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
