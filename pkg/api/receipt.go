package api

import (
	"context"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	v1 "archivist/pkg/api/v1"
	"archivist/pkg/ark"
	"archivist/pkg/fault"
	"archivist/pkg/ingest"
)

// receipt says what is preserved of a job, from the stored object: a page of its
// files at a time.
func (a *API) receipt(ctx context.Context, in *struct {
	IDInput
	Cursor string `query:"cursor"`
}) (v1.Receipt, error) {
	j, err := a.Queue.Job(ctx, in.ID)
	if err != nil {
		return v1.Receipt{}, err
	}
	if j.ObjectVersion == 0 {
		return v1.Receipt{}, fault.New(fault.Conflict, "job %s is %s: nothing of it is preserved yet", in.ID, j.State)
	}
	stored, err := a.head(ctx, j.Primary)
	if err != nil {
		return v1.Receipt{}, err
	}
	files, next, err := a.page(ctx, stored, j.ObjectVersion, in.Cursor)
	if err != nil {
		return v1.Receipt{}, err
	}
	r := v1.Receipt{Job: in.ID, Batch: j.Batch, ARK: j.Primary, Version: j.ObjectVersion, NoChange: j.NoChange,
		Created: ingest.Timestamp(stored.Versions[j.ObjectVersion].Created.UnixMilli()), Files: []v1.ReceiptFile{}, Cursor: next}
	for _, f := range files {
		file := v1.ReceiptFile{Path: f.Path, Size: f.Size, Digests: f.Digests}
		if f.Given != "" {
			file.Given = &v1.Digest{Algorithm: f.Given, Value: f.Digests[f.Given]}
		}
		r.Files = append(r.Files, file)
	}
	return r, nil
}

// reindexFor is how long one request reindexes: a gateway waits 29 seconds.
const reindexFor = 15 * time.Second

// reindexing registers the routes that rebuild rows from the storage root.
func (a *API) reindexing(h huma.API) {
	get(a, h, "/v1/jobs/{id}/receipt", "What is preserved of a job, file by file", a.receipt)
	huma.Register(h, huma.Operation{Method: http.MethodPost, Path: "/v1/reindex", Summary: "Rebuild missing rows of stored objects, a page at a time", OperationID: "reindex"},
		func(ctx context.Context, in *struct {
			ARK    string `query:"ark" doc:"of one object; all when not given"`
			Cursor string `query:"cursor" doc:"of the answer before; left out to begin. Any beginning of a place in the storage root is one, e.g. a0"`
			To     string `query:"to" doc:"ends before this place, e.g. b; so several can share the work"`
		}) (*output[v1.Reindexed], error) {
			out, err := a.reindex(ctx, in.ARK, in.Cursor, in.To)
			if err != nil {
				return nil, a.problem(err)
			}
			return &output[v1.Reindexed]{out}, nil
		})
}

func (a *API) reindex(ctx context.Context, id, cursor, to string) (v1.Reindexed, error) {
	const actor = "an operator"
	until := a.Stages.Now().Add(reindexFor)
	if id == "" {
		sum, err := a.Stages.ReindexAll(ctx, cursor, to, actor, until)
		out := v1.Reindexed{Objects: sum.Objects, Changed: sum.Changed, Cursor: sum.Cursor}
		for _, f := range sum.Failed {
			out.Failed = append(out.Failed, v1.NotReindexed{ARK: f.ARK, Stored: f.Key, Why: f.Why})
		}
		return out, err
	}
	parsed, err := ark.Parse(id)
	if err != nil {
		return v1.Reindexed{}, fault.New(fault.Invalid, "ark: %w", err)
	}
	changed, done, err := a.Stages.Reindex(ctx, parsed.String(), actor, until)
	if err != nil {
		return v1.Reindexed{}, err
	}
	out := v1.Reindexed{}
	if changed {
		out.Changed = 1
	}
	if out.Objects = 1; !done {
		out.Objects, out.Changed, out.Cursor = 0, 0, parsed.String() // to be asked for again
	}
	return out, nil
}
