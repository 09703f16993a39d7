package queue

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"archivist/pkg/ingest"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/table"
)

// planPage is the number of targets that one page plans. They are one transaction with the
// operation's row, within DynamoDB's 100 rows.
const planPage = 90

// candidates reads the next targets that an operation selects, at most planPage, and returns
// the cursor of the next page, "" at the end. They are jobs; a release also selects held
// batches without jobs.
func (q *Queue) candidates(ctx context.Context, o *ingest.Operation) (
	found []ingest.Target, cursor string, err error) {
	var jobs, batches []string
	if o.Filter.Batch != "" {
		jobs, cursor, err = q.rowsOf(ctx, o)
	} else {
		jobs, batches, cursor, err = q.placed(ctx, o)
	}

	if err != nil {
		return nil, "", err
	}

	// The index only finds them: whether the filter selects a job is decided by its row.
	jobRows, err := readAll(ctx, distinct(jobs), q.Job)
	if err != nil {
		return nil, "", err
	}

	states := o.States()
	for _, j := range jobRows {
		if slices.Contains(states, j.State) && o.Filter.Matches(&j.Job) {
			found = append(found, ingest.Target{Kind: ingest.TargetJob, ID: j.Job.ID})
		}
	}

	batchRows, err := readAll(ctx, distinct(batches), q.Batch)
	for _, b := range batchRows {
		if b.State == ingest.BatchHeld && o.Filter.MatchesBatch(&b.Batch) {
			found = append(found, batchTarget(b.Batch.ID))
		}
	}
	return found, cursor, err
}

// distinct sorts ids and removes duplicates: an index may show a row at its old and its new
// place.
func distinct(ids []string) []string {
	slices.Sort(ids)
	return slices.Compact(ids)
}

// rowsOf lists the next jobs of the batch by their row numbers. The cursor is the last row.
// A batch whose rows were removed meanwhile has no jobs.
func (q *Queue) rowsOf(ctx context.Context,
	o *ingest.Operation) (ids []string, cursor string, err error) {
	batch, err := q.Batch(ctx, o.Filter.Batch)
	if fault.Is(err, fault.NotFound) {
		return nil, "", nil
	}

	if err != nil {
		return nil, "", err
	}

	after, _ := strconv.Atoi(o.Cursor) // "" at the beginning
	last := min(batch.Unpacked, after+planPage)
	for n := after + 1; n <= last; n++ {
		ids = append(ids, ingest.JobID(batch.Batch.ID, n))
	}

	if last < batch.Unpacked {
		cursor = strconv.Itoa(last)
	}
	return ids, cursor, nil
}

// place is a part of an index in which an operation finds its candidates.
type place struct{ index, pk, to string }

// placedRow is a row in such a place as the index shows it.
type placedRow struct {
	table.Head
	ID         string       `dynamo:"id"`
	Collection string       `dynamo:"coll"`
	State      ingest.State `dynamo:"job_state"` // in the index "list" only; it may lag
}

// places lists where to find what an operation selects without a batch: where jobs of its
// states wait or, if these are not enough, in the list of its collection, as it was when
// the operation began. The list also has jobs that failed before there was a place for them.
func places(o *ingest.Operation) (all []place) {
	for _, s := range o.States() {
		found := ingest.PlacesOf(s)
		if len(found) == 0 || s == ingest.Failed && o.Filter.Collection != "" {
			// Up to the time at which the operation began: jobs that are made meanwhile are not
			// selected, so that it ends.
			return []place{{"list", "jobs#" + o.Filter.Collection,
				fmt.Sprintf("%013d#~", o.Created)}}
		}
		for _, pk := range found {
			all = append(all, place{"work", pk, "~"})
		}
	}
	return all
}

// rank is the place of the row in the order of the index.
func (p place) rank(row placedRow) string {
	if p.index == "list" {
		return row.ListSK
	}
	return row.WorkSK
}

// indexPage is the number of index rows that one page reads.
const indexPage = 500

// placed lists the next jobs and batches in the places of an operation. The cursor is the
// number of the place and the last rank in it.
func (q *Queue) placed(ctx context.Context,
	o *ingest.Operation) (jobs, batches []string, cursor string, err error) {
	all := places(o)
	number, from, _ := strings.Cut(o.Cursor, " ")
	n, _ := strconv.Atoi(number) // "" at the beginning
	at := all[min(n, len(all)-1)]
	var page []placedRow
	// A blank is less than all that a rank can have, so the row at the cursor is left out.
	query := table.Query{Index: at.index, PK: at.pk, From: from + " ", To: at.to, Limit: indexPage}
	more, err := q.Table.Page(ctx, query, &page)
	if err != nil {
		return nil, nil, "", err
	}

	for _, row := range page {
		switch {
		case !mayMatch(o, row):
		case row.PK == jobKey(row.ID).PK:
			jobs = append(jobs, row.ID)
		case row.PK == batchKey(row.ID).PK && o.Name == ingest.ActRelease:
			batches = append(batches, row.ID)
		}

		from = at.rank(row)
		// The rest of this page is read again by the next one.
		if len(jobs)+len(batches) == planPage {
			return jobs, batches, fmt.Sprintf("%d %s", n, from), nil
		}
	}

	switch {
	case more != "":
		cursor = fmt.Sprintf("%d %s", n, from)
	case n+1 < len(all):
		cursor = fmt.Sprintf("%d ", n+1)
	}
	return jobs, batches, cursor, nil
}

// mayMatch reports whether the operation may select a row, as far as the index shows it.
func mayMatch(o *ingest.Operation, row placedRow) bool {
	return (o.Filter.Collection == "" || row.Collection == o.Filter.Collection) &&
		(row.State == "" || slices.Contains(o.States(), row.State))
}
