package stage

import (
	"context"

	"archivist/pkg/aip"
	"archivist/pkg/fault"
	"archivist/pkg/ingest"
	"archivist/pkg/queue"
	"archivist/pkg/workspace"
)

// orDone is a step that asks, where it can get no further, whether the job's version
// is stored already. That is so where the table was restored to an earlier moment: the
// job has ended since then, its work files are gone, and perhaps its source. Then this
// step is done, and so are those to Storing. On the usual path nothing is asked.
func (s *Stages) orDone(step queue.Step) queue.Step {
	return func(ctx context.Context, h *queue.Claim) (ingest.Result, error) {
		var res ingest.Result
		var err error
		if h.Job.ObjectVersion == 0 {
			res, err = step(ctx, h)
			if !fault.Is(err, fault.NotFound) && (err != nil || res.Outcome != ingest.StepFail) {
				return res, err
			}
		}
		j := *h.Job
		found, asked := s.storedBefore(ctx, &j)
		switch {
		case asked != nil:
			return ingest.Result{}, asked
		case found:
			*h.Job = j
			return s.goOn(ctx, h)
		case err != nil: // a work file
			h.Job.LastSuccessful, h.Job.HasSpace = "", false
			return ingest.Fail(true, "its work files are gone ("+err.Error()+"). Requeue the job: it begins again"), nil
		case h.Job.ObjectVersion > 0:
			return step(ctx, h)
		}
		return res, nil
	}
}

// storedBefore asks whether a job's version is stored, and notes on the job which it is.
func (s *Stages) storedBefore(ctx context.Context, j *ingest.Job) (found bool, err error) {
	look := func(ark string) (there bool, err error) {
		version, there, err := s.versionBy(ctx, ark, j.ID)
		if err == nil && version > 0 {
			j.Primary, j.ObjectVersion, j.NoChange, found = ark, version, false, true
		}
		return there, err
	}
	if j.Primary != "" {
		_, err = look(j.Primary)
		return found, err
	}
	for _, id := range j.LocalIDs {
		known, err := s.Inventory.ByLocalID(ctx, j.Collection, id)
		if err == nil && known != "" {
			_, err = look(known)
		}
		if err != nil || found {
			return found, err
		}
	}
	shoulder, err := s.shoulder(ctx, j)
	for try, there := 0, true; err == nil && there && !found && try < mostDraws; try++ {
		there, err = look(s.draw(shoulder, j.ID, try))
	}
	return found, err
}

// versionBy is the number of the version of an object that a job stored, 0 for none,
// and whether the object is there.
func (s *Stages) versionBy(ctx context.Context, ark, job string) (version int, there bool, err error) {
	etag, err := s.Root.ETag(ctx, ark)
	if err != nil || etag == "" {
		return 0, false, err
	}
	stored, err := s.Root.Head(ctx, ark)
	if err != nil {
		return 0, true, err
	}
	for n := range stored.Versions {
		if stored.Job(n) == job {
			return n, true, nil
		}
	}
	return 0, true, nil
}

// goOn does what is left of a step whose job's version is stored.
func (s *Stages) goOn(ctx context.Context, h *queue.Claim) (ingest.Result, error) {
	h.Remark("its version is stored already")
	switch j := h.Job; j.State {
	case ingest.Processing: // the locks and the reservation, as for any other job
		if res, err := s.identify(ctx, h); err != nil || res.Outcome != ingest.StepNext {
			return res, err
		}
		stored, err := s.Root.Head(ctx, j.Primary)
		if err != nil {
			return ingest.Result{}, err
		}
		id, err := aip.Head(s.Root, stored).Identity(ctx)
		if err != nil {
			return ingest.Result{}, err
		}
		return s.bringBack(ctx, j.Primary, id, h.Until)
	case ingest.Storing:
		digest, err := s.Root.Finish(ctx, j.Primary, s.owner(h, &workspace.Plan{}), nil)
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
	return next, nil
}
