package queue

import (
	"context"
	"slices"
	"strconv"
	"strings"

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
	return readAll(ctx, ids, q.Job)
}

// BatchesOf lists a collection's batches, newest first.
func (q *Queue) BatchesOf(ctx context.Context, collection, cursor string) (Page[Batch], error) {
	return listed(ctx, q, "batches#"+collection, cursor, q.Batch)
}

// JobsOf lists a collection's jobs, newest first.
func (q *Queue) JobsOf(ctx context.Context, collection, cursor string) (Page[Job], error) {
	return listed(ctx, q, "jobs#"+collection, cursor, q.Job)
}

// JobsIn lists the jobs of all collections that are in one of ingest.PlacedStates, in the order in which they
// came to it, and by their ids within a page. Another state, or a cursor that is not of this list, is an Invalid.
func (q *Queue) JobsIn(ctx context.Context, state ingest.State, cursor string) (page Page[Job], err error) {
	o := &ingest.Operation{Bulk: ingest.Bulk{Filter: ingest.Filter{State: state}}, Cursor: cursor}
	if err := ingest.CheckPlaced(state); err != nil {
		return page, err
	}

	number, _, _ := strings.Cut(cursor, " ")
	if n, err := strconv.Atoi(number); cursor != "" && (err != nil || n < 0 || n >= len(places(o))) {
		return page, fault.New(fault.Invalid, "invalid cursor %q; use that of the page before", cursor)
	}

	var ids []string
	if ids, _, page.Cursor, err = q.placed(ctx, o); err != nil {
		return page, err
	}

	page.Items, err = readAll(ctx, distinct(ids), q.Job)
	page.Items = slices.DeleteFunc(page.Items, func(j Job) bool { return j.State != state })
	return page, err
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

// readAll reads rows in the order of ids. It leaves out missing rows: the batch was retired
// meanwhile, or the index lags.
func readAll[T any](ctx context.Context, ids []string,
	read func(ctx context.Context, id string) (*T, error)) ([]T, error) {
	rows := make([]*T, len(ids))
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(readers)
	for i, id := range ids {
		g.Go(func() (err error) {
			rows[i], err = read(ctx, id)
			if fault.Is(err, fault.NotFound) {
				return nil
			}
			return err
		})
	}

	if err := g.Wait(); err != nil {
		return nil, err
	}

	out := make([]T, 0, len(rows))
	for _, row := range rows {
		if row != nil {
			out = append(out, *row)
		}
	}
	return out, nil
}

// Events lists the events of a job or batch, oldest first. They can be read after the rows of the
// batch were removed.
func (q *Queue) Events(ctx context.Context, subject event.Subject,
	cursor string) (Page[event.Row], error) {
	rows, next, err := event.Page(ctx, q.Table, subject, cursor)
	return Page[event.Row]{Items: rows, Cursor: next}, err
}
