package stage

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"log/slog"
	"time"

	"archivist/pkg/formats/checkm"
	"archivist/pkg/formats/erc"
	"archivist/pkg/ingest"
	"archivist/pkg/ingest/collection"
	"archivist/pkg/ingest/payload"
	"archivist/pkg/ingest/queue"
	"archivist/pkg/ingest/workspace"
	"archivist/pkg/kernel/bucket"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/fetch"
)

// maxBatchManifest bounds a batch manifest in bytes (source: the running
// system's limit).
const maxBatchManifest = 5 << 20

// Unpack makes the batch's jobs, one per object. What is refused is not kept.
//
// A manifest is fetched once and saved: every try sees the same rows, even if the source
// has changed. Its jobs are made chunk by chunk; each chunk is one transaction that also
// notes the progress on the batch's row.
type Unpack struct {
	Work        workspace.Store
	Collections collection.Store
	Sources     Sources
	Now         func() time.Time
	Log         *slog.Logger

	fetch *fetch.Client // of the batch's collection
}

// Run unpacks a batch.
func (u Unpack) Run(ctx context.Context, claim *queue.Claim) (ingest.Result, error) {
	res, err := u.unpack(ctx, claim)
	if err == nil && res.Outcome == ingest.StepFail {
		u.forget(ctx, claim.Batch.ID)
	}
	return res, err
}

// forget removes the saved manifest of a batch, which has the URLs as they were
// submitted. If that fails, a lifecycle rule removes it.
func (u Unpack) forget(ctx context.Context, batch string) {
	if err := u.Work.Delete(ctx, workspace.BatchManifestKey(batch)); err != nil {
		u.Log.Warn("the manifest of a batch could not be removed", "batch", batch, "error", err)
	}
}

// unpack makes the jobs, or returns why the batch is refused.
func (u Unpack) unpack(ctx context.Context, claim *queue.Claim) (ingest.Result, error) {
	if why, err := u.lost(ctx, claim.Batch); err != nil || why != "" {
		return ingest.Fail(false, why), err
	}

	var err error
	u.fetch, _, err = u.Sources.client(ctx, claim.Batch.Collection, claim.Batch.Upload)
	if err != nil {
		return ingest.Result{}, err
	}

	kind, err := u.batchType(ctx, claim)
	if err != nil {
		return u.unreachable(ctx, claim, err)
	}

	if list, many := payload.Lists[kind]; many {
		// Only now: without a type, it is not known before that the payload lists objects.
		if why := claim.Batch.ForOneObject(); why != "" {
			return ingest.Fail(false, why), nil
		}
		return u.unpackList(ctx, claim, list.Row, list.Kind)
	}

	return u.unpackOne(ctx, claim, kind)
}

// lost reports that the manifest of a batch whose unpacking has begun is gone: the source
// may have other rows by now. The rows of the jobs are counted, so with other rows a job would be
// made of the wrong one.
func (u Unpack) lost(ctx context.Context, b *ingest.Batch) (why string, err error) {
	if b.Unpacked == 0 {
		return "", nil
	}
	_, err = u.Work.Head(ctx, workspace.BatchManifestKey(b.ID))
	if fault.Is(err, fault.NotFound) {
		return fmt.Sprintf("the saved manifest is gone after %d of its objects were queued. "+
			"Submit the others again", b.Unpacked), nil
	}
	return "", err
}

