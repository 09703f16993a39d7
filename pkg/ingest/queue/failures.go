package queue

import (
	"cmp"
	"context"
	"slices"
	"time"

	"archivist/pkg/ingest"
	"archivist/pkg/kernel/table"
)

// mostFailures is how many jobs Failures counts, and of how many it reads the rows, in which messages can be long: a
// status is asked for again and again.
const mostFailures = 100

// Failures are the causes of the jobs that have failed since a time and are failed still, that of most jobs first, and
// the number of these jobs, at most mostFailures, the newest. more is true if there are others. Whatever else has
// failed before, it costs the same.
func (q *Queue) Failures(ctx context.Context, since time.Time) (causes []Cause, jobs int, more bool,
	err error) {
	var found []candidate
	for _, place := range ingest.PlacesOf(ingest.Failed) {
		from := since // in the order in which they failed
		if place == ingest.WorkCleanUp {
			from = from.Add(q.Rules.FailedRetention) // in that in which their work files are removed
		}
		some, cut, err := q.failedFrom(ctx, place, from, since)
		if err != nil {
			return nil, 0, false, err
		}
		more = more || cut
		found = append(found, some...)
	}

	slices.SortStableFunc(found, func(a, b candidate) int {
		return cmp.Compare(b.Entered, a.Entered)
	})
	var ids []string
	seen := map[string]bool{} // a job that has just moved may be at both places
	for _, c := range found {
		if !seen[c.ID] {
			ids, seen[c.ID] = append(ids, c.ID), true
		}
	}
	looked := min(len(ids), mostFailures)
	more = more || looked < len(ids)

	rows, err := readRows[Job](ctx, q.Table, ids[:looked], jobKey)
	if err != nil {
		return nil, 0, false, err
	}

	var failed []Job
	for _, row := range rows {
		if row != nil && row.State == ingest.Failed && row.Entered >= since.UnixMilli() {
			failed = append(failed, *row)
		}
	}
	return causesOf(failed), len(failed), more, nil
}

// FailedBeside counts the jobs that are failed beside so many that failed since a time, up to most
// in all; more is true if there are others. It reads no rows of jobs, and costs the same for any
// number of collections: until the lists of all collections are whole, only those count, up to
// most, that failed before and have no work files; all is false then.
func (q *Queue) FailedBeside(ctx context.Context, recent int, since time.Time,
	most int) (n int, more, all bool, err error) {
	if all, err = q.whole(ctx); err != nil {
		return 0, false, false, err
	}
	if !all {
		var page []candidate
		next, err := q.Table.Page(ctx, table.Query{Index: "work", PK: ingest.WorkFailed, From: "0",
			To: ingest.DueSK(since.UnixMilli()), Limit: most}, &page)
		return len(page), next != "", false, err
	}
	n, more, err = q.searchJobs(Find{State: string(ingest.Failed), Limit: most,
		Until: q.Now().Add(time.Second)}).counted(ctx)
	return max(0, n-recent), more, true, err
}

// failedFrom are the newest jobs at a place that have failed since a time: behind from in its order, in which there can
// be other items, too. cut is true if not all were read.
func (q *Queue) failedFrom(ctx context.Context, place string, from, since time.Time) (found []candidate, cut bool,
	err error) {
	query := table.Query{Index: "work", PK: place, From: ingest.DueSK(from.UnixMilli()),
		To: dueRank(q.Now().Add(from.Sub(since))), Desc: true, Limit: mostFailures + 1}
	for range 2 {
		var page []candidate
		query.Cursor, err = q.Table.Page(ctx, query, &page)
		if err != nil {
			return nil, false, err
		}
		for _, c := range page {
			if isJob(c) && c.Entered >= since.UnixMilli() {
				found = append(found, c)
			}
		}
		if query.Cursor == "" || len(found) > mostFailures {
			break
		}
		query.Limit = countedMost // the first were others
	}
	return found, query.Cursor != "", nil
}
