package stage

import (
	"context"
	"crypto/sha1"
	"errors"
	"fmt"
	"iter"
	"net/url"
	"slices"
	"sync"
	"time"

	"archivist/pkg/bucket"
	"archivist/pkg/fault"
	"archivist/pkg/ingest"
	"archivist/pkg/notify"
	"archivist/pkg/ocfl"
	"archivist/pkg/queue"
)

func planKey(job string) string      { return workPrefix(job) + "plan.json" }
func inventoryKey(job string) string { return workPrefix(job) + "inventory.json" }
func contentKey(job string, n int) string {
	return fmt.Sprintf("%scontent/%06d.json", workPrefix(job), n)
}

// store writes the version into the storage root and verifies it there: it
// prepares the inventory, copies the content segment by segment, and commits.
// Each of these ends within a time budget.
func (s *Stages) store(ctx context.Context, h *queue.Held) (ingest.Result, error) {
	j := h.Job
	if err := s.Root.Init(ctx); err != nil {
		return ingest.Result{}, err
	}
	owner := ocfl.Owner{Fence: h.StillMine, Over: s.Queue.Over}
	p, fresh, err := s.plan(ctx, j)
	if errors.Is(err, errMoved) {
		return s.again(ctx, j, h.Until)
	}
	if err != nil {
		return ingest.Result{}, err
	}
	if !p.NoChange && !p.Written {
		if p.Follows == "" {
			if err := s.Root.Declare(ctx, p.ID); err != nil {
				return ingest.Result{}, err
			}
		}
		last := (p.Contents + segmentFiles - 1) / segmentFiles
		for j.Done < last || fresh {
			if !s.Now().Before(h.Until) {
				j.Checkpoint = fmt.Sprintf("%d of %d new files copied", min(j.Done*segmentFiles, p.Contents), p.Contents)
				return ingest.Result{Outcome: ingest.StepContinue}, nil
			}
			if fresh = false; j.Done < last {
				err := s.copySegment(ctx, h, j.Done)
				if errors.Is(err, ocfl.ErrStop) {
					continue // the time is up
				}
				if err != nil {
					return ingest.Result{}, err
				}
				j.Done++
			}
		}
		err := s.Root.Publish(ctx, p, inventoryKey(j.ID), owner)
		if fault.Is(err, fault.Lost) && h.StillMine(ctx) == nil { // prepared for another version than stands now
			j.Checkpoint, j.Done = "preparing again", 0
			return ingest.Result{Outcome: ingest.StepContinue}, s.Work.Delete(ctx, planKey(j.ID))
		}
		if err != nil {
			return ingest.Result{}, err
		}
		j.ObjectVersion = p.Number // also for a worker that learns at the end that the job was taken from it
	}
	digest, err := s.Root.Finish(ctx, p.ID, owner)
	if missing := new(ocfl.MissingError); errors.As(err, &missing) && !p.NoChange {
		return s.copyAgain(ctx, h, p, missing)
	}
	if err != nil {
		return ingest.Result{}, err
	}
	j.ObjectVersion, j.NoChange, j.Inventory = p.Number, p.NoChange, digest
	return next, nil
}

