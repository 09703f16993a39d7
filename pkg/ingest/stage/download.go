package stage

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"archivist/pkg/formats/container"
	"archivist/pkg/ingest"
	"archivist/pkg/ingest/collection"
	"archivist/pkg/ingest/payload"
	"archivist/pkg/ingest/queue"
	"archivist/pkg/ingest/transfer"
	"archivist/pkg/ingest/workspace"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/fetch"
	"archivist/pkg/objects/formats"
)

// Download gets every file that is not there yet, segment by segment, within the
// time budget, and records each file in the ledger.
//
// The work of earlier tries is in three places: finished segments of the ledger, which
// are never written again; the finished files of a segment in progress; and the state of
// an interrupted transfer (package transfer). A file that cannot be downloaded does not
// end the download at once: the message names all such files.
type Download struct {
	Sources  Sources
	Work     workspace.Store
	Now      func() time.Time
	Parallel int // files at once: each has a part in memory

	Space int64 // of the work bucket, in bytes

	Profiles *profiles // of bags

	Identify formats.Identify // nil: no formats are identified
	// Scan has files scanned for viruses, for collections that want it; nil: the deployment has no scanner.
	Scan func(ctx context.Context, in ScanRequest) (ScanAnswer, error)
}

// Run downloads a job's files.
func (d Download) Run(ctx context.Context, claim *queue.Claim) (ingest.Result, error) {
	j := claim.Job
	// A correction has no content: its files are those that are stored.
	if j.Corrects() {
		j.Fetched = d.Now().UnixMilli()
		return next, nil
	}

	client, profile, err := d.Sources.client(ctx, j.Collection, j.Upload)
	if err != nil {
		return ingest.Result{}, err
	}

	a := &attempt{
		job:      j,
		parallel: d.Parallel,
		early:    &early{identify: d.Identify, policy: profile.Formats},
		Transfer: transfer.Transfer{
			Fetch: client,
			Work:  d.Work,
			Now:   d.Now,
			Began: d.Now(),
			Until: claim.Until,
			First: j.FirstTry(),
		},
	}

	if profile.Scan {
		if d.Scan == nil {
			return ingest.Result{}, errors.New("the collection wants its files scanned for viruses, and the " +
				"deployment has no scanner (setting scanFunction)")
		}
		a.scanner = &scanner{d.Scan, d.Work, j}
	}

	a.Partly = a.notePartial
	if j.Payload.Type == ingest.TypeContainer {
		return d.container(ctx, claim, a, profile)
	}

	err = a.segments(ctx)
	j.Checkpoint = a.progress() // also if this try fails
	var changed *changedError
	// The order counts: what ends the try hides files that are bad, and these hide that the time is
	// up.
	switch {
	case errors.As(a.err, &changed):
		return d.startOver(ctx, claim, changed.why)
	case a.err != nil && !errors.Is(a.err, fetch.ErrStop):
		return ingest.Result{}, a.err
	case len(a.problems) > 0:
		return a.failure(), nil
	case errors.Is(err, errStopped):
		return ingest.Result{Outcome: ingest.StepContinue}, nil
	case err != nil:
		return ingest.Result{}, err
	}
	return d.finish(ctx, a)
}

// startOver fails a job so that its requeue begins with Estimate, which detects the
// payload's type if none was given. Nothing that was downloaded is kept. A mixture of two states of
// the source must not be stored.
func (d Download) startOver(ctx context.Context, claim *queue.Claim,
	why string) (ingest.Result, error) {
	all, err := d.Work.Clean(ctx, claim.Job.ID, claim.Until, d.Now)
	if err != nil || !all {
		return ingest.Result{Outcome: ingest.StepContinue}, err
	}

	j := claim.Job
	j.LastSuccessful, j.HasSpace = "", false
	if j.Detected {
		j.Payload.Type = ""
	}

	return ingest.Fail(true, why+". Correct the source if the content is wrong, then "+j.Again()), nil
}

// finish replaces the estimate by the exact figures. It reads the ledger if earlier tries
// wrote part of it.
func (d Download) finish(ctx context.Context, a *attempt) (ingest.Result, error) {
	j := a.job
	if !a.own {
		a.came = tally{}
		for e, err := range d.Work.Entries(ctx, j) {
			if err != nil {
				return ingest.Result{}, err
			}
			a.came.add(e)
		}
	}

	j.Bytes, j.Warned, j.Checked, j.Fetched = a.came.bytes, a.came.warned, a.came.checked,
		d.Now().UnixMilli()
	j.Scanned, j.Sent = a.came.scanned, a.came.sent
	j.FileWarnings = a.came.warnings.List("the receipt has them")
	if a.came.files != j.Files {
		return ingest.Result{}, fmt.Errorf("stage: the ledger of %s has %d files, its manifest %d",
			j.ID, a.came.files, j.Files)
	}

	// Estimate added the penalty; the size is known now.
	if !j.SizeKnown && !j.Prioritized {
		j.Priority = max(0, j.Priority-ingest.UnknownSizePenalty)
	}

	// The transaction that ends the step corrects the row of the job's space by the difference.
	j.SpaceNeeded, j.SizeKnown = j.Bytes, true
	return next, nil
}

