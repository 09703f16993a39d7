package stage

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync"
	"time"

	"archivist/pkg/bucket"
	"archivist/pkg/fault"
	"archivist/pkg/ingest"
	"archivist/pkg/ocfl"
	"archivist/pkg/provenance"
	"archivist/pkg/queue"
	"archivist/pkg/systemfile"
	"archivist/pkg/workspace"
)

// plan is how a job's version is to be stored. Its inventory and the list of its new
// content are part of it if they are small, else in a folder that only who prepared
// it writes, so that a worker that comes late changes nothing of a plan which another
// follows.
type plan struct {
	ocfl.Prepared
	Attempt   string         `json:"attempt"`
	Retry     int            `json:"retry"` // the job's retry count: a requeued job begins anew
	Stamp     int64          `json:"stamp"` // the job's: one that was processed again, after a restore, begins anew
	At        int64          `json:"at"`    // when it was prepared; who follows another plan was at work before
	Inventory []byte         `json:"inventory,omitempty"`
	List      []ocfl.Content `json:"list,omitempty"` // of the new content, if that is one segment

	etag  string // of the plan as it was read
	fresh bool   // prepared by this worker
}

func (p *plan) folder(job string) string { return workspace.Prefix(job) + "plan/" + p.Attempt + "/" }

func (p *plan) inventoryKey(job string) string { return p.folder(job) + "inventory.json" }

func (p *plan) contentKey(job string, n int) string {
	return fmt.Sprintf("%scontent/%06d.json", p.folder(job), n)
}

// segments is how many lists of new content there are.
func (p *plan) segments() int { return (p.Contents + segmentFiles - 1) / segmentFiles }

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
			just, err = s.Root.Publish(ctx, p.Prepared, s.inventoryOf(j.ID, p), owner)
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
func (s *Stages) owner(h *queue.Claim, p *plan) ocfl.Owner {
	return ocfl.Owner{Job: h.Job.ID, Fence: h.CheckLease, Over: s.Queue.JobEnded, Alone: func() bool { return s.Queue.Ended(p.At) }}
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
func (s *Stages) copyAll(ctx context.Context, h *queue.Claim, p *plan) (all bool, err error) {
	j := h.Job
	if p.Follows == "" {
		if err := s.declare(ctx, p.ID); err != nil {
			return false, err
		}
	}
	for j.Done < p.segments() || p.fresh {
		if !s.Now().Before(h.Until) {
			j.Checkpoint = fmt.Sprintf("%d of %d new files copied", min(j.Done*segmentFiles, p.Contents), p.Contents)
			return false, nil
		}
		if p.fresh = false; j.Done < p.segments() {
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
func (s *Stages) notStored(ctx context.Context, h *queue.Claim, p *plan, why error) (ingest.Result, error) {
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
func (s *Stages) copyAgain(ctx context.Context, h *queue.Claim, p *plan, why error) (ingest.Result, error) {
	j, last := h.Job, p.segments()
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
			j.Checkpoint = fmt.Sprintf("%d of %d new files copied again", (j.Done-last)*segmentFiles, p.Contents)
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
func (s *Stages) plan(ctx context.Context, h *queue.Claim) (p *plan, err error) {
	j := h.Job
	if p = new(plan); !j.FirstTry() {
		if p, err = s.readPlan(ctx, j); err != nil {
			return p, err
		}
	}
	if p.ID == j.Primary && p.Retry == j.RetryCount && p.Stamp == j.Stamp {
		state, err := s.Root.State(ctx, p.Prepared)
		if err != nil || state != ocfl.Overtaken {
			p.Written = p.Written || state == ocfl.Committed
			return p, err
		}
	}
	j.Done = 0
	p = &plan{Attempt: h.Take(), Retry: j.RetryCount, Stamp: j.Stamp, At: s.Now().UnixMilli(), etag: p.etag, fresh: true}
	return p, s.prepare(ctx, j, p)
}

// readPlan reads the plan as it stands; without an ID there is none.
func (s *Stages) readPlan(ctx context.Context, j *ingest.Job) (*plan, error) {
	p := &plan{}
	data, info, err := s.Work.Read(ctx, workspace.PlanKey(j.ID))
	if fault.Is(err, fault.NotFound) {
		return p, nil
	}
	if err == nil {
		err = json.Unmarshal(data, p)
	}
	p.etag = info.ETag
	return p, err
}

// prepare writes a new plan: its files first, then what names them.
func (s *Stages) prepare(ctx context.Context, j *ingest.Job, p *plan) error {
	var system systemFiles
	err := s.Work.GetJSON(ctx, workspace.SystemKey(j.ID), &system)
	if fault.Is(err, fault.NotFound) || err == nil && system.Follows != j.Follows {
		return errMoved // what stands there is not of this job's row
	}
	if err != nil {
		return err
	}
	w := s.Work.Create(ctx, p.inventoryKey(j.ID), workspace.SmallInventory)
	contents := &contents{s: s, ctx: ctx, key: func(n int) string { return p.contentKey(j.ID, n) }}
	p.Prepared, err = s.Root.Prepare(ctx, ocfl.Draft{ID: j.Primary, Job: j.ID, Attempt: p.Attempt, Files: s.version(ctx, j, system),
		Counts: systemfile.Counts, Version: provenance.OCFL(j), First: j.FirstTry() && j.Follows == ""}, w, contents.add)
	if err == nil {
		p.List, err = contents.close()
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
	return s.Work.PutJSON(ctx, workspace.PlanKey(j.ID), p, bucket.Condition{Absent: p.etag == "", ETag: p.etag})
}

// inventoryOf opens the inventory of a plan.
func (s *Stages) inventoryOf(job string, p *plan) ocfl.Text {
	if p.Inventory != nil {
		return workspace.InMemory(p.Inventory)
	}
	return s.Work.Text(p.inventoryKey(job))
}

// Stored asks whether the version of a job that is or was at Storing is committed,
// and if so notes on the job which it is. What is left to do of it is done by a
// requeue.
func (s *Stages) Stored(ctx context.Context, j *ingest.Job) error {
	p, err := s.readPlan(ctx, j)
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
			for e, err := range s.entries(ctx, j) {
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

// contents writes down what is to be copied, segment by segment.
type contents struct {
	s    *Stages
	ctx  context.Context
	key  func(n int) string
	n    int
	list []ocfl.Content
}

func (c *contents) add(file ocfl.Content) error {
	if len(c.list) == segmentFiles {
		if err := c.flush(); err != nil {
			return err
		}
	}
	c.list = append(c.list, file)
	return nil
}

// close ends the segments. The only one is not written, but returned.
func (c *contents) close() ([]ocfl.Content, error) {
	if c.n == 0 {
		return c.list, nil
	}
	return nil, c.flush()
}

func (c *contents) flush() error {
	err := c.s.Work.PutJSON(c.ctx, c.key(c.n), c.list, bucket.Condition{})
	c.n, c.list = c.n+1, c.list[:0]
	return err
}

// copySegment copies the files of one segment and verifies the copies.
func (s *Stages) copySegment(ctx context.Context, h *queue.Claim, p *plan, n int) error {
	list := p.List
	if list == nil {
		if err := s.Work.GetJSON(ctx, p.contentKey(h.Job.ID, n), &list); err != nil {
			return err
		}
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
