package queue

import (
	"cmp"
	"context"
	"slices"
	"time"

	"archivist/pkg/ingest"
	"archivist/pkg/kernel/table"
)

// Limits of what is read for Failures: entries of the index at each of two places, and rows of jobs, of which messages
// can be long: a status is asked for again and again.
const (
	mostFailures = 1000
	mostCaused   = 100
)

// Failures are the causes of the jobs that have failed since a time and are failed still, that of most jobs first, and
// the number of these jobs. The causes are those of the newest looked jobs, which are all or mostCaused. cut is true if
// there are more jobs than were counted: then those that were are among the newest.
func (q *Queue) Failures(ctx context.Context, since time.Time) (causes []Cause, jobs, looked int, cut bool,
	err error) {
	var found []candidate
	for _, place := range ingest.PlacesOf(ingest.Failed) {
		query := table.Query{Index: "work", PK: place, Limit: mostFailures}
		if place == ingest.WorkFailed { // in the order in which they failed
			query.From, query.To, query.Desc = ingest.DueSK(since.UnixMilli()), "~", true
		}

		var page []candidate
		more, err := q.Table.Page(ctx, query, &page)
		if err != nil {
			return nil, 0, 0, false, err
		}
		cut = cut || more != ""
		found = append(found, page...)
	}

	slices.SortStableFunc(found, func(a, b candidate) int {
		return cmp.Compare(b.Entered, a.Entered)
	})
	var ids []string
	seen := map[string]bool{} // a job that has just moved may be at both places
	for _, c := range found {
		if c.PK == jobKey(c.ID).PK && c.Entered >= since.UnixMilli() && !seen[c.ID] {
			ids, seen[c.ID] = append(ids, c.ID), true
		}
	}
	looked = min(len(ids), mostCaused)

	rows, err := readRows[Job](ctx, q.Table, ids[:looked], jobKey)
	if err != nil {
		return nil, 0, 0, false, err
	}

	var failed []Job
	for _, row := range rows {
		if row != nil && row.State == ingest.Failed && row.Entered >= since.UnixMilli() {
			failed = append(failed, *row)
		}
	}
	return causesOf(failed), len(ids) - looked + len(failed), len(failed), cut, nil
}
