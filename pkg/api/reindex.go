package api

import (
	"context"
	"regexp"
	"time"

	"github.com/danielgtaylor/huma/v2"

	v1 "archivist/pkg/api/v1"
	"archivist/pkg/formats/ark"
	"archivist/pkg/ingest"
	"archivist/pkg/ingest/queue"
	"archivist/pkg/ingest/reindex"
	"archivist/pkg/kernel/fault"
)

// reindexFor is how long one request reindexes: a gateway waits only 29 seconds.
const reindexFor = 15 * time.Second

// ReindexInput selects what to reindex.
type ReindexInput struct {
	Caller
	ARK    string `query:"ark"`
	Cursor string `query:"cursor"`
	To     string `query:"to"`
}

// reindexing registers the route that rebuilds rows from the storage root.
func (a *API) reindexing(h huma.API) {
	post(a, h, "/v1/reindex", "reindex", "Rebuild missing rows of stored objects",
		func(ctx context.Context, in *ReindexInput) (v1.Reindexed, error) {
			actor, err := in.actor()
			if err != nil {
				return v1.Reindexed{}, err
			}
			until := a.Queue.Now().Add(reindexFor)
			if in.ARK != "" {
				return a.reindexOne(ctx, in, actor, until)
			}
			return a.reindexAll(ctx, in, actor, until)
		})
	put(a, h, "/v1/reindex/runs/{id}", "reportReindex", "Report how far a reindex is", a.reportReindex)
	get(a, h, "/v1/reindex/runs", "listReindexRuns", "List the reindexes of all objects",
		func(ctx context.Context, _ *struct{}) (v1.List[v1.ReindexRun], error) {
			runs, err := a.reindexRuns().List(ctx)
			return list(queue.Page[reindex.Run]{Items: runs}, a.wireReindex), err
		})
}

// ReindexReport is how far a reindex of all objects is.
type ReindexReport struct {
	Caller
	ID   string `path:"id" maxLength:"64" pattern:"^[A-Za-z0-9]+$"`
	Body v1.ReindexReport
}

// reindexRuns keeps how far reindexes of all objects are.
func (a *API) reindexRuns() reindex.Runs {
	return reindex.Runs{Table: a.Queue.Table, NewID: a.Queue.NewID, Now: a.Queue.Now}
}

// mostOfFailure bounds a text of a failure, in characters: a row has a limit.
const mostOfFailure = 500

// reportReindex records how far a reindex is. It changes nothing of what is reindexed.
func (a *API) reportReindex(ctx context.Context, in *ReindexReport) (out v1.ReindexRun, err error) {
	actor, err := in.actor()
	if err != nil {
		return out, err
	}
	b := in.Body
	if b.Done > b.Total {
		return out, fault.New(fault.Invalid, "done: found %d; expected at most %d, the total",
			b.Done, b.Total)
	}
	if b.Ended && b.Done < b.Total {
		return out, fault.New(fault.Invalid, "ended: found true with %d of %d done; a run has ended when all is done",
			b.Done, b.Total)
	}
	p := reindex.Progress{Done: b.Done, Total: b.Total, Objects: b.Objects, Changed: b.Changed,
		Failed: b.Failed}
	for _, f := range b.Failures {
		p.Failures = append(p.Failures, reindex.Failure{ARK: ingest.Cut(f.ARK, mostOfFailure),
			Key: ingest.Cut(f.Stored, mostOfFailure), Why: ingest.Cut(f.Why, mostOfFailure)})
	}
	run, err := a.reindexRuns().Report(ctx, in.ID, actor, p, b.Ended)
	if err != nil {
		return out, err
	}
	return a.wireReindex(run), nil
}

// wireReindex is the wire form of a run.
func (a *API) wireReindex(r reindex.Run) v1.ReindexRun {
	out := v1.ReindexRun{ID: r.ID, State: v1.ReindexRunning, Actor: r.Actor, Started: timestamp(r.Started),
		Reported: timestamp(r.Reported), SecondsLeft: int64(r.Left().Seconds())}
	out.ReindexReport = v1.ReindexReport{Done: r.Done, Total: r.Total, Objects: r.Objects, Changed: r.Changed,
		Failed: r.Failed, Ended: r.Ended > 0}
	for _, f := range r.Failures {
		out.Failures = append(out.Failures, v1.NotReindexed{ARK: f.ARK, Stored: f.Key, Why: f.Why})
	}
	switch {
	case r.Ended > 0:
		out.State = v1.ReindexDone
	case r.Interrupted(a.Queue.Now()):
		out.State, out.SecondsLeft = v1.ReindexInterrupted, 0
	}
	return out
}

// places matches prefixes of keys in the storage root: keys of objects begin with a
// hexadecimal digit, and the last key is the description of the layout.
var places = regexp.MustCompile(`^([0-9a-f][^\x00-\x1f\x7f\x{FFFD}]{0,999}|ocfl_layout\.json)$`)

// reindexer makes rows from the storage root, with the services of the API.
func (a *API) reindexer() reindex.Reindexer {
	return reindex.Reindexer{
		Root:      a.Root,
		Inventory: a.Inventory,
		NewID:     a.Queue.NewID,
		Now:       a.Queue.Now,
		Preserved: a.Queue.Preserved,
	}
}

// reindexAll goes through the storage root from a cursor, for reindexFor. The cursor of the response
// continues; it is "" at the end. Cursor and to are checked, because S3 would take any text for a key:
// two ranges that meet share the work of several requests. An object that cannot be read is listed as
// failed, and does not stop the others.
func (a *API) reindexAll(ctx context.Context, in *ReindexInput, actor string, until time.Time) (
	out v1.Reindexed, err error) {
	if in.Cursor != "" && !places.MatchString(in.Cursor) {
		return out, badCursor(in.Cursor)
	}

	if in.To != "" && !places.MatchString(in.To) {
		return out, fault.New(fault.Invalid,
			"to: found %q; expected a key prefix in the storage root, e.g. a0", in.To)
	}

	sum, err := a.reindexer().All(ctx, in.Cursor, in.To, actor, until)
	out = v1.Reindexed{Objects: sum.Objects, Changed: sum.Changed, Cursor: sum.Cursor}
	for _, f := range sum.Failed {
		out.Failed = append(out.Failed, v1.NotReindexed{ARK: f.ARK, Stored: f.Key, Why: f.Why})
	}
	return out, err
}

// reindexOne makes the rows of one object. If its versions are too many for a request, the response has
// the ARK as the cursor, and the same request continues: what is done is found again in the rows.
func (a *API) reindexOne(ctx context.Context, in *ReindexInput, actor string, until time.Time) (
	out v1.Reindexed, err error) {
	given, err := ark.Parse(in.ARK)
	if err != nil {
		return out, fault.New(fault.Invalid, "ark: %w", err)
	}

	id := given.String()
	if in.Cursor != "" && in.Cursor != id {
		return out, badCursor(in.Cursor)
	}

	changed, done, err := a.reindexer().Object(ctx, id, actor, until)
	switch {
	case fault.Is(err, fault.NotFound):
		return out, fault.New(fault.NotFound, "there is no object %s in the storage root", id)
	case err != nil:
		return out, err
	case !done:
		return v1.Reindexed{Cursor: id}, nil // to be repeated
	case changed:
		out.Changed = 1
	}

	out.Objects = 1
	return out, nil
}
