package stage

import (
	"context"

	"archivist/pkg/aip"
	"archivist/pkg/fault"
	"archivist/pkg/identity"
	"archivist/pkg/ingest"
	"archivist/pkg/ocfl"
	"archivist/pkg/queue"
	"archivist/pkg/workspace"
)

// Stored finds out whether the version of a job is stored already.
//
// On the usual path the job's row knows. It does not if a worker died, or was too late,
// right after the commit, nor if the table was restored to an earlier moment.
type Stored struct {
	Root     ocfl.Root
	Work     workspace.Store
	Identity identity.Registrar
	Queue    *queue.Queue
}

// ByPlan asks whether the version of a job that is or was at Storing is committed,
// and if so notes on the job which it is. What is left to do of it is done by a
// requeue.
func (s Stored) ByPlan(ctx context.Context, j *ingest.Job) error {
	p, err := s.Work.Plan(ctx, j.ID)
	if err != nil || p.ID == "" || p.NoChange {
		return err
	}

	state, err := s.Root.State(ctx, p.Prepared)
	if err != nil || state == ocfl.Open && !p.Written {
		return err
	}
	if state == ocfl.Committed || p.Written {
		j.ObjectVersion = p.Number
		return nil
	}

	stored, err := s.Root.Head(ctx, p.ID) // the object went on: by this job's version first, or without it
	if err != nil {
		return err
	}
	if n := stored.VersionBy(j.ID); n > 0 {
		j.ObjectVersion = n
	}
	return nil
}

// Or is a step that asks, where it can get no further, whether the job's version
// is stored already. That is so where the table was restored to an earlier moment: the
// job has ended since then, its work files are gone, and perhaps its source. Then this
// step is done, and so are those to Storing. On the usual path nothing is asked.
func (s Stored) Or(step queue.Step) queue.Step {
	return func(ctx context.Context, claim *queue.Claim) (ingest.Result, error) {
		var res ingest.Result
		var err error
		if claim.Job.ObjectVersion == 0 {
			res, err = step(ctx, claim)
			if !fault.Is(err, fault.NotFound) && (err != nil || res.Outcome != ingest.StepFail) {
				return res, err
			}
		}
		j := *claim.Job
		found, asked := s.Identity.StoredBy(ctx, &j)
		switch {
		case asked != nil:
			return ingest.Result{}, asked
		case found:
			*claim.Job = j
			return s.goOn(ctx, claim)
		case err != nil: // a work file
			claim.Job.LastSuccessful, claim.Job.HasSpace = "", false
			return ingest.Fail(true, "its work files are gone ("+err.Error()+"). Requeue the job; it starts over"), nil
		case claim.Job.ObjectVersion > 0:
			return step(ctx, claim)
		}
		return res, nil
	}
}

// goOn does what is left of a step whose job's version is stored.
func (s Stored) goOn(ctx context.Context, claim *queue.Claim) (ingest.Result, error) {
	claim.Remark("the version was stored already")
	switch claim.Job.State {
	case ingest.Processing:
		return s.process(ctx, claim)
	case ingest.Storing:
		return s.store(ctx, claim)
	}
	return next, nil
}

// process takes the locks and the reservation, as for any other job.
func (s Stored) process(ctx context.Context, claim *queue.Claim) (ingest.Result, error) {
	if res, err := s.Identity.Assign(ctx, claim); err != nil || res.Outcome != ingest.StepNext {
		return res, err
	}

	stored, err := s.Root.Head(ctx, claim.Job.Primary)
	if err != nil {
		return ingest.Result{}, err
	}

	id, err := aip.Head(s.Root, stored).Identity(ctx)
	if err != nil {
		return ingest.Result{}, err
	}
	return s.Identity.BringBack(ctx, claim.Job.Primary, id, claim.Until)
}

// store finishes the version, and reads what it has.
func (s Stored) store(ctx context.Context, claim *queue.Claim) (ingest.Result, error) {
	j := claim.Job
	digest, err := s.Root.Finish(ctx, j.Primary, owner(s.Queue, claim, 0), nil)
	if err != nil {
		return ingest.Result{}, err
	}

	j.Inventory = digest
	stored, err := s.Root.Head(ctx, j.Primary)
	if err != nil {
		return ingest.Result{}, err
	}

	j.Files, j.Bytes, err = aip.Of(s.Root, stored, j.ObjectVersion).Totals(ctx)
	return next, err
}