// unpackOne makes the only job of a batch whose payload is one object.
func (u Unpack) unpackOne(ctx context.Context, claim *queue.Claim,
	kind string) (ingest.Result, error) {
	b := claim.Batch
	if why := b.NothingToUpdate(); why != "" {
		return ingest.Fail(false, why+". Submit it again with one"), nil
	}

	j := ingest.Job{
		Collection: b.Collection,
		Submitter:  b.Submitter,
		By:         b.By,
		Mode:       b.Mode,
		Note:       b.Note,
		Payload:    b.Payload,
		Metadata:   b.Metadata,
		Primary:    b.Primary,
		LocalIDs:   b.LocalIDs,
		Withdrawn:  b.Withdrawn,
		Policy:     b.Policy,
		LastDay:    b.LastDay,
		Related:    b.Related,
		IfVersion:  b.IfVersion,
	}

	j.Payload.Type, j.Payload.Detected = kind, b.Payload.Type == ""
	if why, err := undigested(ctx, u.Collections, b.Collection, j.Payload); err != nil {
		return ingest.Result{}, err
	} else if why != "" {
		return ingest.Fail(false, why), nil
	}

	profile, _, err := u.Collections.Profile(ctx, b.Collection)
	if err != nil {
		return ingest.Result{}, err
	}

	j.Priority = priority(profile, 1)
	return next, claim.Unpack(ctx, []ingest.Job{j}, 1)
}

// patience is how many tries Unpack makes to fetch a payload. Less than the tries of the stage: the
// batch ends with the reason, not with the last try.
const patience = 5

// batchType is the type of a batch's payload: the depositor's, else that of the fetched
// content. It is "" if the payload cannot be fetched in all the tries that patience
// allows. Then its one job detects the type, or fails with the reason and can be requeued.
func (u Unpack) batchType(ctx context.Context, claim *queue.Claim) (string, error) {
	p := claim.Batch.Payload
	if p.Type != "" {
		return p.Type, nil
	}

	saved, err := payload.Start(ctx, u.Work.Text(workspace.BatchManifestKey(claim.Batch.ID)))
	if err == nil {
		return payload.TypeOf(p, saved) // what an earlier try has begun to unpack
	}

	if !fault.Is(err, fault.NotFound) {
		return "", err
	}

	kind, err := payload.Detector{Fetch: u.fetch, Now: u.Now}.Type(ctx, p, claim.Until)
	if mayRecover(err) && claim.Batch.Tries >= patience {
		u.Log.Info("the payload's type could not be detected; its job tries again",
			"batch", claim.Batch.ID, "error", err)
		return "", nil
	}

	return kind, err
}

// unreachable ends a try of unpacking a payload that could not be fetched: it is tried
// again, and refused after as many tries as patience allows.
func (u Unpack) unreachable(ctx context.Context, claim *queue.Claim,
	err error) (ingest.Result, error) {
	switch {
	case !unfetched(err) || mayRecover(err) && claim.Batch.Tries < patience:
		return ingest.Result{}, err
	case mayRecover(err):
		return ingest.Fail(true, unfetchable+err.Error()+
			". Correct the source, then submit it again"), nil
	}
	return ingest.Fail(false, unfetchable+err.Error()+". Correct the URL, then submit it again"),
		nil
}

const unfetchable = "the payload cannot be fetched: "

// unpackList makes a job of each row of a batch manifest, chunk by chunk from where an
// earlier try stopped.
func (u Unpack) unpackList(
	ctx context.Context, claim *queue.Claim, row string, kind checkm.Kind,
) (ingest.Result, error) {
	data, why, err := u.batchManifest(ctx, claim)
	if err != nil {
		return u.unreachable(ctx, claim, err)
	}

	if why != "" {
		return ingest.Fail(false, why), nil
	}

	jobs, why, err := u.jobs(ctx, claim.Batch, data, row, kind)
	if err != nil || why != "" {
		return ingest.Fail(false, why), err
	}

	// The batch's row counts the jobs that are made, so a try begins behind those of the one
	// before.
	for claim.Batch.Unpacked < len(jobs) {
		left := jobs[claim.Batch.Unpacked:]
		if err := claim.Unpack(ctx, left[:queue.Chunk(left)], len(jobs)); err != nil {
			return ingest.Result{}, err
		}
		if claim.Batch.Unpacked < len(jobs) && !u.Now().Before(claim.Until) {
			return ingest.Result{Outcome: ingest.StepContinue}, nil
		}
	}

	u.forget(ctx, claim.Batch.ID)
	return next, nil
}

