package queue

import (
	"context"
	"time"

	"archivist/pkg/ingest"
	"archivist/pkg/kernel/table"
)

// FindJobs lists jobs, newest first unless Find says otherwise. With a local id or an ARK they
// are found under that; else in the lists of the collections: of their state, their submitter,
// those with a message, or all. No place of a job in a list changes while it is there, so that
// following pages have it once, however it moves. A cursor that is not of this list is an
// Invalid.
func (q *Queue) FindJobs(ctx context.Context, f Find) (Page[Job], error) {
	return q.searchJobs(f).merged(ctx)
}

// searchJobs is the search for jobs.
func (q *Queue) searchJobs(f Find) *search[Job] {
	return &search[Job]{q: q, Find: f, of: namedJob, index: "jobs#", key: jobKey,
		wanted: func(j *Job) bool { return f.job(&j.Job) }}
}

// FindBatches lists batches, as FindJobs lists jobs. They are found by no local id and no ARK:
// their jobs are.
func (q *Queue) FindBatches(ctx context.Context, f Find) (Page[Batch], error) {
	return q.searchBatches(f).merged(ctx)
}

// CountBatches counts what FindBatches finds by a state, up to its limit; more is true if there are others. It reads
// no row.
func (q *Queue) CountBatches(ctx context.Context, f Find) (n int, more bool, err error) {
	return q.searchBatches(f).counted(ctx)
}

// searchBatches is the search for batches.
func (q *Queue) searchBatches(f Find) *search[Batch] {
	return &search[Batch]{q: q, Find: f, of: namedBatch, index: "batches#", key: batchKey,
		wanted: func(b *Batch) bool { return f.batch(&b.Batch) }}
}

// Rejected are the batches of all collections that were made since a time, and failed before they had jobs: the newest
// first, at most FindPage. more is true if there are others.
func (q *Queue) Rejected(ctx context.Context, since time.Time) (batches []Batch, more bool,
	err error) {
	var found []table.Owned
	query := table.Query{PK: namedRejected, Desc: true, Limit: FindPage}
	query.From, query.To = placeOf(since.UnixMilli(), ""), ":"
	next, err := q.Table.Page(ctx, query, &found)
	if err != nil {
		return nil, false, err
	}

	ids := make([]string, len(found))
	for i := range found {
		ids[i] = found[i].Owner
	}
	rows, err := readRows[Batch](ctx, q.Table, ids, batchKey)
	for _, row := range present(rows) {
		// It may have been deleted meanwhile.
		if row.State == ingest.BatchFailed && row.Unpacked == 0 {
			batches = append(batches, row)
		}
	}
	return batches, next != "", err
}
