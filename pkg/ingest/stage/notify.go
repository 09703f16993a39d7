package stage

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"archivist/pkg/ingest"
	"archivist/pkg/ingest/callback"
	"archivist/pkg/ingest/collection"
	"archivist/pkg/ingest/queue"
	"archivist/pkg/ingest/workspace"
	"archivist/pkg/kernel/fetch"
)

// Notify ends the job's work: it removes the work files, and sends a callback to the depositor's servers: to that of
// the profile, and to that of the submission if the profile still allows its host. One that fails stops no other.
//
// A callback is sent at least once, and always with the same id. The profile decides whether a failure to deliver one
// fails the job: the version is preserved anyway. One that the profile does not allow any more is not sent, and
// fails no job.
type Notify struct {
	Work        workspace.Store
	Collections collection.Store
	Batch       func(ctx context.Context, id string) (*queue.Batch, error)
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

	j.HasSpace, j.URL, j.Uncalled = false, fetch.Redact(j.URL), "" // it is not fetched again
	profile, _, err := n.Collections.Profile(ctx, j.Collection)
	if err != nil {
		return ingest.Result{}, err
	}

	b, err := n.Batch(ctx, j.Batch)
	if err != nil {
		return ingest.Result{}, err
	}

	urls, refused := receivers(profile.Callback, &b.Batch)
	failed := n.call(ctx, profile.Callback, urls, j)
	if len(failed) > 0 && profile.Callback.Mode != collection.BestEffort {
		// It is a failure of this state only: the requeued job begins here again.
		return ingest.Fail(true, "notification failed: "+strings.Join(failed, "; ")), nil
	}

	for i := range failed {
		failed[i] = "the callback was not delivered: " + failed[i]
	}
	if refused != "" {
		failed = append(failed, "the callback of the submission was not sent: "+refused)
	}
	if len(failed) > 0 {
		j.Uncalled = ingest.Cut(strings.Join(failed, "; "), maxUncalled)
		claim.Remark(j.Uncalled)
	}
	return next, nil
}

// maxUncalled limits what the row of a job says of callbacks, in bytes.
const maxUncalled = 1000

// receivers are the URLs that are called for a job of a batch, each once, and why that of its submission is not.
func receivers(c collection.Callback, b *ingest.Batch) (urls []string, refused string) {
	if c.URL != "" {
		urls = append(urls, c.URL)
	}
	if b.Callback == "" || c.URL != "" && callback.Same(c.URL, b.Callback) {
		return urls, ""
	}
	if refused := c.Refuses(b.Collection, b.Callback); refused != "" {
		return urls, refused
	}
	return append(urls, b.Callback), ""
}

// call notifies depositors' servers that the job is preserved: all at once, so that together they take no longer than
// one. failed has a text for each that could not be: why, and what a person corrects.
func (n Notify) call(ctx context.Context, c collection.Callback, urls []string, j *ingest.Job) (failed []string) {
	key := ""
	if c.Secret != "" && len(urls) > 0 {
		var err error
		if key, err = n.Secret(ctx, c.Secret); err != nil {
			return []string{fmt.Sprintf("the secret %s cannot be read: %v. Correct the secret, its name in the "+
				"profile of the collection, or the permission to read it", c.Secret, err)}
		}
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

	errs := make([]error, len(urls))
	var side sync.WaitGroup
	for i, url := range urls {
		side.Go(func() { errs[i] = n.Callbacks.Send(ctx, url, key, p) })
	}
	side.Wait()

	for _, err := range errs {
		if err != nil {
			failed = append(failed, err.Error()+". Correct the server of the callback")
		}
	}
	return failed
}
