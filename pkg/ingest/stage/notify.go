package stage

import (
	"context"
	"fmt"
	"time"

	"archivist/pkg/ingest"
	"archivist/pkg/ingest/callback"
	"archivist/pkg/ingest/collection"
	"archivist/pkg/ingest/queue"
	"archivist/pkg/ingest/workspace"
	"archivist/pkg/kernel/fetch"
)

// Notify ends the job's work: it removes the work files, and sends a callback to the
// depositor's server if the profile names one.
//
// The callback is sent at least once, and always with the same id. The profile decides
// whether a failure to deliver it fails the job: the version is preserved anyway.
type Notify struct {
	Work        workspace.Store
	Collections collection.Store
	Callbacks   callback.Sender
	Secret      func(ctx context.Context, name string) (string, error) // reads a secret by its name
	Now         func() time.Time
}

// Run cleans up and notifies.
func (n Notify) Run(ctx context.Context, claim *queue.Claim) (ingest.Result, error) {
	j := claim.Job
	all, err := n.Work.Clean(ctx, j.ID, claim.Until, n.Now)
	if err != nil {
		return ingest.Result{}, err
	}

	if !all {
		return ingest.Result{Outcome: ingest.StepContinue}, nil
	}

	j.HasSpace, j.URL = false, fetch.Redact(j.URL) // it is not fetched again
	profile, _, err := n.Collections.Profile(ctx, j.Collection)
	if err != nil || profile.Callback.URL == "" {
		return next, err
	}

	wrong, err := n.callback(ctx, profile.Callback, j)
	switch {
	case err == nil:
		return next, nil
	case profile.Callback.Mode == collection.BestEffort:
		claim.Remark(fmt.Sprintf("the callback was not delivered: %v", err))
		return next, nil
	}

	// It is a failure of this state only: the requeued job begins here again.
	return ingest.Fail(true, fmt.Sprintf("notification failed: %v. Correct %s", err, wrong)), nil
}

// callback notifies a depositor's server that the job is preserved. After an error, wrong is what a person corrects.
func (n Notify) callback(ctx context.Context, c collection.Callback, j *ingest.Job) (wrong string, err error) {
	key, err := n.Secret(ctx, c.Secret)
	if err != nil {
		return "the secret, its name in the profile of the collection, or the permission to read it",
			fmt.Errorf("the secret %s cannot be read: %w", c.Secret, err)
	}

	files, size := j.Content()
	p := callback.Preserved{
		ID:              j.ID + ".preserved",
		Type:            callback.TypePreserved,
		Job:             j.ID,
		Batch:           j.Batch,
		Collection:      j.Collection,
		ARK:             j.Primary,
		Version:         j.ObjectVersion,
		NoChange:        j.NoChange,
		LocalIDs:        append([]string{}, j.LocalIDs...),
		Files:           files,
		Bytes:           size,
		InventoryDigest: j.Inventory,
	}
	return "the server of the callback", n.Callbacks.Send(ctx, c.URL, key, p)
}
