package queue

import (
	"context"
	"slices"

	"archivist/pkg/ingest"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/table"
)

// FindJobs lists jobs. Few that are in the state are found where they wait or run, the last of the newest batch first;
// else they are found in the lists of the collections, newest first. Neither place of a job changes while it is in the
// state, so that following pages have it once, however it moves. A cursor that is not of this list is an Invalid.
func (q *Queue) FindJobs(ctx context.Context, f Find) (Page[Job], error) {
	s := search[Job]{
		q: q, Find: f, partition: "jobs#",
		key:    jobKey,
		state:  func(e entry) string { return string(e.State) },
		wanted: func(j *Job) bool { return f.job(&j.Job) },
	}

	if f.State == "" || placed.MatchString(f.Cursor) {
		return s.merged(ctx)
	}
	most := fewJobs
	if f.Cursor != "" { // of a list of few: it stays one
		most = mostFound
	}
	ids, all, err := q.inState(ctx, ingest.State(f.State), f.Collections, most)
	switch {
	case err != nil:
		return Page[Job]{}, err
	case all:
		return s.among(ctx, ids)
	case f.Cursor != "":
		return Page[Job]{}, fault.New(fault.Stale,
			"there are too many jobs in the state now; begin again without a cursor")
	}
	return s.merged(ctx)
}

// FindBatches lists batches, newest first. LocalID and ARK are those of the submission.
func (q *Queue) FindBatches(ctx context.Context, f Find) (Page[Batch], error) {
	s := search[Batch]{
		q: q, Find: f, partition: "batches#",
		key:    batchKey,
		state:  func(e entry) string { return string(e.BatchState) },
		wanted: func(b *Batch) bool { return f.batch(&b.Batch) },
	}
	return s.merged(ctx)
}

// fewJobs is up to how many jobs at the places of a state are few.
const fewJobs = 5000

// mostPlaced is the number of rows of such places that are read, also those of others than jobs.
const mostPlaced = 20_000

// placesOf lists the places in the index "work" where jobs of a state are, in the order in which they are read. One of
// an open job is at a gate before it runs, and is parked or deferred after it ran. nil: ended jobs have no place.
func placesOf(s ingest.State) []string {
	if s == ingest.Held || s == ingest.Failed {
		return ingest.PlacesOf(s)
	}
	if !s.Open() {
		return nil
	}
	places := []string{ingest.WorkParked, ingest.WorkProvisioning, ingest.WorkPending}
	for shard := range ingest.DueShards {
		places = append(places, ingest.DuePK(shard))
	}
	return append(places, ingest.WorkParked)
}

// inState returns the ids of jobs that may be in a state, of some collections, unless there are more than most, or they
// are not at places of their own. The jobs of other states can be among them.
func (q *Queue) inState(ctx context.Context, s ingest.State, collections []string, most int) (ids []string, all bool,
	err error) {
	places, read := placesOf(s), 0
	for _, place := range places {
		query := table.Query{Index: "work", PK: place, Limit: mostListed}
		for more := true; more; more = query.Cursor != "" {
			var page []candidate
			if query.Cursor, err = q.Table.Page(ctx, query, &page); err != nil {
				return nil, false, err
			}
			for _, c := range page {
				if c.PK == jobKey(c.ID).PK && slices.Contains(collections, c.Collection) {
					ids = append(ids, c.ID)
				}
			}
			read += len(page)
			if len(ids) > most || read > mostPlaced && query.Cursor != "" {
				return nil, false, nil
			}
		}
	}
	return distinct(ids), len(places) > 0, nil
}

// among finds the page among the jobs with some ids, the greatest first. Ids rise with the time of the submission, and
// with the row in it.
func (s *search[T]) among(ctx context.Context, ids []string) (page Page[T], err error) {
	if s.Cursor != "" {
		if !jobID.MatchString(s.Cursor) {
			return page, badPlace(s.Cursor)
		}
		end, _ := slices.BinarySearch(ids, s.Cursor)
		ids = ids[:end]
	}

	slices.Reverse(ids)
	for i := 0; len(ids) > 0; i++ {
		if i > 0 && !s.q.Now().Before(s.Until) {
			return page, nil
		}

		some := ids[:min(len(ids), table.MaxGets)]
		rows, err := readRows[T](ctx, s.q.Table, some, s.key)
		if err != nil {
			return page, err
		}

		for n, row := range rows {
			page.Cursor = some[n]
			if row != nil && s.wanted(row) {
				page.Items = append(page.Items, *row)
			}
			if len(page.Items) == FindPage && len(ids) > n+1 {
				return page, nil
			}
		}
		ids = ids[len(some):]
	}
	page.Cursor = ""
	return page, nil
}
