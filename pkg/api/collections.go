package api

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	v1 "archivist/pkg/api/v1"
	"archivist/pkg/collection"
	"archivist/pkg/event"
	"archivist/pkg/queue"
)

// NameInput names a collection.
type NameInput struct {
	Name string `path:"name" maxLength:"100"`
}

func (a *API) collections(h huma.API) {
	get(a, h, "/v1/collections/{name}", "getCollection", "Get a collection's profile",
		func(ctx context.Context, in *NameInput) (v1.Collection, error) {
			p, known, err := a.Collections.Profile(ctx, in.Name)
			return v1.Collection{Name: in.Name, Default: !known, Profile: wireProfile(p)}, err
		})
	get(a, h, "/v1/collections/{name}/events", "listCollectionEvents", "List a collection's events",
		func(ctx context.Context, in *struct {
			NameInput
			Cursor string `query:"cursor"`
		}) (v1.List[v1.Event], error) {
			rows, next, err := a.Collections.Events(ctx, in.Name, in.Cursor)
			return list(queue.Page[event.Row]{Items: rows, Cursor: next}, wireEvent), err
		})
	huma.Register(h, huma.Operation{Method: http.MethodPut, Path: "/v1/collections/{name}",
		Summary: "Put a collection's profile", OperationID: "putCollection"},
		func(ctx context.Context, in *struct {
			NameInput
			Body v1.Profile
		}) (*output[v1.Collection], error) {
			p := collection.Profile{Title: in.Body.Title, Priority: in.Body.Priority, Shoulder: in.Body.Shoulder,
				RequireDigest: in.Body.RequireDigest,
				Notify:        in.Body.Notification, Suppress: collection.Suppress(in.Body.Suppress)}
			if c := in.Body.Callback; c != nil {
				p.Callback = collection.Callback{URL: c.URL, Secret: c.Secret, Mode: collection.Mode(c.Mode)}
			}
			if err := a.Collections.Put(ctx, in.Name, p, operator, a.Queue.Now().UnixMilli()); err != nil {
				return nil, a.problem(err)
			}
			return &output[v1.Collection]{v1.Collection{Name: in.Name, Profile: wireProfile(p)}}, nil
		})
}

func wireProfile(p collection.Profile) v1.Profile {
	out := v1.Profile{Title: p.Title, Priority: p.Priority, Shoulder: p.Shoulder, RequireDigest: p.RequireDigest,
		Notification: p.Notify, Suppress: string(p.Suppress)}
	if c := p.Callback; c.URL != "" {
		out.Callback = &v1.Callback{URL: c.URL, Secret: c.Secret, Mode: string(c.Mode)}
	}
	return out
}
