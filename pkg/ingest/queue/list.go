package queue

import (
	"context"

	"golang.org/x/sync/errgroup"

	"archivist/pkg/events/event"
	"archivist/pkg/ingest"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/table"
)

// Page is a page of rows with the cursor of the next.
type Page[T any] struct {
	Items  []T
	Cursor string
}

// jobsOfPage is the number of a batch's jobs that are listed at once.
const jobsOfPage = 100

// Jobs lists a batch's jobs in the order of their rows: at most 100, beginning with the row
// that follows after. The ids follow from the row numbers, so no index is needed, and none can lag.
// Rows that were removed are left out. A missing batch is a NotFound.
func (q *Queue) Jobs(ctx context.Context, batch string, after int) ([]Job, error) {
	b, err := q.Batch(ctx, batch)
	if err != nil {
		return nil, err
	}
	ids := make([]string, max(0, min(b.Unpacked-after, jobsOfPage)))
	for i := range ids {
		ids[i] = ingest.JobID(batch, after+1+i)
	}
	if len(ids) == 0 {
		return nil, nil
	}
	rows, err := readRows[Job](ctx, q.Table, ids, jobKey)
	return present(rows), err
}

// hasBatches reports whether there are batches of a collection.
func (q *Queue) hasBatches(ctx context.Context, collection string) (bool, error) {
	var batches []table.Head
	_, err := q.Table.Page(ctx, table.Query{Index: "list", PK: "batches#" + collection, Limit: 1}, &batches)
	return len(batches) > 0, err
}

// listed reads the rows of a page of one partition of the index "list".
func listed[T any](ctx context.Context, q *Queue, partition, cursor string,
	read func(ctx context.Context, id string) (*T, error)) (page Page[T], err error) {
	var found []struct {
		table.Head
		ID string `dynamo:"id"`
	}

	query := table.Query{Index: "list", PK: partition, Cursor: cursor, Desc: true, Limit: 50}
	if page.Cursor, err = q.Table.Page(ctx, query, &found); err != nil {
		return page, err
	}

	ids := make([]string, len(found))
	for i, f := range found {
		ids[i] = f.ID
	}

	page.Items, err = readAll(ctx, ids, read)
	return page, err
}

// readers limits how many rows of a page are read at once.
const readers = 16

// together calls f for each of n, some at once.
func together(ctx context.Context, n int, f func(ctx context.Context, i int) error) error {
	if n == 1 {
		return f(ctx, 0)
	}

	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(readers)
	for i := range n {
		g.Go(func() error { return f(ctx, i) })
	}
	return g.Wait()
}

// readAll reads rows in the order of ids. It leaves out missing rows: the batch was retired
// meanwhile, or the index lags.
func readAll[T any](ctx context.Context, ids []string,
	read func(ctx context.Context, id string) (*T, error)) ([]T, error) {
	rows := make([]*T, len(ids))
	err := together(ctx, len(ids), func(ctx context.Context, i int) (err error) {
		rows[i], err = read(ctx, ids[i])
		if fault.Is(err, fault.NotFound) {
			return nil
		}
		return err
	})
	if err != nil {
		return nil, err
	}

	return present(rows), nil
}

// present are the rows without those that are missing.
func present[T any](rows []*T) []T {
	out := make([]T, 0, len(rows))
	for _, row := range rows {
		if row != nil {
			out = append(out, *row)
		}
	}
	return out
}

// Events lists the events of a job or batch, oldest first. They can be read after the rows of the
// batch were removed.
func (q *Queue) Events(ctx context.Context, subject event.Subject,
	cursor string) (Page[event.Row], error) {
	rows, next, err := event.Page(ctx, q.Table, subject, cursor)
	return Page[event.Row]{Items: rows, Cursor: next}, err
}
