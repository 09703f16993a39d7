package stage

import (
	"context"
	"time"

	"archivist/pkg/ingest"
	"archivist/pkg/ocfl"
	"archivist/pkg/queue"
)

// store writes the version into the storage root and verifies it there.
func (s *Stages) store(ctx context.Context, h *queue.Held) (ingest.Result, error) {
	j := h.Job
	entries, err := s.ledger(ctx, versionKey(j.ID))
	if err != nil {
		return ingest.Result{}, err
	}
	files := make([]ocfl.File, len(entries))
	for i, e := range entries {
		files[i] = e.File
	}
	if err := s.Root.Init(ctx); err != nil {
		return ingest.Result{}, err
	}
	submitter := j.Submitter
	if submitter == "" {
		submitter = "unknown"
	}
	done, err := s.Root.Commit(ctx, ocfl.Commit{ID: j.Primary, Job: j.ID, Files: files, Fence: h.StillMine,
		Version: ocfl.Version{Created: time.UnixMilli(j.Stamp).UTC(), Message: message(j), User: &ocfl.User{Name: submitter, Address: "urn:archivist:submitter"}}})
	if err != nil {
		return ingest.Result{}, err
	}
	j.ObjectVersion, j.NoChange, j.Inventory = done.Number, done.NoChange, done.Digest
	return next, nil
}
