package api

import (
	"context"
	"net/http"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	v1 "archivist/pkg/api/v1"
	"archivist/pkg/checkm"
	"archivist/pkg/fault"
	"archivist/pkg/ocfl"
	"archivist/pkg/queue"
)

// receipt says what is preserved of a job, from the stored object.
func (a *API) receipt(ctx context.Context, in *IDInput) (v1.Receipt, error) {
	j, err := a.Queue.Job(ctx, in.ID)
	if err != nil {
		return v1.Receipt{}, err
	}
	if j.ObjectVersion == 0 {
		return v1.Receipt{}, fault.New(fault.Conflict, "job %s is %s: nothing of it is preserved yet", in.ID, j.State)
	}
	stored, err := a.Root.Head(ctx, j.Primary)
	if err != nil {
		return v1.Receipt{}, err
	}
	files, err := a.Root.Files(ctx, stored, j.ObjectVersion)
	if err != nil {
		return v1.Receipt{}, err
	}
	given, err := a.given(ctx, j, stored)
	if err != nil {
		return v1.Receipt{}, err
	}
	r := v1.Receipt{Job: in.ID, Batch: j.Batch, ARK: j.Primary, Version: j.ObjectVersion, NoChange: j.NoChange, Created: instant(stored.CreatedAt(j.ObjectVersion).UnixMilli()), Files: []v1.ReceiptFile{}}
	for _, f := range files {
		if name, of := strings.CutPrefix(f.Path, "producer/"); of {
			r.Files = append(r.Files, v1.ReceiptFile{Path: f.Path, Size: f.Size, Digests: f.Digests, Given: given[name]})
		}
	}
	return r, nil
}

// given are the depositor's digests by file name: of the manifest that is kept
// with the version, or of the one file.
func (a *API) given(ctx context.Context, j *queue.Job, stored *ocfl.Stored) (map[string]*v1.Digest, error) {
	out := map[string]*v1.Digest{}
	if d := j.Payload.Digest; d != "" {
		out[j.Payload.Filename] = &v1.Digest{Algorithm: j.Algorithm, Value: d}
	}
	body, err := a.Root.Open(ctx, stored, j.ObjectVersion, "system/mrt-submission-manifest.checkm")
	if fault.Is(err, fault.NotFound) {
		return out, nil
	}
	if err != nil {
		return nil, err
	}
	defer body.Close()
	_, _, err = checkm.Read(body, checkm.Options{}, func(r checkm.Row) error {
		if r.Digest != "" {
			out[r.Name] = &v1.Digest{Algorithm: r.Algorithm, Value: r.Digest}
		}
		return nil
	})
	return out, err
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
