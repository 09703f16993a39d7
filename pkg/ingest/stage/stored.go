package stage

import (
	"context"

	"archivist/pkg/ingest"
	"archivist/pkg/ingest/identity"
	"archivist/pkg/ingest/queue"
	"archivist/pkg/ingest/workspace"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/objects/aip"
	"archivist/pkg/objects/ocfl"
)

// Stored finds out whether the version of a job is stored already.
//
// On the usual path the job's row has the answer. It does not if a worker died, or was too
// late, right after the commit, or if the table was restored to an earlier moment.
type Stored struct {
	Root     ocfl.Root
	Work     workspace.Store
	Identity identity.Registrar
	Queue    *queue.Queue
}

// ByPlan finds whether the version of a job that is or was at Storing is committed. If so,
// it notes the version on the job. A requeue does the rest of the job's work.
//
// The plan only makes the answer cheap. There may be none although the version is committed: a worker that
// was late has committed it, and the one after it has removed the plan to prepare again. Then the
// storage says whose its versions are.
func (s Stored) ByPlan(ctx context.Context, j *ingest.Job) error {
	p, err := s.Work.Plan(ctx, j.ID)
	if err != nil {
		return err
	}

	if p.ID != "" && !p.NoChange {
		state, err := s.Root.State(ctx, p.Prepared)
		// Open: the object is as it was before the plan, so nothing of the job is committed.
		if err != nil || state == ocfl.Open && !p.Written {
			return err
		}

		if state == ocfl.Committed || p.Written {
			j.ObjectVersion = p.Number
			return nil
		}
	}

	if j.Primary == "" {
		return nil
	}

	stored, err := s.Root.Head(ctx, j.Primary) // this job's version may be among those of the object
	if fault.Is(err, fault.NotFound) {
		return nil
	}

	if err != nil {
		return err
	}

	if n := stored.VersionBy(j.ID); n > 0 {
		j.ObjectVersion = n
	}
	return nil
}

// Or is a step that checks, if it cannot continue, whether the job's version is stored
// already. That happens if the table was restored to an earlier moment: the job has ended
// since then, and its work files are gone, perhaps its source too. Then this step is done,
// and so are those up to Storing. On the usual path nothing is checked.
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

		// A copy: StoredBy changes the job, which must stay as it is if nothing is found.
		j := *claim.Job
		found, asked := s.Identity.StoredBy(ctx, &j)
		switch {
		case asked != nil:
			return ingest.Result{}, asked
		case found:
			*claim.Job = j
			return s.complete(ctx, claim)
		case err != nil: // a work file
			claim.Job.LastSuccessful, claim.Job.HasSpace = "", false
			return ingest.Fail(true, "its work files are gone ("+err.Error()+
				"). Requeue the job; it starts over"), nil
		case claim.Job.ObjectVersion > 0:
			return step(ctx, claim)
		}
		return res, nil
	}
}

// complete does the rest of a step whose job's version is stored.
func (s Stored) complete(ctx context.Context, claim *queue.Claim) (ingest.Result, error) {
	claim.Remark("the version was stored already")
	switch claim.Job.State {
	case ingest.Processing:
		return s.process(ctx, claim)
	case ingest.Storing:
		return s.store(ctx, claim)
	}
	return next, nil
}

// process acquires the locks and the reservation, as for any other job.
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

// store finishes the version, and reads its inventory. The row can be of before the download: its
// numbers are read from the stored list of files.
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

	j.Merged = nil
	j.Files, j.Bytes, err = aip.Of(s.Root, stored, j.ObjectVersion).Totals(ctx)
	return next, err
}
