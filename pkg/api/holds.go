package api

import (
	"context"

	"archivist/pkg/api/status"
	v1 "archivist/pkg/api/v1"
	"archivist/pkg/ingest"
	"archivist/pkg/ingest/queue"
)

// wireHold is the wire form of a hold with the target that it is on.
func wireHold(h queue.Hold) v1.Hold { return status.HoldOf(h.Target(), h.Hold) }

// holdOn is the hold that stops a job or a batch: its own, that of its batch, or that of its
// collection. The row of a job or a batch says which of these it is, not the id of the target.
func holdOn(h *ingest.Hold, job, batch, collection string) *v1.Hold {
	t := ingest.Target{Kind: h.Scope, ID: job}
	switch h.Scope {
	case ingest.TargetBatch:
		t.ID = batch
	case ingest.TargetCollection:
		t.ID = collection
	}
	out := status.HoldOf(t, *h)
	return &out
}

// active returns the hold of the first of some targets that is held, nil if none is. It reads all
// holds: there are few.
func (a *API) active(ctx context.Context, targets ...ingest.Target) (*v1.Hold, error) {
	all, err := a.Queue.Holds(ctx)
	for _, t := range targets {
		for _, h := range all {
			if h.Target() == t {
				out := wireHold(h)
				return &out, err
			}
		}
	}
	return nil, err
}
