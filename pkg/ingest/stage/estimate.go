package stage

import (
	"context"
	"errors"
	"fmt"
	"time"

	"archivist/pkg/formats/checkm"
	"archivist/pkg/ingest"
	"archivist/pkg/ingest/collection"
	"archivist/pkg/ingest/identity"
	"archivist/pkg/ingest/payload"
	"archivist/pkg/ingest/queue"
	"archivist/pkg/ingest/transfer"
	"archivist/pkg/ingest/workspace"
	"archivist/pkg/kernel/fetch"
	"archivist/pkg/objects/ocfl"
)

// Estimate finds the job's object, fetches and checks its manifest, and adds up the
// sizes of its files.
//
// The job has no space in the work bucket yet: this stage finds how much it needs. An
// unknown size is no failure; such a job waits longer. Sizes are requested page by page,
// and a try continues where the one before stopped.
type Estimate struct {
	Identity    identity.Resolver
	Collections collection.Store
	Sources     Sources
	Work        workspace.Store
	Now         func() time.Time
	Parallel    int // sizes that are requested at once

	fetch *fetch.Client // of the job's collection
}

// Run estimates a job.
func (e Estimate) Run(ctx context.Context, claim *queue.Claim) (ingest.Result, error) {
	j := claim.Job
	// First the cheap check: what it refuses is never fetched.
	refused, err := e.Identity.Resolve(ctx, j)
	if err != nil || refused != "" {
		return ingest.Fail(false, refused), err
	}

	if j.Corrects() {
		// It needs no work space: its system files are small.
		j.SpaceNeeded, j.SizeKnown = 0, true
		return next, nil
	}

	e.fetch, _, err = e.Sources.client(ctx, j.Collection, j.Upload)
	if err != nil {
		return ingest.Result{}, err
	}
	return e.estimate(ctx, claim)
}

// estimate adds up what the job needs. The job's Done is how many files are counted: the steps before that run once.
func (e Estimate) estimate(ctx context.Context, claim *queue.Claim) (res ingest.Result, err error) {
	j := claim.Job
	manifest := e.Work.Text(workspace.ManifestKey(j))
	if j.Done == 0 {
		manifest, res, err = e.payload(ctx, claim)
		if err != nil || res.Outcome != ingest.StepNext {
			return res, err
		}
	}

	err = e.sizes(ctx, claim, manifest)
	if errors.Is(err, errStopped) {
		j.Checkpoint = fmt.Sprintf("sizes of %d of %d files", j.Done, j.Files)
		return ingest.Result{Outcome: ingest.StepContinue}, nil
	}

	// Its files need space, too. How much is known once it is unpacked; most are not much smaller than their files.
	if err == nil && j.Payload.Type == ingest.TypeContainer {
		j.SpaceNeeded = ingest.AddSizes(j.SpaceNeeded, j.SpaceNeeded)
	}

	// A part of the sizes says nothing of the others: the gate waits for the reserve instead.
	if err == nil && !j.SizeKnown {
		j.SpaceNeeded = 0
	}

	if err == nil && !j.SizeKnown && !j.Prioritized {
		j.Priority = min(j.Priority+ingest.UnknownSizePenalty, ingest.WorstPriority)
	}

	return next, err
}

// payload decides the payload's type, and fetches the manifest if it is one. A job whose type was
// detected is looked at again: the source can have changed since Unpack.
func (e Estimate) payload(ctx context.Context,
	claim *queue.Claim) (ocfl.Text, ingest.Result, error) {
	j := claim.Job
	if j.Detected {
		if res, err := e.detect(ctx, j, claim.Until); err != nil || res.Outcome != ingest.StepNext {
			return nil, res, err
		}
	}

	if why, err := undigested(ctx, e.Collections, j.Collection, j.Payload); err != nil ||
		why != "" {
		return nil, ingest.Fail(false, why), err
	}

	j.Files, j.SpaceNeeded, j.SizeKnown = 1, 0, true
	j.Unpacked, j.Merged = nil, nil // of a payload that was there before: the source can have another one now
	if j.Payload.Type != ingest.TypeObjectManifest {
		return nil, next, nil
	}
	return e.manifest(ctx, claim)
}

