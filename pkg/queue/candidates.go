package queue

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"archivist/pkg/ingest"
	"archivist/pkg/table"
)

// candidates reads the next jobs that an operation selects, at most planPage, and returns
// the cursor of the next page, "" at the end.
func (q *Queue) candidates(ctx context.Context, o *ingest.Operation) (jobs []Job, cursor string, err error) {
	var ids []string
	if o.Filter.Batch != "" {
		ids, cursor, err = q.rowsOf(ctx, o)
	} else {
		ids, cursor, err = q.placed(ctx, o)
	}
	if err != nil {
		return nil, "", err
	}
	jobs, err = readAll(ctx, ids, q.Job)
	states := o.States()
	jobs = slices.DeleteFunc(jobs, func(j Job) bool {
		return !slices.Contains(states, j.State) || !o.Filter.Matches(&j.Job)
	})
	return jobs, cursor, err
}

// rowsOf lists the next jobs of the batch by their row numbers. The cursor is the last row.
func (q *Queue) rowsOf(ctx context.Context, o *ingest.Operation) (ids []string, cursor string, err error) {
	batch, err := q.Batch(ctx, o.Filter.Batch)
	if err != nil {
		return nil, "", err
	}
	after := 0
	if o.Cursor != "" {
		if after, err = strconv.Atoi(o.Cursor); err != nil {
			return nil, "", fmt.Errorf("queue: operation %s: cursor: %w", o.ID, err)
		}
	}
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

// placedRow is a job, or another item, as the indexes show it.
type placedRow struct {
	table.Head
	ID    string       `dynamo:"id"`
	State ingest.State `dynamo:"job_state"` // in the index "list" only; it may lag
}

// places lists where the jobs are that an operation selects without a batch: in the list of
// its collection, as it was when the operation began, or where jobs of its state wait.
func places(o *ingest.Operation) (all []place) {
	if o.Filter.Collection != "" {
		return []place{{"list", "jobs#" + o.Filter.Collection, fmt.Sprintf("%013d#~", o.Created)}}
	}
	for _, pk := range ingest.PlacesOf(o.Filter.State) {
		all = append(all, place{"work", pk, "~"})
	}
	return all
}

// indexPage is the number of index rows that one page reads.
const indexPage = 500

// placed lists the next jobs in the places of an operation. The cursor is the number of the
// place and the last rank in it.
func (q *Queue) placed(ctx context.Context, o *ingest.Operation) (ids []string, cursor string, err error) {
	all := places(o)
	number, from, _ := strings.Cut(o.Cursor, " ")
	n, _ := strconv.Atoi(number)
	if n >= len(all) {
		return nil, "", nil
	}
	at := all[n]
	var page []placedRow
	query := table.Query{Index: at.index, PK: at.pk, From: from + " ", To: at.to, Limit: indexPage}
	more, err := q.Table.Page(ctx, query, &page)
	if err != nil {
		return nil, "", err
	}
	states := o.States()
	for _, row := range page {
		rank := row.WorkSK
		if at.index == "list" {
			rank = row.ListSK
		}
		if strings.HasPrefix(row.PK, jobKey("").PK) && (row.State == "" || slices.Contains(states, row.State)) {
			ids = append(ids, row.ID)
		}
		if len(ids) == planPage {
			return ids, fmt.Sprintf("%d %s", n, rank), nil
		}
		from = rank
	}
	switch {
	case more != "":
		cursor = fmt.Sprintf("%d %s", n, from)
	case n+1 < len(all):
		cursor = fmt.Sprintf("%d ", n+1)
	}
	return ids, cursor, nil
}
