package stage

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync"
	"time"

	"archivist/pkg/fault"
	"archivist/pkg/ingest"
	"archivist/pkg/ocfl"
	"archivist/pkg/provenance"
	"archivist/pkg/queue"
	"archivist/pkg/systemfile"
	"archivist/pkg/workspace"
)

// store writes the version into the storage root and verifies it there: it
// prepares the inventory, copies the content segment by segment, and commits.
// Each of these ends within a time budget.
func (s *Stages) store(ctx context.Context, h *queue.Claim) (ingest.Result, error) {
	j := h.Job
	p, err := s.plan(ctx, h)
	owner := s.owner(h, p)
	if errors.Is(err, errMoved) {
		return s.again(ctx, h)
	}
	var just *ocfl.Published
	if err == nil && !p.NoChange && !p.Written {
		var all bool
		if all, err = s.copyAll(ctx, h, p); err == nil && !all {
			return ingest.Result{Outcome: ingest.StepContinue}, nil
		}
		if err == nil {
			just, err = s.Root.Publish(ctx, p.Prepared, s.Work.Inventory(j.ID, p), owner)
		}
		if err == nil {
			j.ObjectVersion = p.Number // also for a worker that learns at the end that the job was taken from it
		}
	}
	digest := ""
	if err == nil {
		digest, err = s.Root.Finish(ctx, p.ID, owner, just)
	}
	if err != nil {
		return s.notStored(ctx, h, p, err)
	}
	j.ObjectVersion, j.NoChange, j.Inventory = p.Number, p.NoChange, digest
	return next, nil
}

// owner is the job as the owner of its object's lock, with its plan.
func (s *Stages) owner(h *queue.Claim, p *workspace.Plan) ocfl.Owner {
	return ocfl.Owner{Job: h.Job.ID, Fence: h.CheckLease, Ended: s.Queue.JobEnded,
		Alone: func() bool { return s.Queue.Ended(p.At) }}
}

// declare says that an object is at its place in a storage root, which this process
// looks for once.
func (s *Stages) declare(ctx context.Context, id string) error {
	if !s.rooted.Load() {
		if err := s.Root.Init(ctx); err != nil {
			return err
		}
		s.rooted.Store(true)
	}
	return s.Root.Declare(ctx, id)
}

// copyAll copies the new content from where an earlier try got to, and returns
// whether all of it is there. Preparing is enough for one time budget.
func (s *Stages) copyAll(ctx context.Context, h *queue.Claim, p *workspace.Plan) (all bool, err error) {
	j := h.Job
	if p.Follows == "" {
		if err := s.declare(ctx, p.ID); err != nil {
			return false, err
		}
	}
	for j.Done < p.Segments() || p.Fresh {
		if !s.Now().Before(h.Until) {
			j.Checkpoint = fmt.Sprintf("%d of %d new files copied", min(j.Done*workspace.SegmentFiles, p.Contents), p.Contents)
			return false, nil
		}
		if p.Fresh = false; j.Done < p.Segments() {
			err := s.copySegment(ctx, h, p, j.Done)
			if errors.Is(err, ocfl.ErrStop) {
				continue // the time is up
			}
			if err != nil {
				return false, err
			}
			j.Done++
		}
	}
	return true, nil
}

// notStored decides what follows when the version could not be stored.
func (s *Stages) notStored(ctx context.Context, h *queue.Claim, p *workspace.Plan, why error) (ingest.Result, error) {
	j := h.Job
	missing, claimed := new(ocfl.MissingError), new(ocfl.ClaimedError)
	switch {
	case errors.As(why, &missing) && !p.NoChange:
		return s.copyAgain(ctx, h, p, missing)
	case errors.As(why, &claimed):
		j.Checkpoint = "waiting until no worker of job " + claimed.Job + " can commit any more"
		return ingest.Result{Outcome: ingest.StepContinue}, s.Queue.Table.Wait(ctx, min(h.Until.Sub(s.Now()), time.Minute))
	case fault.Is(why, fault.Stale) && h.CheckLease(ctx) == nil: // the object is at another version than it was
		j.Checkpoint, j.Done = "preparing again", 0
		return ingest.Result{Outcome: ingest.StepContinue}, s.Work.Delete(ctx, workspace.PlanKey(j.ID))
	}
	return ingest.Result{}, why
}

