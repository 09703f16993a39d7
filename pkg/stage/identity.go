package stage

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"archivist/pkg/aip"
	"archivist/pkg/bucket"
	"archivist/pkg/description"
	"archivist/pkg/fault"
	"archivist/pkg/ingest"
	"archivist/pkg/inventory"
	"archivist/pkg/ocfl"
	"archivist/pkg/queue"
	"archivist/pkg/reindex"
	"archivist/pkg/spill"
	"archivist/pkg/systemfile"
	"archivist/pkg/table"
	"archivist/pkg/workspace"
)

// foreign refuses a submission for an object of another collection. It names neither.
func foreign(ark string) string {
	return ark + " is not an object that this submission may change"
}

// adopt takes the identifiers that were found in the package into the job's, once
// the submission's own are resolved. An ark must be the one that was submitted, or
// says which object it is. Local ids add to what the submission names; they never
// make it one for another object. It returns why the submission is refused, or "".
func (s *Stages) adopt(ctx context.Context, j *ingest.Job, d description.Description) (refused string, err error) {
	if d.ARK != "" && j.Primary == "" {
		j.Primary = d.ARK
		if refused, err := s.resolve(ctx, j); err != nil || refused != "" {
			return refused, err
		}
	}
	if d.ARK != "" && j.Primary != d.ARK {
		return fmt.Sprintf("the package's description says %s, but the submission is for %s; make them agree",
			d.ARK, j.Primary), nil
	}
	if _, err := ingest.CleanLocalIDs(slices.Concat(j.Submitted(), d.LocalIDs)); err != nil {
		return "with those in the package's description: " + err.Error(), nil
	}
	j.LocalIDs, j.Found = j.Submitted(), 0
	for _, id := range d.LocalIDs {
		if slices.Contains(j.LocalIDs, id) {
			continue
		}
		if refused, err := s.adds(ctx, j, id); err != nil || refused != "" {
			return refused, err
		}
		j.LocalIDs, j.Found = append(j.LocalIDs, id), j.Found+1
	}
	return "", nil
}

// adds asks whether a local id that was found in the package can be one of the job's
// object. One that stands for an object of which nothing is stored, since the job
// that reserved it failed, says which object a submission is that names none.
func (s *Stages) adds(ctx context.Context, j *ingest.Job, id string) (refused string, err error) {
	known, err := s.Inventory.ByLocalID(ctx, j.Collection, id)
	if err != nil || known == "" || known == j.Primary {
		return "", err
	}
	if j.Primary == "" {
		etag, err := s.Root.ETag(ctx, known)
		if err != nil || etag == "" {
			j.Primary = known
			return "", err
		}
	}
	return fmt.Sprintf("the package's description names the local id %q, which is that of another object (%s): "+
		"if it is meant, submit it by that id; if not, take the id out", id, known), nil
}

// settle writes the system files for the object as it is stored now: it refuses
// what is not the object's own collection's, and takes over what the object had.
// The job owns the object's lock.
func (s *Stages) settle(
	ctx context.Context, h *queue.Claim, stored *ocfl.Stored, d description.Description, files *spill.Sorter[aip.Entry],
) (ingest.Result, error) {
	j := h.Job
	all := *j
	if stored.Head > 0 {
		res, err := s.mine(ctx, j, stored, &all, h.Until)
		if err != nil || res.Outcome != ingest.StepNext {
			return res, err
		}
		before, err := aip.Head(s.Root, stored).Description(ctx)
		if err != nil {
			return ingest.Result{}, err
		}
		d.Inherit(before)
	}
	if why := unexpected(j, stored.Head); why != "" {
		return ingest.Fail(false, why), nil
	}
	if refused, err := s.reserveIDs(ctx, j); err != nil || refused != "" {
		return ingest.Fail(false, refused), err
	}
	d.Summarise(&j.Metadata)
	all.Metadata, j.Follows = j.Metadata, stored.ETag()
	p := &packager{s: s, job: &all, attempt: h.Take(), out: systemFiles{Follows: j.Follows}}
	if err := p.write(ctx, systemfile.Version{Number: stored.Head + 1, Job: &all, Description: d}, files); err != nil {
		return ingest.Result{}, err
	}
	return next, s.Work.PutJSON(ctx, workspace.SystemKey(j.ID), p.out, bucket.Condition{})
}

