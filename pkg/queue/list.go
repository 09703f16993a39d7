package queue

import (
	"context"
	"errors"
	"slices"
	"sync"

	"archivist/pkg/event"
	"archivist/pkg/fault"
	"archivist/pkg/ingest"
	"archivist/pkg/table"
)

// Page is a page of rows with the cursor of the next.
type Page[T any] struct {
	Items  []T
	Cursor string
}

// readers bounds how many rows of a page are read at once.
const readers = 16

// Jobs lists a batch's jobs in the order of their rows, from the row after
// after, at most 100.
func (q *Queue) Jobs(ctx context.Context, batch string, after int) ([]Job, error) {
	b, err := q.Batch(ctx, batch)
	if err != nil {
		return nil, err
	}
	out := make([]Job, max(0, min(b.Unpacked-after, 100)))
	failed := make([]error, len(out))
	gate := make(chan struct{}, readers)
	var wg sync.WaitGroup
	for i := range out {
		gate <- struct{}{}
		wg.Go(func() {
			defer func() { <-gate }()
			j, err := q.Job(ctx, ingest.JobID(batch, after+1+i))
			if failed[i] = err; err == nil {
				out[i] = *j
			}
		})
	}
	wg.Wait()
	if i := slices.IndexFunc(failed, func(err error) bool { return fault.Is(err, fault.NotFound) }); i >= 0 {
		out, failed = out[:i], failed[:i] // the batch is being retired: its jobs go from the last to the first
	}
	return out, errors.Join(failed...)
}

// listed is the pointer that the index "list" gives.
type listed struct {
	table.Head
	ID string `dynamo:"id"`
}

// List pages through a collection's batches or jobs, newest first.
func (q *Queue) list(ctx context.Context, shelf, cursor string) ([]string, string, error) {
	var rows []listed
	next, err := q.Table.Page(ctx, table.Query{Index: "list", PK: shelf, Cursor: cursor, Desc: true, Limit: 50}, &rows)
	ids := make([]string, len(rows))
	for i, r := range rows {
		ids[i] = r.ID
	}
	return ids, next, err
}

// BatchesOf lists a collection's batches, newest first.
func (q *Queue) BatchesOf(ctx context.Context, collection, cursor string) (Page[Batch], error) {
	ids, next, err := q.list(ctx, "batches#"+collection, cursor)
	page := Page[Batch]{Cursor: next}
	for _, id := range ids {
		b, err := q.Batch(ctx, id)
		if fault.Is(err, fault.NotFound) {
			continue // the index lags: its rows were cleaned away
		}
		if err != nil {
			return page, err
		}
		page.Items = append(page.Items, *b)
	}
	return page, err
}

// JobsOf lists a collection's jobs, newest first.
func (q *Queue) JobsOf(ctx context.Context, collection, cursor string) (Page[Job], error) {
	ids, next, err := q.list(ctx, "jobs#"+collection, cursor)
	page := Page[Job]{Cursor: next}
	for _, id := range ids {
		j, err := q.Job(ctx, id)
		if fault.Is(err, fault.NotFound) {
			continue
		}
		if err != nil {
			return page, err
		}
		page.Items = append(page.Items, *j)
	}
	return page, err
}

// Events lists what happened to a job or batch, oldest first.
func (q *Queue) Events(ctx context.Context, subject event.Subject, cursor string) (Page[event.Row], error) {
	rows, next, err := event.Page(ctx, q.Table, subject, cursor)
	return Page[event.Row]{rows, next}, err
}