// copyAgain begins the copying again: what was stored is no longer all there. Done
// counts on beyond the segments meanwhile.
func (s *Stages) copyAgain(ctx context.Context, h *queue.Claim, p *workspace.Plan, why error) (ingest.Result, error) {
	j, last := h.Job, p.Segments()
	s.Queue.Log.Error("stored content is gone, it is copied again", "job", j.ID, "error", why)
	if j.Done < last || j.Done >= 2*last {
		j.Done = last
	}
	for ; j.Done < 2*last; j.Done++ {
		err := ocfl.ErrStop
		if s.Now().Before(h.Until) {
			err = s.copySegment(ctx, h, p, j.Done-last)
		}
		if errors.Is(err, ocfl.ErrStop) {
			j.Checkpoint = fmt.Sprintf("%d of %d new files copied again", (j.Done-last)*workspace.SegmentFiles, p.Contents)
			return ingest.Result{Outcome: ingest.StepContinue}, nil
		}
		if err != nil {
			return ingest.Result{}, err
		}
	}
	return ingest.Result{}, why // the next try makes sure that all is there
}

// errMoved says that the object is at another version than the system files were
// written for.
var errMoved = errors.New("the object moved on")

// plan prepares the version, unless an earlier try did and the object is still
// the one that it was prepared for. It returns errMoved if the system files have to
// be written again first, and a Lost if another worker of the job prepared meanwhile.
func (s *Stages) plan(ctx context.Context, h *queue.Claim) (p *workspace.Plan, err error) {
	j := h.Job
	if p = new(workspace.Plan); !j.FirstTry() {
		if p, err = s.Work.Plan(ctx, j.ID); err != nil {
			return p, err
		}
	}
	if p.IsOf(j) {
		state, err := s.Root.State(ctx, p.Prepared)
		if err != nil || state != ocfl.Overtaken {
			p.Written = p.Written || state == ocfl.Committed
			return p, err
		}
	}
	j.Done = 0
	p = p.Replacing(j, h.Take(), s.Now().UnixMilli())
	return p, s.prepare(ctx, j, p)
}

// prepare writes a new plan: its files first, then what names them.
func (s *Stages) prepare(ctx context.Context, j *ingest.Job, p *workspace.Plan) error {
	var system systemFiles
	err := s.Work.GetJSON(ctx, workspace.SystemKey(j.ID), &system)
	if fault.Is(err, fault.NotFound) || err == nil && system.Follows != j.Follows {
		return errMoved // what stands there is not of this job's row
	}
	if err != nil {
		return err
	}
	w, contents := s.Work.CreateInventory(ctx, j.ID, p), s.Work.CreateContents(j.ID, p)
	p.Prepared, err = s.Root.Prepare(ctx, ocfl.Draft{ID: j.Primary, Job: j.ID, Attempt: p.Attempt, Files: s.version(ctx, j, system),
		Counts: systemfile.Counts, Version: provenance.OCFL(j), First: j.FirstTry() && j.Follows == ""}, w,
		func(file ocfl.Content) error { return contents.Add(ctx, file) })
	if err == nil {
		err = contents.Close(ctx)
	}
	if err == nil && p.Follows != j.Follows && !p.Written {
		err = errMoved
	}
	if err != nil {
		w.Abort()
		return err
	}
	if p.Inventory, _, err = w.Close(); err != nil {
		return err
	}
	return s.Work.PutPlan(ctx, j.ID, p)
}

// Stored asks whether the version of a job that is or was at Storing is committed,
// and if so notes on the job which it is. What is left to do of it is done by a
// requeue.
func (s *Stages) Stored(ctx context.Context, j *ingest.Job) error {
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
	for n := range stored.Versions {
		if stored.Job(n) == j.ID {
			j.ObjectVersion = n
		}
	}
	return nil
}

// version gives every file of the version: the producer's and the system's.
func (s *Stages) version(ctx context.Context, j *ingest.Job, system systemFiles) iter.Seq2[ocfl.File, error] {
	return func(yield func(ocfl.File, error) bool) {
		if len(system.Producer) < j.Files {
			for e, err := range s.Work.Entries(ctx, j) {
				if !yield(e.File, err) || err != nil {
					return
				}
			}
		}
		for _, f := range slices.Concat(system.Producer, system.Files) {
			if !yield(f, nil) {
				return
			}
		}
	}
}

// copySegment copies the files of one segment and verifies the copies.
func (s *Stages) copySegment(ctx context.Context, h *queue.Claim, p *workspace.Plan, n int) error {
	list, err := s.Work.Contents(ctx, h.Job.ID, p, n)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var wg sync.WaitGroup
	limit := make(chan struct{}, 4*s.Parallel) // S3 copies: nothing of it is in memory here
	for _, c := range list {
		limit <- struct{}{}
		wg.Go(func() {
			defer func() { <-limit }()
			if ctx.Err() != nil {
				return
			}
			if err := s.Root.Copy(ctx, h.Job.Primary, c, func() bool { return s.Now().Before(h.Until) }); err != nil {
				cancel(err)
			}
		})
	}
	wg.Wait()
	return context.Cause(ctx)
}