// container downloads a container, and unpacks it.
func (d Download) container(ctx context.Context, claim *queue.Claim, a *attempt,
	profile collection.Profile) (res ingest.Result, err error) {
	j := claim.Job
	u := &unpacking{attempt: a, limits: profile.Limits(), refuse: profile.Refuses(j.Upload),
		keep:     profile.KeepsContainers(),
		profiles: d.Profiles, space: d.Space}
	u.side.SetLimit(a.parallel)
	u.Unpacking, err = a.Work.Unpacking(ctx, j.ID)
	if err == nil && u.Unpacking == nil {
		if res, err = d.receive(ctx, claim, u); err != nil || res.Outcome != ingest.StepNext {
			return res, err
		}
	}

	if err == nil {
		err = u.unpack(ctx)
	}

	refused, changed := new(container.RefusedError), new(changedError)
	switch {
	case errors.As(err, &changed):
		return d.startOver(ctx, claim, changed.why)
	case errors.As(err, &refused):
		return ingest.Fail(false, refused.Error()+". Correct the container, then submit it again"), nil
	case errors.Is(err, errTooLarge):
		return ingest.Fail(true, j.Exceeds(d.Space)), nil
	case len(u.problems) > 0 && (err == nil || errors.Is(err, errStopped)): // as in Run
		return u.failure(), nil
	case errors.Is(err, errStopped):
		return ingest.Result{Outcome: ingest.StepContinue}, nil
	case err != nil:
		return ingest.Result{}, err
	}
	return d.unpacked(ctx, u)
}

// receive downloads the container, and compares it with what the depositor said of it.
func (d Download) receive(ctx context.Context, claim *queue.Claim, u *unpacking) (ingest.Result, error) {
	j, row := claim.Job, workspace.FileRow(claim.Job)
	noted := workspace.PartialKey(j.ID, "container")
	came, err := u.File(ctx, row, workspace.ContainerKey(j.ID, claim.Take()), noted)
	if errors.Is(err, fetch.ErrStop) {
		j.Checkpoint = "container: " + u.partly
		return ingest.Result{Outcome: ingest.StepContinue}, nil
	}
	if err != nil {
		return failed(j, fmt.Errorf("the container cannot be fetched: %w", err))
	}

	start, err := payload.Start(ctx, came.Text())
	if err != nil {
		return ingest.Result{}, err
	}

	if err := payload.CheckPage(j.Payload, start); err != nil {
		res, _ := failed(j, err)
		return res, d.Work.Delete(ctx, noted) // so that it is fetched again
	}

	u.Unpacking = &workspace.Unpacking{Kind: container.Detect(start)}
	if u.Kind == "" && j.Detected {
		return d.startOver(ctx, claim, j.Payload.Source()+": received a payload that is no container; it was one "+
			"when its type was detected")
	}
	if u.Kind == "" {
		return ingest.Fail(false, "the payload is no container: its content is not that of a zip, tar, tar.gz or "+
			"tar.bz2 file. Submit it again with its type"), nil
	}

	u.Container, err = describe(j.Payload, row, came, came.Key, "")
	if refused := new(refusedError); errors.As(err, &refused) {
		return ingest.Fail(false, "the container: "+refused.Error()+". Correct it, then submit it again"), nil
	}

	info, err := d.Work.Head(ctx, came.Key)
	if err != nil {
		return ingest.Result{}, err
	}

	u.ETag = info.ETag
	err = d.Work.BeginUnpacking(ctx, j.ID, u.Unpacking)
	if fault.Is(err, fault.Stale) { // another try has received it
		u.Unpacking, err = d.Work.Unpacking(ctx, j.ID)
	}
	return next, err
}

// unpacked notes what the container was, and ends the download as for other files.
func (d Download) unpacked(ctx context.Context, u *unpacking) (ingest.Result, error) {
	j, c := u.job, u.Container
	j.Files, u.own = u.got, false
	j.Unpacked = &ingest.Container{
		Name:     nameOf(c),
		Kind:     string(u.Kind),
		Bytes:    c.Size,
		SHA256:   c.Digests["sha256"],
		Kept:     u.keep,
		Verified: c.Given,
		Fetched:  u.fetching,
	}

	j.FileWarnings = nil // those of an earlier try
	for _, check := range []func(context.Context) (string, error){u.listed, u.bag} {
		if refused, err := check(ctx); err != nil || refused != "" {
			return ingest.Fail(false, refused), err
		}
	}

	bag := j.FileWarnings
	res, err := d.finish(ctx, u.attempt)
	j.FileWarnings = slices.Concat(bag, j.FileWarnings)
	if j.Unpacked.Bag != nil {
		j.Checked = j.Unpacked.Bag.Files
	}
	warnings := append([]string{c.Warning}, u.notes...)
	if u.reader != nil {
		warnings = append(warnings, u.reader.Warning, unkept(u.reader.Empty()))
	}
	if warning := joined(warnings); warning != "" {
		j.Warned++
		j.FileWarnings = slices.Concat([]string{"container: " + warning}, j.FileWarnings)
	}
	j.SpaceNeeded = ingest.AddSizes(j.SpaceNeeded, c.Size)
	return res, err
}
