package component

import (
	"context"
	"time"

	"archivist/pkg/table"
)

// sweepEvery is how often all items are reconciled with the lines.
const sweepEvery = time.Hour

// sweepSK is the sort key of the reconciliation in the registry.
const sweepSK = "#SWEEP"

// sweepRow is the reconciliation that is at work, or the newest.
type sweepRow struct {
	table.Head
	Cursor string `dynamo:"sweep_cursor,omitempty"` // "": it is done
	Next   int64  `dynamo:"sweep_ms"`               // when the next one begins, in milliseconds since 1970
}

// Keep does a part of what keeps the lines right, until the time is over: the back-fill, if there is one,
// else once an hour a reconciliation. The scheduler's tick calls it.
func (s *Store) Keep(ctx context.Context, until time.Time) error {
	more, err := s.Fill(ctx, until)
	if more || err != nil {
		return err
	}
	r := sweepRow{Head: table.Head{PK: registry, SK: sweepSK}}
	if err := optional(s.Table.Get(ctx, r.Key(), &r)); err != nil {
		return err
	}
	now := s.Now()
	if r.Cursor == "" && millis(now) < r.Next {
		return nil
	}
	if h, err := s.head(ctx); err != nil || h.Rev == 0 {
		return err // there never was a component
	}
	found, next, err := s.Reconcile(ctx, r.Cursor, until)
	if err != nil {
		return err
	}
	for _, f := range found.Findings {
		s.log("a line of components was repaired", f)
	}
	r.Cursor = next
	if next == "" {
		r.Next = millis(now.Add(sweepEvery))
	}
	tx := s.Table.Begin(s.NewID())
	put(tx, &r, r.Rev)
	return lostRace(tx.Commit(ctx))
}

// log says what was found.
func (s *Store) log(message, finding string) {
	if s.Log != nil {
		s.Log.Warn(message, "finding", finding)
	}
}
