package upload

import (
	"context"
	"fmt"
	"time"

	"archivist/pkg/ingest"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/table"
)

// How long it takes at most until the sweep sees that a batch has ended: one that works, and one that has failed, and
// goes on only if a person requeues its jobs.
const (
	lookAgain       = 15 * time.Minute
	lookAgainFailed = 24 * time.Hour
)

// atOnce is how many uploads a sweep looks at.
const atOnce = 100

// removeChunk is how many rows of files one transaction removes.
const removeChunk = 90

// Sweep looks at the uploads that are due, those first that are due for the longest time, and begins with none after
// until: it ends those that have expired, and removes those that are not needed any more. What fails is told to
// Store.Failed, and tried again later.
func (s *Store) Sweep(ctx context.Context, until time.Time) error {
	var page []struct {
		table.Head
		ID string `dynamo:"id"`
	}
	query := table.Query{Index: "work", PK: work, From: "0",
		To: ingest.DueSK(s.Now().UnixMilli()) + "~", Limit: atOnce}
	if _, err := s.Table.Page(ctx, query, &page); err != nil {
		return err
	}

	for _, due := range page {
		if !s.Now().Before(until) {
			return nil
		}
		err := s.sweep(ctx, due.ID, until)
		// Another process has changed or removed it: the index lags.
		if err == nil || fault.Is(err, fault.Stale) || fault.Is(err, fault.NotFound) {
			continue
		}
		s.Failed(due.ID, err)
		if err := s.postpone(ctx, due.ID); err != nil {
			return err
		}
	}
	return nil
}

// sweep looks at one upload. The index only found it: its row decides what is due.
func (s *Store) sweep(ctx context.Context, id string, until time.Time) error {
	row, err := s.Upload(ctx, id)
	now := s.Now().UnixMilli()
	if err != nil || now < row.Due {
		return err
	}

	switch row.State {
	case Open:
		return s.end(ctx, row, Expired, "upload.expired", system, "it was not submitted until "+
			ingest.Timestamp(row.Expires))
	case Submitted:
		look, err := s.needed(ctx, row)
		if err != nil {
			return err
		}
		if look > 0 {
			return s.due(ctx, row, now+look.Milliseconds())
		}
	}

	// A file that is sent later would stay behind.
	if at := row.removable(); now < at {
		return s.due(ctx, row, at)
	}
	return s.remove(ctx, row, func() bool { return s.Now().Before(until) })
}

// needed is after how long to look again whether the batch of an upload has ended, 0 if it has: no job downloads a file
// any more. A failed batch has not: its jobs can be requeued.
func (s *Store) needed(ctx context.Context, row *Upload) (time.Duration, error) {
	b, err := s.Batch(ctx, row.Batch)
	switch {
	case fault.Is(err, fault.NotFound):
		return 0, nil
	case err != nil:
		return 0, err
	case b.State == ingest.BatchCompleted, b.State == ingest.BatchDeleted:
		return 0, nil
	case b.State == ingest.BatchFailed:
		return lookAgainFailed, nil
	}
	return lookAgain, nil
}

// due sets when the sweep looks at an upload next.
func (s *Store) due(ctx context.Context, row *Upload, at int64) error {
	next := *row
	next.Due, next.Repairs = at, 0
	tx := s.Table.Begin(s.NewID())
	if err := s.write(tx, row, next, "", "", Detail{}); err != nil {
		return err
	}
	return tx.Commit(ctx)
}

// postpone moves an upload that could not be handled, each time by more, up to an hour.
func (s *Store) postpone(ctx context.Context, id string) error {
	row, err := s.Upload(ctx, id)
	if err != nil || s.Now().UnixMilli() < row.Due {
		return err
	}

	next := *row
	next.Due = s.Now().Add(min(time.Minute<<min(row.Repairs, 10), time.Hour)).UnixMilli()
	next.Repairs++
	tx := s.Table.Begin(s.NewID())
	if err := s.write(tx, row, next, "", "", Detail{}); err != nil {
		return err
	}
	err = tx.Commit(ctx)
	if fault.Is(err, fault.Stale) {
		return nil
	}
	return err
}

// remove removes an upload, as long as more returns true: first what is in the bucket, then the rows of its files, and
// in one transaction its own row, with what it has reserved. The next sweep goes on where this one stopped.
func (s *Store) remove(ctx context.Context, row *Upload, more func() bool) error {
	prefix := Prefix(row.Collection, row.ID)
	all, err := s.Work.DeleteAll(ctx, prefix, more)
	if err == nil && all {
		all, err = s.Work.AbortAll(ctx, prefix, more)
	}
	if err == nil && all {
		all, err = s.removeFiles(ctx, row, more)
	}
	if err != nil || !all {
		return err
	}

	q, err := s.quotaOf(ctx, row.Collection)
	if err != nil {
		return err
	}

	gone := *row
	gone.Version++
	tx := s.Table.Begin(s.NewID())
	tx.Remove(row)
	q.Uploads, q.Bytes = max(0, q.Uploads-1), max(0, q.Bytes-row.Bytes)
	tx.InsertOrSave(q)
	var listed member
	switch err := s.Table.Get(ctx, memberKey(row.Collection, row.ID), &listed); {
	case err == nil:
		tx.Remove(&listed)
	case !fault.Is(err, fault.NotFound):
		return err
	}
	if err := s.forget(ctx, tx, row); err != nil {
		return err
	}
	if err := s.tell(tx, &gone, "upload.removed", system, Detail{why(row)}, propertiesOf(row),
		nil); err != nil {
		return err
	}
	return tx.Commit(ctx)
}

// why is why an upload is removed.
func why(row *Upload) string {
	switch row.State {
	case Submitted:
		return fmt.Sprintf("batch %s has ended", row.Batch)
	case Discarded:
		return "it was discarded"
	}
	return "it had expired"
}

// removeFiles removes the rows of the files of an upload, and reports whether none is left.
func (s *Store) removeFiles(ctx context.Context, row *Upload, more func() bool) (all bool,
	err error) {
	for more() {
		var files []File
		query := table.Query{PK: row.PK, Prefix: filePrefix, Limit: removeChunk}
		if _, err := s.Table.Page(ctx, query, &files); err != nil {
			return false, err
		}
		if len(files) == 0 {
			return true, nil
		}

		tx := s.Table.Begin(s.NewID())
		for i := range files {
			tx.Remove(&files[i])
		}
		if err := tx.Commit(ctx); err != nil {
			return false, err
		}
	}
	return false, nil
}
