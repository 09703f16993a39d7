package stage

import (
	"context"
	"fmt"
	"time"

	"archivist/pkg/callback"
	"archivist/pkg/collection"
	"archivist/pkg/fetch"
	"archivist/pkg/ingest"
	"archivist/pkg/queue"
)

// notify ends the job's work: the work files are no longer needed, and the
// depositor's server hears of the version, if the profile names one.
func (s *Stages) notify(ctx context.Context, h *queue.Claim) (ingest.Result, error) {
	j := h.Job
	all, err := s.Clean(ctx, j.ID, h.Until)
	if err != nil {
		return ingest.Result{}, err
	}
	if !all {
		return ingest.Result{Outcome: ingest.StepContinue}, nil
	}
	j.HasSpace, j.URL = false, fetch.Redact(j.URL) // it is not fetched again
	profile, _, err := s.Collections.Profile(ctx, j.Collection)
	if err != nil || profile.Callback.URL == "" {
		return next, err
	}
	err = s.callback(ctx, profile.Callback, j)
	switch {
	case err == nil:
		return next, nil
	case profile.Callback.Mode == collection.BestEffort:
		h.Remark(fmt.Sprintf("the callback was not delivered: %v", err))
		return next, nil
	}
	return ingest.Fail(true, fmt.Sprintf("notification failed: %v. Correct the server of the callback", err)), nil
}

// callback tells a depositor's server that the job is preserved.
func (s *Stages) callback(ctx context.Context, c collection.Callback, j *ingest.Job) error {
	key, err := s.Secret(ctx, c.Secret)
	if err != nil {
		return fmt.Errorf("the secret %s cannot be read: %w", c.Secret, err)
	}
	p := callback.Preserved{ID: j.ID + ".preserved", Type: callback.TypePreserved, Job: j.ID, Batch: j.Batch,
		Collection: j.Collection, ARK: j.Primary, Version: j.ObjectVersion, NoChange: j.NoChange,
		LocalIDs: append([]string{}, j.LocalIDs...), Files: j.Files, Bytes: j.Bytes, InventoryDigest: j.Inventory}
	return callback.Sender{Fetch: s.Fetch, Now: s.Now}.Send(ctx, c.URL, key, p)
}

// Clean removes a job's work files until a time, and returns whether none is left.
func (s *Stages) Clean(ctx context.Context, job string, until time.Time) (all bool, err error) {
	return s.Work.Clean(ctx, job, until, s.Now)
}