// jobs makes the jobs of a batch manifest, and returns why it is refused, or "".
func (u Unpack) jobs(
	ctx context.Context, b *ingest.Batch, data []byte, row string, kind checkm.Kind,
) (jobs []ingest.Job, refused string, err error) {
	profile, _, err := u.Collections.Profile(ctx, b.Collection)
	if err != nil {
		return nil, "", err
	}

	// The digests of an object's files are in its own manifest, which Estimate checks.
	options := checkm.Options{RequireDigest: profile.RequireDigest && row != ingest.TypeObjectManifest,
		Check: payload.CheckRow(profile.Refuses(b.Upload))}
	rows, warnings, refused := payload.ReadList(data, b, kind, options)
	if refused != "" {
		return nil, refused, nil
	}

	b.Warnings = warnings
	jobs = make([]ingest.Job, len(rows))
	for i, r := range rows {
		jobs[i] = jobOf(b, r, row, priority(profile, len(rows)))
	}

	return jobs, "", nil
}

// priority of a batch's jobs: the profile's, else by how many there are.
func priority(p collection.Profile, jobs int) int {
	if p.Priority != nil {
		return *p.Priority
	}
	return ingest.BatchPriority(jobs)
}

// batchManifest fetches the manifest once and keeps it: every try of unpacking
// sees the same rows. It returns why the manifest is refused, or "".
func (u Unpack) batchManifest(ctx context.Context,
	claim *queue.Claim) (data []byte, refused string, err error) {
	key := workspace.BatchManifestKey(claim.Batch.ID)
	data, _, err = u.Work.Read(ctx, key)
	if !fault.Is(err, fault.NotFound) {
		return data, "", err
	}

	p := claim.Batch.Payload
	inTime, cancel := context.WithTimeout(ctx, claim.Until.Sub(u.Now()))
	defer cancel()
	err = u.fetch.Get(inTime, p.URL, nil, func(body fetch.Stream) (err error) {
		data, err = io.ReadAll(io.LimitReader(body, maxBatchManifest+1))
		return err
	})
	if err != nil {
		return nil, "", err
	}

	if err := payload.CheckPage(p, data); err != nil {
		return nil, "", err
	}

	if len(data) > maxBatchManifest {
		return nil, fmt.Sprintf("the manifest is larger than %d bytes; split it into several submissions",
			maxBatchManifest), nil
	}

	d := fetch.NewDigester(p.Algorithm)
	_, _ = d.Write(data) // a digester never fails
	if why := payload.WrongDigest("the manifest", d, p); why != "" {
		return nil, why, nil
	}

	err = u.Work.Put(ctx, key, data, bucket.Condition{Absent: true})
	if fault.Is(err, fault.Stale) { // another try kept what it fetched
		data, _, err = u.Work.Read(ctx, key)
	}
	return data, "", err
}

// jobOf makes a row's job. Values of the row take precedence over those of the form.
func jobOf(b *ingest.Batch, r checkm.Row, kind string, priority int) ingest.Job {
	// A code such as "(:unkn)" in a row says less than a value of the form.
	or := func(row, form string) string {
		if erc.Absent(row) && !erc.Absent(form) {
			return form
		}
		return cmp.Or(row, form)
	}

	// -1 is not given; Empty tells a size that was given as 0.
	size := max(r.Size, 0)
	return ingest.Job{
		Collection: b.Collection,
		Submitter:  b.Submitter,
		By:         b.By,
		Mode:       b.Mode,
		Note:       b.Note,
		Primary:    r.Primary,
		LocalIDs:   r.Local,
		Priority:   priority,
		Payload: ingest.Payload{
			URL:       r.URL,
			Upload:    b.Upload,
			Uploader:  b.Uploader,
			Type:      kind,
			Filename:  r.Name,
			Size:      size,
			Empty:     r.Size == 0,
			Algorithm: r.Algorithm,
			Digest:    r.Digest,
		},
		Metadata: ingest.Metadata{
			Who:  or(r.Creator, b.Who),
			What: or(r.Title, b.What),
			When: or(r.Date, b.When),
		},
	}
}