// undigested returns why a file without a digest is refused by its collection, or "".
func undigested(ctx context.Context, profiles collection.Store, collection string,
	p ingest.Payload) (string, error) {
	if !p.NeedsDigest() {
		return "", nil
	}
	profile, _, err := profiles.Profile(ctx, collection)
	if err != nil || !profile.RequireDigest {
		return "", err
	}
	return fmt.Sprintf("the %s has no digest, but the collection %s requires one. "+
		"Submit it again with its digest", p.Type, collection), nil
}

// manifest fetches the manifest, checks it against the depositor's digest
// and its own rules, and keeps it: what was checked is what is downloaded.
func (e Estimate) manifest(
	ctx context.Context, claim *queue.Claim,
) (manifest ocfl.Text, res ingest.Result, err error) {
	j := claim.Job
	t := transfer.Transfer{
		Fetch: e.fetch,
		Work:  e.Work,
		Now:   e.Now,
		Began: e.Now(),
		Until: claim.Until,
		First: j.FirstTry(),

		Marked: true, // #%eof
	}

	row := workspace.FileRow(j)
	row.Size = -1 // a manifest is verified by its digest, not by its size
	// A key of this try: a late worker of another one does not change what was checked.
	key, noted := workspace.AttemptKey(j.ID, claim.Take(), "manifest.checkm"),
		workspace.PartialKey(j.ID, "manifest")
	came, err := t.File(ctx, row, key, noted)
	if errors.Is(err, fetch.ErrStop) {
		j.Checkpoint = "fetching the manifest"
		return nil, ingest.Result{Outcome: ingest.StepContinue}, nil
	}

	if err != nil {
		res, err := failed(j, fmt.Errorf("the manifest cannot be fetched: %w", err))
		return nil, res, err
	}

	j.Manifest, manifest = came.Key, came.Text()
	start, err := payload.Start(ctx, manifest)
	if err != nil {
		return nil, ingest.Result{}, err
	}

	if err := payload.CheckPage(j.Payload, start); err != nil {
		res, _ := failed(j, err)
		return nil, res, e.Work.Delete(ctx, noted) // so that it is fetched again
	}

	// It is the digest of the payload, which is the manifest itself.
	if why := payload.WrongDigest("the manifest", came.Sums, j.Payload); why != "" {
		return nil, ingest.Fail(false, why), nil
	}

	res, err = e.checkManifest(ctx, j, manifest)
	return manifest, res, err
}

// checkManifest validates a job's manifest, and counts its files. A rejected manifest fails the job
// for good: a corrected one is another submission.
func (e Estimate) checkManifest(ctx context.Context, j *ingest.Job,
	manifest ocfl.Text) (ingest.Result, error) {
	body, err := manifest(ctx)
	if err != nil {
		return ingest.Result{}, err
	}

	defer body.Close()
	profile, _, err := e.Collections.Profile(ctx, j.Collection)
	if err != nil {
		return ingest.Result{}, err
	}

	m, problems, err := checkm.Read(body, checkm.Options{RequireDigest: profile.RequireDigest,
		Check: payload.CheckSource(profile.Refuses(j.Upload))}, nil)
	if err != nil {
		return ingest.Result{}, err
	}

	if why := payload.Rejected(m, problems, nil, checkm.Object); why != "" {
		return ingest.Fail(false, why), nil
	}

	j.Files, j.ManifestWarnings = m.Rows, payload.Warnings(problems)
	return next, nil
}

// detect detects the type of a payload that was submitted without one, from its content
// now. A batch manifest is refused: only Unpack can make jobs of it.
func (e Estimate) detect(ctx context.Context, j *ingest.Job,
	until time.Time) (ingest.Result, error) {
	p := j.Payload
	p.Type = "" // a web page is then judged as in Unpack
	kind, err := payload.Detector{Fetch: e.fetch, Now: e.Now}.Type(ctx, p, until)
	if err != nil {
		return failed(j, fmt.Errorf("the payload's type cannot be detected: %w", err))
	}

	if _, many := payload.Lists[kind]; many {
		return ingest.Fail(false,
			fmt.Sprintf("%s: the payload is a batch manifest. It was not, or could not be fetched, when the "+
				"submission was unpacked. Submit it again with the type %s", j.Payload.Source(), kind)), nil
	}

	j.Payload.Type = kind
	return next, nil
}
