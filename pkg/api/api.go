// Package api serves the HTTP API: it checks requests, calls the services, and converts
// their results to the wire types.
//
//	a := &api.API{Queue: q, Inventory: objects, Collections: profiles, Root: root, Work: work, Log: log}
//	err := http.ListenAndServe("127.0.0.1:8080", a.Handler())
//
// A route is one call of get, register or redirect, and one entry in operations, which adds
// to the OpenAPI document what the types do not express. The wire types are those of package v1;
// their comments are the descriptions of the fields, in go doc and in the document alike.
// A test fails for a route, a field or a refusal that is not described.
//
// Every error response is a problem document (RFC 9457): a handler returns an error of a
// kind of package fault, and problem turns it into one of problemTypes. Unknown paths,
// methods and media types, and panics, are answered in the same form. Gateway has the
// responses of API Gateway to requests that do not reach the function.
//
// The API does not know under which path a gateway serves it. So all of its own URLs are
// relative: Location, Link, the server of the document, and the files of the page at /docs.
package api

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"strings"
	"sync"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	v1 "archivist/pkg/api/v1"
	"archivist/pkg/browse"
	"archivist/pkg/bucket"
	"archivist/pkg/collection"
	"archivist/pkg/component"
	"archivist/pkg/consumer"
	"archivist/pkg/event"
	"archivist/pkg/fault"
	"archivist/pkg/feed"
	"archivist/pkg/history"
	"archivist/pkg/identity"
	"archivist/pkg/ingest"
	"archivist/pkg/inventory"
	"archivist/pkg/ocfl"
	"archivist/pkg/provenance"
	"archivist/pkg/queue"
	"archivist/pkg/research"
	"archivist/pkg/revision"
	"archivist/pkg/search"
	"archivist/pkg/statistics"
)

// API holds the services that the handlers use.
type API struct {
	Queue       *queue.Queue
	Inventory   inventory.Store
	Collections collection.Store
	Index       search.Index
	Browse      browse.Store
	Root        ocfl.Root
	Work        bucket.Bucket
	Derived     bucket.Bucket // what consumers of events make: thumbnails, manifests
	History     history.Store
	Statistics  statistics.Store
	Identity    identity.Resolver
	Archive     provenance.Archive // for histories in PREMIS
	// EventArchive is the archive of events; nil if there is none.
	EventArchive Verifier
	EventLog     consumer.Log
	Epochs       EpochRaiser
	Consumers    *consumer.Store
	Components   *component.Store
	Runs         Runs
	Research     *research.Store
	Feeds        *feed.Looker // of research; it only looks at rows
	// Revisions is the revision queue. It opens no archives; what tasks have left is in Work.
	Revisions *revision.Store
	// Preview says what a revision would plan that is not planned yet: it reads the archive.
	Preview     func(ctx context.Context, archive string, n int64) (revision.Preview, error)
	PendingWork research.Inbox // the queues of pending work
	// CompletedWork puts reports on the queue of completed work.
	CompletedWork func(ctx context.Context, reports []research.Report) error
	// Keys are what the keys of the API allow, by their ids. A key that is not among them allows nothing. nil: calls
	// need no key, as on a local stack.
	Keys map[string]Access
	Log  *slog.Logger

	mu    sync.Mutex
	known map[string]*ocfl.Stored // cached inventories
}

// output is the response of a handler: the body as JSON.
type output[T any] struct{ Body T }

// Handler returns the handler of the API's routes, with the OpenAPI document at
// /openapi.json and its page at /docs.
func (a *API) Handler() http.Handler {
	mux := http.NewServeMux()
	h := humago.New(mux, configuration())
	h.UseMiddleware(a.permitted, a.deployed)
	a.batches(h)
	a.jobs(h)
	a.actions(h)
	a.bulk(h)
	a.objects(h)
	a.searching(h)
	a.reindexing(h)
	a.verifying(h)
	a.collections(h)
	a.eventLog(h)
	a.eventLogActions(h)
	a.consumers(h)
	a.replays(h)
	a.premises(h)
	a.components(h)
	a.componentItems(h)
	a.research(h)
	a.archives(h)
	if err := complete(h); err != nil {
		panic(err) // a route has no description: every test of a handler fails
	}
	docs(mux)
	return a.guarded(a.caused(routed(mux)))
}

