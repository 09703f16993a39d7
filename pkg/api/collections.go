package api

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	v1 "archivist/pkg/api/v1"
	"archivist/pkg/collection"
	"archivist/pkg/event"
	"archivist/pkg/ingest"
	"archivist/pkg/queue"
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
	Caller
	Body v1.Profile
}

func (a *API) collections(h huma.API) {
	const path = "/v1/collections/{name}"
	get(a, h, path, "getCollection", "Get a collection's profile", a.collection)
	get(a, h, path+"/events", "listCollectionEvents", "List a collection's events", a.collectionEvents)
	register(a, h, huma.Operation{Method: http.MethodPut, Path: path, OperationID: "putCollection",
		Summary: "Put a collection's profile"}, a.putCollection)
}

func (a *API) collection(ctx context.Context, in *NameInput) (v1.Collection, error) {
	p, known, err := a.Collections.Profile(ctx, in.Name)
	if err != nil {
		return v1.Collection{}, err
	}
	hold, err := a.active(ctx, ingest.Target{Kind: ingest.TargetCollection, ID: in.Name})
	return v1.Collection{Name: in.Name, Default: !known, Hold: hold, Profile: wireProfile(p)}, err
}

func (a *API) collectionEvents(ctx context.Context, in *NameCursor) (v1.List[v1.Event], error) {
	rows, next, err := a.Collections.Events(ctx, in.Name, in.Cursor)
	return list(queue.Page[event.Row]{Items: rows, Cursor: next}, wireEvent), err
}

func (a *API) putCollection(ctx context.Context, in *PutProfile) (v1.Collection, error) {
	actor, err := in.actor()
	if err != nil {
		return v1.Collection{}, err
	}
	b := in.Body
	p := collection.Profile{Title: b.Title, Priority: b.Priority, Shoulder: b.Shoulder,
		RequireDigest: b.RequireDigest, Notify: b.Notification, Suppress: collection.Suppress(b.Suppress),
		Defer: b.Defer}
	if c := b.Callback; c != nil {
		p.Callback = collection.Callback{URL: c.URL, Secret: c.Secret, Mode: collection.Mode(c.Mode)}
	}
	err = a.Collections.Put(ctx, in.Name, p, actor, a.Queue.Now().UnixMilli())
	return v1.Collection{Name: in.Name, Profile: wireProfile(p)}, err
}

func wireProfile(p collection.Profile) v1.Profile {
	out := v1.Profile{Title: p.Title, Priority: p.Priority, Shoulder: p.Shoulder, RequireDigest: p.RequireDigest,
		Notification: p.Notify, Suppress: string(p.Suppress), Defer: p.Defer}
	if c := p.Callback; c.URL != "" {
		out.Callback = &v1.Callback{URL: c.URL, Secret: c.Secret, Mode: string(c.Mode)}
	}
	return out
}
