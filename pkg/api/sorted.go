package api

import (
	"cmp"
	"context"
	"encoding/base64"
	"fmt"
	"slices"
	"strings"

	v1 "archivist/pkg/api/v1"
	"archivist/pkg/ingest"
	"archivist/pkg/ingest/queue"
	"archivist/pkg/kernel/fault"
)

// sorting is how a list is sorted, and the page of it. Its pages are cut from all rows, which are
// read anew for each: a page begins behind the value and the id of the last row of the one
// before. So a row whose value stays is on exactly one page, whatever happens to others; one
// whose value changes can be on two, or on none.
type sorting struct {
	of     string // which list: its cursors are of no other
	sort   string
	order  string // "": the ordinary one
	cursor string
	limit  int
}

// checkOrder returns an Invalid for an order that a list by age, or one that is sorted, does not
// have.
func checkOrder(sort, order string) error {
	byAge := order == v1.Newest || order == v1.Oldest
	switch {
	case order == "":
	case sort == "" && !byAge:
		return fault.New(fault.Invalid, "order: found %q; expected newest or oldest, or also a "+
			"sort", order)
	case sort != "" && byAge:
		return fault.New(fault.Invalid, "order: found %q; expected ascending or descending with a "+
			"sort", order)
	}
	return nil
}

// valued is the place of a row in a sorted list. Values are compared as texts, then the ids are.
type valued[T any] struct {
	value, id string
	row       T
}

// begins is what the cursors of a sorted list begin with, so that none of another list is taken.
func (s sorting) begins() string {
	return "sorted." + s.of + "." + s.sort + "." + cmp.Or(s.order, v1.SortedFrom(s.sort)) + "."
}

// cursorAt is the cursor behind a place.
func (s sorting) cursorAt(value, id string) string {
	return s.begins() + base64.RawURLEncoding.EncodeToString([]byte(value)) + "." + id
}

// place is that of the cursor, which is not empty. One of another list is an Invalid.
func (s sorting) place() (value, id string, err error) {
	rest, is := strings.CutPrefix(s.cursor, s.begins())
	coded, id, has := strings.Cut(rest, ".")
	raw, err := base64.RawURLEncoding.DecodeString(coded)
	if !is || !has || err != nil {
		return "", "", badCursor(s.cursor)
	}
	return string(raw), id, nil
}

// sortedPage is a page of rows by their values. of names the value and the id of one.
func sortedPage[T any](rows []T, s sorting, of func(*T) (value, id string)) (page queue.Page[T],
	err error) {
	sign := 1
	if strings.HasSuffix(s.begins(), v1.Descending+".") {
		sign = -1
	}
	compare := func(a, b valued[T]) int {
		return cmp.Or(sign*strings.Compare(a.value, b.value), strings.Compare(a.id, b.id))
	}
	all := make([]valued[T], len(rows))
	for i := range rows {
		value, id := of(&rows[i])
		all[i] = valued[T]{value, id, rows[i]}
	}
	slices.SortFunc(all, compare)
	if s.cursor != "" {
		var last valued[T]
		if last.value, last.id, err = s.place(); err != nil {
			return page, err
		}
		all = slices.DeleteFunc(all, func(v valued[T]) bool { return compare(v, last) <= 0 })
	}
	if most := cmp.Or(s.limit, queue.FindPage); len(all) > most {
		all = all[:most]
		page.Cursor = s.cursorAt(all[most-1].value, all[most-1].id)
	}
	page.Items = each(all, func(v valued[T]) T { return v.row })
	return page, nil
}

// sortedJobs is a page of jobs by what they are sorted by.
func sortedJobs(rows []queue.Job, s sorting) (queue.Page[queue.Job], error) {
	return sortedPage(rows, s, func(j *queue.Job) (value, id string) {
		switch s.sort {
		case v1.ByState:
			return numbered(slices.Index(v1.JobStates, string(j.State))), j.Job.ID
		case v1.BySince:
			return numbered(cmp.Or(j.Entered, j.Created)), j.Job.ID
		case v1.BySpace:
			return numbered(j.SpaceNeeded), j.Job.ID
		}
		return titled(j), j.Job.ID
	})
}

// titled is a title as it is compared: in small letters, or the first local id of a job without
// one, or its source, as pages show it.
func titled(j *queue.Job) string {
	first := ""
	if len(j.LocalIDs) > 0 {
		first = j.LocalIDs[0]
	}
	return lettered(cmp.Or(j.What, first, j.Payload.Source()))
}

// lettered is a text as it is compared: by its first 100 characters, whatever their case.
func lettered(text string) string { return ingest.Cut(strings.ToLower(text), 100) }

// numbered is a number as a text in whose order numbers are. The least that is compared is -1.
func numbered[N ~int | ~int64](n N) string { return fmt.Sprintf("%020d", uint64(n)+1) }

// counted is a batch with its counts, nil while they were not read.
type counted struct {
	queue.Batch
	counts *ingest.Counts
}

// sortedBatches is a page of the batches of a filter with their counts.
func (a *API) sortedBatches(ctx context.Context, f queue.Find, s sorting) (queue.Page[counted],
	error) {
	found, err := a.Queue.AllBatches(ctx, f)
	if err != nil {
		return queue.Page[counted]{}, err
	}
	rows := each(found, func(b queue.Batch) counted { return counted{Batch: b} })
	if s.sort == v1.ByFailed || s.sort == v1.ByBytes {
		if err := a.count(ctx, rows); err != nil {
			return queue.Page[counted]{}, err
		}
	}
	return sortedPage(rows, s, func(b *counted) (value, id string) {
		switch id = b.Batch.Batch.ID; s.sort {
		case v1.ByState:
			return numbered(slices.Index(v1.BatchStates, string(b.State))), id
		case v1.BySince:
			return numbered(cmp.Or(b.Entered, b.Created)), id
		case v1.ByJobs:
			return numbered(b.Expected), id
		case v1.ByFailed:
			return numbered(b.counts.Failed), id
		case v1.ByBytes:
			return numbered(b.counts.Bytes), id
		}
		return lettered(b.Depositor()), id
	})
}

// count reads the counts of batches that have none yet, which are all or none of them.
func (a *API) count(ctx context.Context, rows []counted) error {
	if len(rows) == 0 || rows[0].counts != nil {
		return nil
	}
	counts, err := a.Queue.CountsOf(ctx, each(rows, func(b counted) queue.Batch { return b.Batch }))
	if err != nil {
		return err
	}
	for i := range rows {
		rows[i].counts = &counts[i]
	}
	return nil
}
