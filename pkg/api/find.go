package api

import (
	"context"
	"slices"
	"time"

	v1 "archivist/pkg/api/v1"
	"archivist/pkg/formats/ark"
	"archivist/pkg/ingest"
	"archivist/pkg/ingest/queue"
	"archivist/pkg/kernel/fault"
)

// Selection selects the batches or jobs of a list, and a page of it.
type Selection struct {
	Collection string `query:"collection" maxLength:"100"`
	State      string `query:"state"`
	Submitter  string `query:"submitter" maxLength:"200"`
	Message    string `query:"message" maxLength:"200"`
	After      string `query:"after" maxLength:"40"`
	Before     string `query:"before" maxLength:"40"`
	Order      string `query:"order" enum:"newest,oldest,ascending,descending"`
	Cursor     string `query:"cursor"`
	Limit      int    `query:"limit" minimum:"1" maximum:"50" default:"50"`
}

// sorting is how a list is sorted, and the page of it.
func (in *Selection) sorting(of, sort string) sorting {
	return sorting{of, sort, in.Order, in.Cursor, in.Limit}
}

// selected is the selection as the queue understands it. known are the states. Without a collection it is of all.
func (a *API) selected(ctx context.Context, in Selection, sort string,
	known []string) (f queue.Find, err error) {
	if err := checkOrder(sort, in.Order); err != nil {
		return f, err
	}
	f = queue.Find{Submitter: in.Submitter, Message: in.Message, Cursor: in.Cursor, Limit: in.Limit,
		Oldest: in.Order == v1.Oldest,
		Until:  a.Queue.Now().Add(searchFor)}
	if in.Message != "" {
		f.Until = a.Queue.Now().Add(rowsFor)
	}
	if f.State, err = filterBy(in.State, known); err != nil {
		return f, err
	}
	if f.After, f.Before, err = between(in.After, in.Before); err != nil {
		return f, err
	}

	f.Names = a.collectionNames
	if in.Collection != "" {
		f.Collections = []string{in.Collection}
	}
	return f, nil
}

// collectionNames are the names of all collections: see listCollections.
func (a *API) collectionNames(ctx context.Context) (names []string, err error) {
	for in := (&Cursor{}); ; {
		page, err := a.listCollections(ctx, in)
		if err != nil {
			return nil, err
		}
		for _, c := range page.Items {
			names = append(names, c.Name)
		}
		in.Cursor = page.Cursor
		if in.Cursor == "" {
			return slices.Compact(names), nil
		}
	}
}

// between are the bounds of a time, 0 for none. Bounds between which there is no time are an
// Invalid: a list would be empty, as if nothing had been made.
func between(after, before string) (from, to int64, err error) {
	if from, err = instant("after", after); err != nil {
		return 0, 0, err
	}
	if to, err = instant("before", before); err != nil {
		return 0, 0, err
	}
	if from > 0 && to > 0 && from >= to {
		return 0, 0, fault.New(fault.Invalid, "before: found %q; expected a time that is later "+
			"than %s, from which on they are asked for: nothing is between", before, after)
	}
	return from, to, nil
}

// instant is a time in milliseconds since 1970; a day is its beginning in UTC.
func instant(field, given string) (int64, error) {
	if _, err := time.Parse(time.DateOnly, given); err == nil {
		given += "T00:00:00Z"
	}
	return ingest.ReadTime(field, given)
}

// JobSelection selects the jobs of a list.
type JobSelection struct {
	Selection
	Sort    string `query:"sort" enum:"state,since,space,title"`
	LocalID string `query:"localId" maxLength:"500"`
	ARK     string `query:"ark" maxLength:"500"`
}

// listJobs lists jobs, of a collection or of all. An unknown collection has none.
func (a *API) listJobs(ctx context.Context, in *JobSelection) (out v1.List[v1.Job], err error) {
	f, err := a.selected(ctx, in.Selection, in.Sort, v1.JobStates)
	if err != nil {
		return out, err
	}

	f.LocalID = in.LocalID
	if in.ARK != "" {
		given, err := ark.Parse(in.ARK)
		if err != nil {
			return out, fault.New(fault.Invalid, "ark: %w", err)
		}
		f.ARK = given.String()
	}

	if in.Sort != "" {
		all, err := a.Queue.AllJobs(ctx, f)
		if err != nil {
			return out, err
		}
		p, err := sortedJobs(all, in.sorting("jobs", in.Sort))
		return list(p, wireJob), err
	}
	p, err := a.Queue.FindJobs(ctx, f)
	return list(p, wireJob), err
}

// BatchSelection selects the batches of a list.
type BatchSelection struct {
	Selection
	Sort string `query:"sort" enum:"state,since,jobs,failed,bytes,submitter"`
}

// listBatches lists batches, of a collection or of all. An unknown collection has none.
func (a *API) listBatches(ctx context.Context, in *BatchSelection) (out v1.List[v1.Batch],
	err error) {
	f, err := a.selected(ctx, in.Selection, in.Sort, v1.BatchStates)
	if err != nil {
		return out, err
	}

	var page queue.Page[counted]
	if in.Sort != "" {
		page, err = a.sortedBatches(ctx, f, in.sorting("batches", in.Sort))
	} else {
		var p queue.Page[queue.Batch]
		p, err = a.Queue.FindBatches(ctx, f)
		page.Cursor = p.Cursor
		page.Items = each(p.Items, func(b queue.Batch) counted { return counted{Batch: b} })
	}
	if err == nil {
		err = a.count(ctx, page.Items)
	}
	if err != nil {
		return out, err
	}
	return list(page, func(b counted) v1.Batch { return wireBatch(&b.Batch, *b.counts) }), nil
}
