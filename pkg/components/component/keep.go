package component

import (
	"context"
	"errors"
	"time"

	"archivist/pkg/kernel/table"
)

const (
	// sweepEvery is how often all items are reconciled with the lines. It reads about five rows for
	// each item, and finds nothing unless rows were lost or changed by hand: once a day, 100,000
	// items cost some cents.
	sweepEvery = 24 * time.Hour
	// sweepTries bounds how often a page that fails is tried before the reconciliation goes past
	// it.
	sweepTries = 5
)

// sweepSK is the sort key of the reconciliation in the registry. Like those of the other rows it
// sorts before all names.
const sweepSK = "#SWEEP"

// sweepRow is the reconciliation that is at work, or the newest. Its cursor is written after each
// call, so that the next one, in whatever process, goes on there.
type sweepRow struct {
	table.Head

	// Cursor "": it is done.
	Cursor string `dynamo:"sweep_cursor,omitempty"`

	// Next is when the next one begins, in milliseconds since 1970.
	Next int64 `dynamo:"sweep_ms"`

	// Failed is how often the page at the cursor has failed.
	Failed int `dynamo:"failed_n,omitempty"`
}

// Keep does a part of what keeps the lines right, until the time is over: the back-fill, if there
// is one, else once a day a reconciliation. The scheduler's tick calls it. An error is of a page
// that could not be reconciled; it is tried again by the next calls, and then left out, so that one
// row cannot end the reconciliation of all.
func (s *Store) Keep(ctx context.Context, until time.Time) error {
	more, err := s.Backfill(ctx, until)
	if more || err != nil {
		return err
	}

	r := sweepRow{Head: table.Head{PK: rowPK, SK: sweepSK}}
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

	found, next, failed := s.Reconcile(ctx, r.Cursor, until)
	for _, f := range found.Findings {
		s.log("a line of components was repaired", f)
	}

	switch {
	case failed != nil && ctx.Err() != nil:
		return failed // the time was over: it says nothing of the page
	case failed != nil:
		next, err = s.retry(ctx, &r, next)
	default:
		r.Failed = 0
	}

	if err != nil {
		return errors.Join(failed, err)
	}

	r.Cursor = next
	if next == "" && failed == nil {
		r.Next = millis(now.Add(sweepEvery))
	}

	tx := s.Table.Begin(s.NewID())
	put(tx, &r, r.Rev)
	return errors.Join(failed, lostRace(tx.Commit(ctx)))
}

// retry notes that the page at a cursor has failed, and returns where to go on: there, or after too
// many tries past the page.
func (s *Store) retry(ctx context.Context, r *sweepRow, at string) (next string, err error) {
	if at != r.Cursor {
		r.Failed = 0
	}
	r.Failed++
	if r.Failed < sweepTries {
		return at, nil
	}
	r.Failed = 0
	s.log("a page could not be reconciled; the reconciliation goes past it", at)
	return s.skip(ctx, at)
}

// skip is the cursor after the page at a cursor. If the page cannot be listed, its part or its line
// is left out. The counts of a part with a page that was left out are not compared: they would seem
// wrong.
func (s *Store) skip(ctx context.Context, cursor string) (string, error) {
	var at sweep
	if err := decodeCursor(cursor, &at); err != nil {
		return "", err
	}

	if at.Shard < shards {
		_, next, err := s.items(ctx, uint32(at.Shard), at.Cursor, table.MaxGets)
		if err != nil {
			next = ""
		}
		at.Partial = true
		at.advance(next)
		if next == "" {
			at = sweep{walk: at.walk}
		}
		return encodeCursor(at), nil
	}

	defs, err := s.load(ctx)
	if err != nil {
		return "", err
	}

	d := defs.from(at.Line)
	if d == nil {
		return cursor, nil // all is done
	}

	var page []placeRow
	next, err := s.Table.Page(ctx, lineQuery(d.Name, at.after(d.Name)), &page)
	if err != nil {
		next = ""
	}

	at.pass(d.Name, next)
	return encodeCursor(at), nil
}

// log says what was found.
func (s *Store) log(message, finding string) {
	if s.Log != nil {
		s.Log.Warn(message, "finding", finding)
	}
}
