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

	to, refused := receivers(profile.Callback, &b.Batch)
	calls, failed := n.call(ctx, profile.Callback, to, j)
	if refused != "" {
		site := fetch.Site(b.Callback)
		calls = append(calls, ingest.Called{By: ingest.CalledBySubmission, Site: site,
			At: n.Now().UnixMilli(), Tries: j.CalledBefore(ingest.CalledBySubmission, site),
			Problem: ingest.Cut(refused, maxCallProblem)})
	}

	j.Calls = calls
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

// maxUncalled limits what the row of a job says of callbacks, in bytes, and maxCallProblem what it
// says of one.
const (
	maxUncalled    = 1000
	maxCallProblem = 300
)

// receiver is a URL that is called, and who has named it.
type receiver struct{ url, by string }

// receivers are those that are called for a job of a batch, each once, and why that of its
// submission is not.
func receivers(c collection.Callback, b *ingest.Batch) (to []receiver, refused string) {
	if c.URL != "" {
		to = append(to, receiver{c.URL, ingest.CalledByProfile})
	}
	if b.Callback == "" || c.URL != "" && callback.Same(c.URL, b.Callback) {
		return to, ""
	}
	if refused := c.Refuses(b.Collection, b.Callback); refused != "" {
		return to, refused
	}
	return append(to, receiver{b.Callback, ingest.CalledBySubmission}), ""
}

// call notifies depositors' servers that the job is preserved: all at once, so that together they
// take no longer than one. calls are what became of each; failed has a text for what could not be:
// why, and what a person corrects.
func (n Notify) call(ctx context.Context, c collection.Callback, to []receiver, j *ingest.Job) (
	calls []ingest.Called, failed []string) {
	for _, r := range to {
		site := fetch.Site(r.url)
		calls = append(calls, ingest.Called{By: r.by, Site: site, Tries: j.CalledBefore(r.by, site)})
	}

	key := ""
	if c.Secret != "" && len(to) > 0 {
		var err error
		if key, err = n.Secret(ctx, c.Secret); err != nil {
			why := fmt.Sprintf("the secret %s cannot be read: %v. Correct the secret, its name in the "+
				"profile of the collection, or the permission to read it", c.Secret, err)
			for i := range calls {
				calls[i].At, calls[i].Problem = n.Now().UnixMilli(), ingest.Cut(why, maxCallProblem)
			}
			return calls, []string{why}
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

	errs := make([]error, len(to))
	var side sync.WaitGroup
	for i, r := range to {
		side.Go(func() {
			var tries int
			tries, errs[i] = n.Callbacks.Send(ctx, r.url, key, p)
			calls[i].Tries += tries
			calls[i].At = n.Now().UnixMilli()
		})
	}
	side.Wait()

	for i, err := range errs {
		if err != nil {
			calls[i].Problem = ingest.Cut(err.Error(), maxCallProblem)
			failed = append(failed, err.Error()+". Correct the server of the callback")
		}
	}
	return calls, failed
}
