package api

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	v1 "archivist/pkg/api/v1"
	"archivist/pkg/fault"
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
		Created: instant(stored.Versions[j.ObjectVersion].Created.UnixMilli()), Files: []v1.ReceiptFile{}, Cursor: next}
	for _, f := range files {
		file := v1.ReceiptFile{Path: f.Path, Size: f.Size, Digests: f.Digests}
		if f.Given != "" {
			file.Given = &v1.Digest{Algorithm: f.Given, Value: f.Digests[f.Given]}
		}
		r.Files = append(r.Files, file)
	}
	return r, nil
}

// reindexing registers the routes that rebuild rows from the storage root.
func (a *API) reindexing(h huma.API) {
	get(a, h, "/v1/jobs/{id}/receipt", "What is preserved of a job, file by file", a.receipt)
	huma.Register(h, huma.Operation{Method: http.MethodPost, Path: "/v1/reindex", Summary: "Rebuild missing rows of stored objects, a page at a time", OperationID: "reindex"},
		func(ctx context.Context, in *struct {
			ARK    string `query:"ark" doc:"of one object; all when not given"`
			Cursor string `query:"cursor"`
		}) (*output[v1.Reindexed], error) {
			ids, next := []string{in.ARK}, ""
			if in.ARK == "" {
				var err error
				if ids, next, err = a.Root.Objects(ctx, in.Cursor); err != nil {
					return nil, a.told(err)
				}
			}
			out := v1.Reindexed{Objects: len(ids), Cursor: next}
			for _, id := range ids {
				changed, err := a.Stages.Reindex(ctx, id, "an operator")
				if err != nil {
					return nil, a.told(err)
				}
				if changed {
					out.Changed++
				}
			}
			return &output[v1.Reindexed]{out}, nil
		})
}
