package stage

import (
	"context"

	"archivist/pkg/ingest"
	"archivist/pkg/ingest/identity"
	"archivist/pkg/ingest/queue"
	"archivist/pkg/ingest/systemfile"
)

// Process fixes the object's identifier and the version's time, and writes the
// system files: after it every byte and digest of the version is decided.
//
// A second try makes the same bytes. The ARK follows from the job's id, and the time of
// the version is on the job's row before it is used. From here on the job holds the locks
// of its identifiers: no other job changes the object.
type Process struct {
	Packager Packager
	Identity identity.Registrar
	// Register reserves the ARK of a job where its collection is registered; drawn says whether it was drawn for the
	// job. refused is why it cannot be used, "" if it can. nil: the deployment registers nothing.
	Register func(ctx context.Context, j *ingest.Job, drawn bool) (refused string, err error)
}

// Run processes a job.
func (p Process) Run(ctx context.Context, claim *queue.Claim) (ingest.Result, error) {
	// Its end removes what was sorted on disk.
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if claim.Job.Updates() {
		if refused, err := p.known(ctx, claim.Job); err != nil || refused != "" {
			return ingest.Fail(false, refused), err
		}
	}

	// Cheap checks first: nothing is reserved or locked until the submission is valid.
	pack, refused, err := p.Packager.gather(ctx, claim.Job)
	if err == nil && refused == "" {
		refused, err = p.check(ctx, claim.Job, pack)
	}

	if err != nil || refused != "" {
		return ingest.Fail(false, refused), err
	}

	minted := claim.Job.Primary == ""
	if res, err := p.Identity.Assign(ctx, claim); err != nil || res.Outcome != ingest.StepNext {
		return res, err
	}

	stored := newObject // of a minted ARK: that was checked
	if !minted {
		stored, err = p.Packager.stored(ctx, claim.Job.Primary)
		if err != nil {
			return ingest.Result{}, err
		}
	}

	if refused, err := p.register(ctx, claim.Job, stored); err != nil || refused != "" {
		return ingest.Fail(true, refused), err
	}
	return p.Packager.write(ctx, claim, stored, pack)
}

// register reserves the ARK of a new object where its collection is registered. It returns why it cannot be used, or
// "".
func (p Process) register(ctx context.Context, j *ingest.Job, stored base) (refused string, err error) {
	if p.Register == nil || stored.Head > 0 {
		return "", nil
	}

	// Also an earlier try of this job may have drawn it.
	drawn, err := p.Identity.Drawn(ctx, j)
	if err == nil {
		refused, err = p.Register(ctx, j, drawn)
	}
	return refused, err
}

// known finds the object of an update, and returns why there is none, or "". It is asked for under the locks of the
// identifiers: a submission before this one may have made it.
func (p Process) known(ctx context.Context, j *ingest.Job) (refused string, err error) {
	refused, err = p.Identity.Resolve(ctx, j)
	if err == nil && refused == "" && j.Primary == "" {
		refused = "no object of the collection has one of the local ids, so there is nothing to update. Submit it " +
			"with the mode add"
	}
	return refused, err
}

// check finds the job's object, and returns why the submission cannot become a version of
// it, or "".
func (p Process) check(ctx context.Context, j *ingest.Job, pack *pack) (refused string, err error) {
	refused, err = p.Identity.Resolve(ctx, j)
	if err != nil || refused != "" {
		return refused, err
	}

	refused, err = p.Identity.Adopt(ctx, j, pack.description)
	if err != nil || refused != "" {
		return refused, err
	}

	refused = systemfile.Refused(j, pack.description)
	if refused != "" || j.Primary != "" {
		return refused, nil // the version of a known object is checked under the object's lock
	}
	return unexpected(j, 0), nil
}
