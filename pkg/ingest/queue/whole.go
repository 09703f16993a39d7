package queue

import "context"

// The lists of all collections are whole once each job and batch is in them. Those that an earlier version made are
// not, until the doctor has listed them. The row of the last sweep says that nothing is missing; until it does, a list
// of all collections is merged of those of each. An earlier version, to which somebody has gone back, makes jobs that
// are not in these lists; its first sweep writes the row without what it does not know, so that they are not taken for
// whole after the next upgrade.

// allWhole is under which name a process remembers that the lists are whole. No collection has it.
type allWhole struct{}

// whole reports whether the lists of all collections have all jobs and batches. A process looks until they have.
func (q *Queue) whole(ctx context.Context) (bool, error) {
	if _, known := q.names().Load(allWhole{}); known {
		return true, nil
	}
	row, err := q.swept(ctx)
	if err == nil && row.Whole {
		q.names().Store(allWhole{}, true)
	}
	return err == nil && row.Whole, err
}

// setWhole records that nothing is missing in the lists.
func (q *Queue) setWhole(ctx context.Context) error {
	return q.Table.Again(ctx, "the row of the last sweep", func() error {
		row, err := q.swept(ctx)
		if err != nil || row.Whole {
			return err
		}
		row.Whole = true
		tx := q.Table.Begin(q.NewID())
		put(tx, &row, row.Rev)
		return tx.Commit(ctx)
	})
}