// register registers a route whose response is JSON.
func register[I, O any](a *API, h huma.API, op huma.Operation, f func(context.Context, *I) (O, error)) {
	huma.Register(h, op, func(ctx context.Context, in *I) (*output[O], error) {
		out, err := f(ctx, in)
		if err != nil {
			return nil, a.problem(err)
		}
		return &output[O]{out}, nil
	})
}

// get registers a GET route under its id in operations.
func get[I, O any](a *API, h huma.API, path, id, summary string, f func(context.Context, *I) (O, error)) {
	register(a, h, huma.Operation{Method: http.MethodGet, Path: path, OperationID: id, Summary: summary}, f)
}

// found is a redirect to a URL of the storage.
type found struct {
	Status   int
	Location string `header:"Location" doc:"The URL of the content." example:"https://s3.example.org/key?signature"`
}

// redirect registers a GET route that redirects to a URL.
func redirect[I any](a *API, h huma.API, path, id, summary string, f func(context.Context, *I) (string, error)) {
	op := huma.Operation{Method: http.MethodGet, Path: path, OperationID: id, Summary: summary,
		DefaultStatus: http.StatusFound}
	huma.Register(h, op, func(ctx context.Context, in *I) (*found, error) {
		url, err := f(ctx, in)
		if err != nil {
			return nil, a.problem(err)
		}
		return &found{http.StatusFound, url}, nil
	})
}

// operationEvents begins the types of the events of operations.
const operationEvents = "operation."

func wireEvent(r event.Row) v1.Event {
	detail := json.RawMessage(r.Detail)
	var profile collection.Profile
	if r.Type == v1.EventCollectionProfile && json.Unmarshal(detail, &profile) == nil {
		detail, _ = json.Marshal(wireProfile(profile)) // cannot fail: it has only strings and numbers
	}
	var change queue.OperationChange
	if strings.HasPrefix(r.Type, operationEvents) && json.Unmarshal(detail, &change) == nil {
		detail, _ = json.Marshal(wireChange(change))
	}
	return v1.Event{ID: r.ID, Version: r.Version, Type: r.Type, Time: ingest.Timestamp(r.Time), Outcome: r.Outcome,
		Actor: r.Actor, Component: r.Component, Detail: detail}
}

func (a *API) events(subject event.Type) func(ctx context.Context, in *IDCursor) (v1.List[v1.Event], error) {
	return func(ctx context.Context, in *IDCursor) (v1.List[v1.Event], error) {
		p, err := a.Queue.Events(ctx, event.Subject{Type: subject, ID: in.ID}, in.Cursor)
		if err == nil && len(p.Items) == 0 && in.Cursor == "" {
			err = fault.New(fault.NotFound, "there is no %s %q", strings.ToLower(subject.String()), in.ID)
		}
		return list(p, wireEvent), err
	}
}

func wireExplanation(x queue.Explanation, err error) (v1.Explanation, error) {
	d := x.Details
	return v1.Explanation{State: x.State, WaitsFor: string(x.Waits), Why: x.Why, On: x.On, Execution: d.Execution,
		Tries: d.Tries, Repairs: d.Repairs, Leased: timestamp(d.Leased), Due: timestamp(d.Due)}, err
}

// IDInput and the inputs below are parameters of routes. They are exported
// because huma fills embedded structs only then.
type IDInput struct {
	ID string `path:"id" maxLength:"64"`
}

// IDCursor names a thing and a page of a list of it.
type IDCursor struct {
	ID     string `path:"id" maxLength:"64"`
	Cursor string `query:"cursor"`
}
