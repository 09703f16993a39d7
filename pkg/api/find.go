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
	Order      string `query:"order" enum:"newest,oldest"`
	Cursor     string `query:"cursor"`
	Limit      int    `query:"limit" minimum:"1" maximum:"50" default:"50"`
}

// selected is the selection as the queue understands it. known are the states. Without a collection it is of all.
func (a *API) selected(ctx context.Context, in Selection, known []string) (f queue.Find, err error) {
	f = queue.Find{Submitter: in.Submitter, Message: in.Message, Cursor: in.Cursor, Limit: in.Limit,
		Oldest: in.Order == v1.Oldest,
		Until:  a.Queue.Now().Add(searchFor)}
	if in.Message != "" {
		f.Until = a.Queue.Now().Add(rowsFor)
	}
	if f.State, err = filterBy(in.State, known); err != nil {
		return f, err
	}
	if f.After, err = instant("after", in.After); err != nil {
		return f, err
	}
	if f.Before, err = instant("before", in.Before); err != nil {
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
	LocalID string `query:"localId" maxLength:"500"`
	ARK     string `query:"ark" maxLength:"500"`
}

// listJobs lists jobs, of a collection or of all. An unknown collection has none.
func (a *API) listJobs(ctx context.Context, in *JobSelection) (out v1.List[v1.Job], err error) {
	f, err := a.selected(ctx, in.Selection, v1.JobStates)
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

	p, err := a.Queue.FindJobs(ctx, f)
	return list(p, wireJob), err
}

// listBatches lists batches, of a collection or of all. An unknown collection has none.
func (a *API) listBatches(ctx context.Context, in *Selection) (out v1.List[v1.Batch], err error) {
	f, err := a.selected(ctx, *in, v1.BatchStates)
	if err != nil {
		return out, err
	}

	p, err := a.Queue.FindBatches(ctx, f)
	if err != nil {
		return out, err
	}

	counts, err := a.Queue.CountsOf(ctx, p.Items)
	out = v1.List[v1.Batch]{Items: make([]v1.Batch, len(p.Items)), Cursor: p.Cursor}
	for i := range p.Items {
		out.Items[i] = wireBatch(&p.Items[i], counts[i])
	}
	return out, err
}
