package queue

import (
	"context"

	"archivist/pkg/ingest"
	"archivist/pkg/kernel/fault"
)

// How many rows of a list are read whole, to be sorted, at most: of those that a filter finds, and of
// the jobs of a batch, which need no search. So a page costs at most ten calls of the table, with the
// counts of batches.
const (
	MostSorted   = 400
	MostSortedOf = 800
)

// AllJobs are all jobs that FindJobs finds on all pages, newest first. More than MostSorted are an
// Invalid, which is found out without reading their rows, unless a message has to be compared.
func (q *Queue) AllJobs(ctx context.Context, f Find) ([]Job, error) {
	return q.searchJobs(f).all(ctx, "jobs")
}

// AllBatches are all batches that FindBatches finds on all pages, as AllJobs.
func (q *Queue) AllBatches(ctx context.Context, f Find) ([]Batch, error) {
	return q.searchBatches(f).all(ctx, "batches")
}

// AllJobsOf are all jobs of a batch, in the order of their rows. More than MostSortedOf are an
// Invalid.
func (q *Queue) AllJobsOf(ctx context.Context, batch string) ([]Job, error) {
	b, err := q.Batch(ctx, batch)
	if err != nil {
		return nil, err
	}
	if b.Unpacked > MostSortedOf {
		return nil, fault.New(fault.Invalid, "sort: the batch has %s jobs, and at most %s can be "+
			"sorted",
			ingest.Number(b.Unpacked), ingest.Number(MostSortedOf))
	}
	ids := make([]string, b.Unpacked)
	for i := range ids {
		ids[i] = ingest.JobID(batch, i+1)
	}
	rows, err := readRows[Job](ctx, q.Table, ids, jobKey)
	return present(rows), err
}

// all finds all that is wanted as one page. what names it in the plural.
func (s *search[T]) all(ctx context.Context, what string) ([]T, error) {
	s.Cursor, s.Limit, s.whole = "", MostSorted, true
	page, err := s.merged(ctx)
	switch {
	case err != nil:
		return nil, err
	case s.ended:
		return nil, fault.New(fault.Invalid, "sort: to find all %s that match takes too long; "+
			"narrow the filter to sort them", what)
	case page.Cursor != "":
		return nil, fault.New(fault.Invalid, "sort: more than %s %s match; narrow the filter to "+
			"sort them",
			ingest.Number(MostSorted), what)
	}
	return page.Items, nil
}

// tooMany reports whether a list that is wanted whole goes on behind these entries, which say
// themselves that their rows are wanted. Its rows are not read then.
func (s *search[T]) tooMany(some []entry) bool {
	return s.whole && s.Message+s.LocalID+s.ARK == "" && len(some) >= s.most() && len(s.left) > 0
}
