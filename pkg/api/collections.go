package api

import (
	"context"
	"slices"

	"github.com/danielgtaylor/huma/v2"

	v1 "archivist/pkg/api/v1"
	"archivist/pkg/events/event"
	"archivist/pkg/ingest"
	"archivist/pkg/ingest/queue"
)

// NameInput names a collection.
type NameInput struct {
	Name string `path:"name" maxLength:"100"`
}

// NameCursor names a collection and a page of one of its lists.
type NameCursor struct {
	NameInput
	Cursor string `query:"cursor"`
}

// PutProfile is a request to replace a collection's profile.
type PutProfile struct {
	NameInput
	Acting
	Body v1.Profile
}

// collections registers the routes of collections. A collection exists by being named: there is no
// route that makes one.
func (a *API) collections(h huma.API) {
	const path = "/v1/collections/{name}"
	get(a, h, "/v1/collections", "listCollections", "List the collections", a.listCollections)
	get(a, h, path, "getCollection", "Get a collection's profile", a.collection)
	get(a, h, path+"/events", "listCollectionEvents", "List a collection's events",
		a.collectionEvents)
	put(a, h, path, "putCollection", "Put a collection's profile", a.putCollection)
}

// listCollections lists the names of all collections, in their order: those that submissions have named, and
// those that events were counted for, which earlier versions did not note. The cursor is the last name.
func (a *API) listCollections(ctx context.Context, in *Cursor) (out v1.List[v1.CollectionName], err error) {
	names, err := a.Queue.Collections(ctx, in.Cursor)
	if err != nil {
		return out, err
	}

	last := "~" // behind every name
	if len(names) == queue.CollectionsPage {
		last = names[len(names)-1]
		out.Cursor = last
	}

	counted, err := a.Statistics.Collections(ctx)
	if err != nil {
		return out, err
	}
	for _, name := range counted {
		if name > in.Cursor && name <= last {
			names = append(names, name)
		}
	}

	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		out.Items = append(out.Items, v1.CollectionName{Name: name})
	}
	return out, nil
}

// collection is the profile of a collection, which is the default if it has none of its own, and the
// hold on it.
func (a *API) collection(ctx context.Context, in *NameInput) (v1.Collection, error) {
	p, known, err := a.Collections.Profile(ctx, in.Name)
	if err != nil {
		return v1.Collection{}, err
	}
	hold, err := a.active(ctx, ingest.Target{Kind: ingest.TargetCollection, ID: in.Name})
	if err != nil {
		return v1.Collection{}, err
	}

	out := v1.Collection{Name: in.Name, Default: !known, Hold: hold, Profile: wireProfile(p),
		Actions: possible(ctx, ingest.TargetCollection, ingest.HoldAllows(hold != nil))}
	used, err := a.used(ctx, in.Name)
	if !used && err == nil {
		out.New = true
		out.Near, err = a.Queue.Near(ctx, in.Name)
	}
	return out, err
}

// collectionEvents lists the events of a collection, a page at a time. One without events has an empty
// list, since every name is one of a collection.
func (a *API) collectionEvents(ctx context.Context, in *NameCursor) (v1.List[v1.Event], error) {
	rows, next, err := a.Collections.Events(ctx, in.Name, in.Cursor)
	return list(queue.Page[event.Row]{Items: rows, Cursor: next}, wireEvent), err
}

// putCollection replaces the profile as a whole: what the request leaves out gets its default. The
// store checks what it says.
func (a *API) putCollection(ctx context.Context, in *PutProfile) (v1.Collection, error) {
	by, err := in.by("")
	if err != nil {
		return v1.Collection{}, err
	}

	p := profileOf(in.Body)
	err = a.Collections.Put(ctx, in.Name, p, by, a.Queue.Now().UnixMilli())
	return v1.Collection{Name: in.Name, Profile: wireProfile(p)}, err
}