// mine asks whether the job may make a version of a stored object: one of its
// collection, and of no later submission. It gives all the local ids that the object
// had, and the job has.
func (s *Stages) mine(
	ctx context.Context, j *ingest.Job, stored *ocfl.Stored, all *ingest.Job, until time.Time,
) (ingest.Result, error) {
	id, err := aip.Head(s.Root, stored).Identity(ctx)
	if err != nil {
		return ingest.Result{}, err
	}
	if !id.In(j.Collection) {
		return ingest.Fail(false, foreign(j.Primary)), nil
	}
	if why := overtaken(j, stored); why != "" {
		return ingest.Fail(true, why), nil
	}
	all.LocalIDs = slices.Clone(id.LocalIDs)
	for _, local := range j.LocalIDs {
		if !slices.Contains(all.LocalIDs, local) {
			all.LocalIDs = append(all.LocalIDs, local)
		}
	}
	return s.bringBack(ctx, j.Primary, id, until)
}

// reserveIDs makes the job's local ids stand for its object before anything of it is
// stored, and refuses those that are another object's by now. The job owns their
// locks. A job that fails later gives the locks back: without these rows the next
// submission with one of its ids would begin a second object.
func (s *Stages) reserveIDs(ctx context.Context, j *ingest.Job) (refused string, err error) {
	o := inventory.Object{ARK: j.Primary, Collection: j.Collection, LocalIDs: j.LocalIDs}
	fresh, err := s.Inventory.Fresh(ctx, &o)
	if fault.Is(err, fault.Conflict) {
		return err.Error() + ". Submit one object at a time", nil
	}
	if err != nil || len(fresh) == 0 {
		return "", err
	}
	return "", s.commit(ctx, func(tx *table.Tx) error { inventory.PutLocalIDs(tx, &o, fresh); return nil })
}

// bringBack writes the missing rows of the local ids of a stored object that has no
// row of its own: a submission with one of them must find this object. Its other rows
// are written when the job's version is recorded.
func (s *Stages) bringBack(ctx context.Context, ark string, id aip.Identity, until time.Time) (ingest.Result, error) {
	if _, err := s.Inventory.Object(ctx, ark); !fault.Is(err, fault.NotFound) {
		return next, err
	}
	err := s.Reindexer().LocalIDs(ctx, &inventory.Object{ARK: ark, Collection: id.Collection, LocalIDs: id.LocalIDs}, until)
	switch {
	case fault.Is(err, fault.Conflict):
		return ingest.Fail(true, fmt.Sprintf("%s is stored, but its rows are missing and cannot be brought back: %v. "+
			"Tell the archive's operator", ark, err)), nil
	case errors.Is(err, reindex.ErrStopped):
		return ingest.Result{Outcome: ingest.StepContinue}, nil
	}
	return next, err
}

// wrote reports whether a job's version is committed.
func wrote(stored *ocfl.Stored, job string) bool {
	for n := range stored.Versions {
		if stored.Job(n) == job {
			return true
		}
	}
	return false
}

// overtaken says that the object has a version by a later submission, which nobody
// permitted the job to replace.
func overtaken(j *ingest.Job, stored *ocfl.Stored) string {
	if wrote(stored, j.ID) {
		return ""
	}
	for n := stored.Head; n > j.Permitted; n-- {
		if by := stored.Job(n); ingest.SubmittedAfter(by, j.ID) {
			return ingest.Overtaken(j.ID, j.Primary, stored.Head, n, by) + ". Requeue the job with confirm if that is wanted"
		}
	}
	return ""
}

// again writes the system files of a job at Storing anew, since the object moved on.
func (s *Stages) again(ctx context.Context, h *queue.Claim) (ingest.Result, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	files, described, err := s.gather(ctx, h.Job)
	if err != nil {
		return ingest.Result{}, err
	}
	d, refused, err := s.describeJob(ctx, h.Job, described)
	if err != nil || refused != "" {
		return ingest.Fail(false, refused), err
	}
	stored, err := s.stored(ctx, h.Job.Primary)
	if err != nil {
		return ingest.Result{}, err
	}
	res, err := s.settle(ctx, h, stored, d, files)
	if err != nil || res.Outcome != ingest.StepNext {
		return res, err
	}
	h.Job.Checkpoint, h.Job.Done = "preparing again", 0
	return ingest.Result{Outcome: ingest.StepContinue}, nil
}
