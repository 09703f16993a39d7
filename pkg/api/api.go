// Package api serves the HTTP API: it checks requests, calls the services, and converts
// their results to the wire types.
//
//	a := &api.API{Queue: q, Inventory: objects, Collections: profiles, Root: root, Work: work, Log: log}
//	err := http.ListenAndServe("127.0.0.1:8080", a.Handler())
//
// A route is one call of get, post, put, register or redirect, and one entry in operations, which adds
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
	"log/slog"
	"sync"
	"time"

	"archivist/pkg/api/status"
	v1 "archivist/pkg/api/v1"
	"archivist/pkg/components/component"
	"archivist/pkg/components/histories"
	"archivist/pkg/events/consumer"
	"archivist/pkg/events/eventlog"
	"archivist/pkg/ingest"
	"archivist/pkg/ingest/collection"
	"archivist/pkg/ingest/identity"
	"archivist/pkg/ingest/queue"
	"archivist/pkg/ingest/token"
	"archivist/pkg/ingest/upload"
	"archivist/pkg/kernel/access"
	"archivist/pkg/kernel/bucket"
	"archivist/pkg/kernel/explain"
	"archivist/pkg/kernel/table/restored"
	"archivist/pkg/objects/inventory"
	"archivist/pkg/objects/ocfl"
	"archivist/pkg/research"
	"archivist/pkg/research/feed"
	"archivist/pkg/revisions/revision"
	"archivist/pkg/views/acts"
	"archivist/pkg/views/browse"
	"archivist/pkg/views/formatcounts"
	"archivist/pkg/views/history"
	"archivist/pkg/views/search"
	"archivist/pkg/views/statistics"
)

// API holds the services that the handlers use. Handler makes its routes. The fields are set before and
// not changed afterwards; the methods can be called concurrently. A field whose service a deployment
// does not have is nil where its comment says so.
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
	Acts        acts.Store
	Replica     string // the name of the second bucket; "" = objects are not copied
	Statistics  statistics.Store
	Formats     formatcounts.Store
	Identity    identity.Resolver
	Uploads     *upload.Store
	Tokens      *token.Store
	Histories   histories.Writer // in PREMIS
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
	// Authenticator verifies the tokens of the issuer and the deployment's own; an access.Authenticator does it.
	Authenticator access.Verifies
	// Open says that calls need no token, as on a local stack without an issuer.
	Open bool
	// SignIn says where people sign in, for the command line; the zero value: nowhere.
	SignIn v1.SignIn
	// Settings are those of the deployment, as they are shown. They have no secrets.
	Settings v1.Settings
	// Resolves says that ARKs resolve here, for everybody.
	Resolves bool
	// Origins are those of web pages whose scripts may read the answers, as cors.Origins returns them; nil: none.
	Origins []string
	// Restored says how far restores of the table are.
	Restored *restored.Reader
	// Alarms returns the alarms of the deployment that are raised, and whether there are more; nil: it has none.
	Alarms func(ctx context.Context) (raised []status.Alarm, more bool, err error)
	Log    *slog.Logger

	// mu guards known, which is the only state that requests share.
	mu    sync.Mutex
	known map[string]*ocfl.Stored // cached inventories
}

// IDInput and the inputs below are parameters of routes. They are exported
// because huma fills embedded structs only then.
type IDInput struct {
	ID string `path:"id" maxLength:"64"`
}

// IDCursor names a thing and a page of a list of it. A cursor is what the page before had, "" for the
// first page. Clients must not read anything in it.
type IDCursor struct {
	ID     string `path:"id" maxLength:"64"`
	Cursor string `query:"cursor"`
}

// EpochRaiser raises the epoch of the log of events. After a restore of the table, a place of the log
// may have another event than before: the epoch tells the two apart.
type EpochRaiser interface {
	RaiseEpoch(ctx context.Context, by eventlog.By) (int64, error)
}

// Verifier checks the archive of events from a cursor on until a time. The cursor is "" at the
// beginning and after the end.
type Verifier interface {
	Verify(ctx context.Context, cursor string, until time.Time) (eventlog.Verified, error)
}

// Runs are the runs of components; component.Runner is one. A cursor is "" for the first page, and next
// is "" after the last.
type Runs interface {
	Start(ctx context.Context, name string, by component.By) (run string, err error)
	Interrupt(ctx context.Context, name string, by component.By) (runs []string, err error)
	Explain(ctx context.Context, name string) (explain.Explanation, error)
	ExplainRun(ctx context.Context, run string) (explain.Explanation, error)
	RunStatus(ctx context.Context, name, run, cursor string, limit int) (r component.Run,
		next string, err error)
	Runs(ctx context.Context, name, cursor string, limit int) (runs []component.Run, next string,
		err error)
}

// Cursor is a request for a page of a list.
type Cursor struct {
	Cursor string `query:"cursor"`
}

// timestamp is a time in ISO 8601, "" for 0. ms is milliseconds since 1970, as all times in rows; the
// text has seconds, and is in UTC. Optional fields are left out of the JSON when they are "".
func timestamp(ms int64) string {
	if ms == 0 {
		return ""
	}
	return ingest.Timestamp(ms)
}