// copyAgain begins the copying again: what was stored is no longer all there.
func (s *Stages) copyAgain(ctx context.Context, h *queue.Held, p ocfl.Prepared, why error) (ingest.Result, error) {
	s.Queue.Log.Error("stored content is gone, it is copied again", "job", h.Job.ID, "error", why)
	for n := range (p.Contents + segmentFiles - 1) / segmentFiles {
		if err := s.copySegment(ctx, h, n); err != nil {
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
// be written again first.
func (s *Stages) plan(ctx context.Context, j *ingest.Job) (p ocfl.Prepared, fresh bool, err error) {
	err = s.getJSON(ctx, planKey(j.ID), &p)
	if err == nil {
		state, err := s.Root.State(ctx, p)
		if err != nil || state != ocfl.Overtaken {
			p.Written = p.Written || state == ocfl.Committed
			return p, false, err
		}
	} else if !fault.Is(err, fault.NotFound) {
		return p, false, err
	}
	moved, err := s.moved(ctx, j)
	if err == nil && moved {
		err = errMoved
	}
	if err != nil {
		return p, false, err
	}
	j.Done = 0
	w := s.Work.Writer(ctx, inventoryKey(j.ID), bucket.Condition{})
	contents := &contents{s: s, ctx: ctx, job: j.ID}
	p, err = s.Root.Prepare(ctx, ocfl.Draft{ID: j.Primary, Job: j.ID, Files: s.version(ctx, j), Counts: counts,
		Version: versionOf(j)}, w, contents.add)
	if err == nil {
		err = contents.flush()
	}
	if err != nil {
		_ = w.Abort() // what is left is removed by the bucket's own rule
		return p, false, err
	}
	if err := w.Close(); err != nil {
		return p, false, err
	}
	if p.Follows != j.Follows && !p.Written {
		return p, false, errMoved
	}
	return p, true, s.putJSON(ctx, planKey(j.ID), p, bucket.Condition{})
}

// versionOf is what the version says of itself: the depositor's note and who
// submitted it (OCFL 1.1, section 3.5.3).
func versionOf(j *ingest.Job) ocfl.Version {
	v := ocfl.Version{Created: time.UnixMilli(j.Stamp).UTC(), Message: j.Note, User: &ocfl.User{Name: j.Submitter, Address: address(j.Submitter)}}
	if v.Message == "" {
		v.Message = fmt.Sprintf("ingest of job %s, batch %s", j.ID, j.Batch)
	}
	if v.User.Name == "" {
		v.User = &ocfl.User{Name: "unknown submitter", Address: address("")}
	}
	return v
}

// address is a URI for a submitter: that of a mail address, else a name-based UUID
// (RFC 9562, section 5.5), which is the same each time.
func address(submitter string) string {
	if notify.CheckAddress(submitter) == nil {
		return (&url.URL{Scheme: "mailto", Opaque: url.PathEscape(submitter)}).String()
	}
	sum := sha1.Sum(append(slices.Clone(submitters), submitter...))
	sum[6], sum[8] = sum[6]&0x0f|0x50, sum[8]&0x3f|0x80
	return fmt.Sprintf("urn:uuid:%x-%x-%x-%x-%x", sum[:4], sum[4:6], sum[6:8], sum[8:10], sum[10:16])
}

// submitters is the namespace of the UUIDs that stand for submitters.
var submitters = []byte{0x0d, 0x5a, 0xe3, 0x5e, 0x2b, 0x7c, 0x4f, 0x0e, 0x9b, 0x62, 0x51, 0x47, 0xc8, 0x1d, 0xa9, 0x33}

// Stored asks whether the version of a job that is or was at Storing is committed,
// and if so notes on the job which it is. What is left to do of it is done by a
// requeue.
func (s *Stages) Stored(ctx context.Context, j *ingest.Job) error {
	var p ocfl.Prepared
	err := s.getJSON(ctx, planKey(j.ID), &p)
	if fault.Is(err, fault.NotFound) || err == nil && p.NoChange {
		return nil
	}
	if err != nil {
		return err
	}
	state, err := s.Root.State(ctx, p)
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
func (s *Stages) version(ctx context.Context, j *ingest.Job) iter.Seq2[ocfl.File, error] {
	return func(yield func(ocfl.File, error) bool) {
		for e, err := range s.entries(ctx, j) {
			if !yield(e.File, err) || err != nil {
				return
			}
		}
		var system []ocfl.File
		if err := s.getJSON(ctx, systemKey(j.ID), &system); err != nil {
			yield(ocfl.File{}, err)
			return
		}
		for _, f := range system {
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
	job  string
	n    int
	list []ocfl.Content
}

func (c *contents) add(file ocfl.Content) error {
	if c.list = append(c.list, file); len(c.list) < segmentFiles {
		return nil
	}
	return c.flush()
}

func (c *contents) flush() error {
	if len(c.list) == 0 {
		return nil
	}
	err := c.s.putJSON(c.ctx, contentKey(c.job, c.n), c.list, bucket.Condition{})
	c.n, c.list = c.n+1, c.list[:0]
	return err
}

// copySegment copies the files of one segment and verifies the copies.
func (s *Stages) copySegment(ctx context.Context, h *queue.Held, n int) error {
	var list []ocfl.Content
	if err := s.getJSON(ctx, contentKey(h.Job.ID, n), &list); err != nil {
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
