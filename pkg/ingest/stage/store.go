package stage

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"archivist/pkg/events/event"
	"archivist/pkg/ingest"
	"archivist/pkg/ingest/provenance"
	"archivist/pkg/ingest/queue"
	"archivist/pkg/ingest/systemfile"
	"archivist/pkg/ingest/workspace"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/table"
	"archivist/pkg/objects/aip"
	"archivist/pkg/objects/inventory"
	"archivist/pkg/objects/ocfl"
	"archivist/pkg/objects/replica"
)

// Store writes the version into the storage root and verifies it there: it prepares
// the inventory, copies the new content segment by segment, publishes, and finishes.
// Each of these ends within a time budget.
//
// The plan is saved before anything is copied, and replaced only under a condition: two
// workers of one job never follow different plans. Content goes to keys of the job's
// own, so a copy can be repeated. Publishing puts the object's root inventory under a
// condition and under the job's lease: this one request is the commit. If a worker ends
// after it, the next try finishes the rest.
type Store struct {
	Root     ocfl.Root
	Rooted   *atomic.Bool // this process has seen the storage root
	Work     workspace.Store
	Packager Packager // writes the system files again if the object has a newer version
	Objects  inventory.Store
	Queue    *queue.Queue // reports which other jobs have ended
	Now      func() time.Time
	Parallel int // copies at once
}

// Run stores a job's version.
func (s Store) Run(ctx context.Context, claim *queue.Claim) (ingest.Result, error) {
	plan, err := s.prepare(ctx, claim)
	// The row with Done 0 is saved before the next plan is written.
	if errors.Is(err, errAgain) {
		claim.Job.Checkpoint, claim.Job.Done = "preparing again", 0
		return ingest.Result{Outcome: ingest.StepContinue}, nil
	}

	if errors.Is(err, errMoved) {
		return s.Packager.repack(ctx, claim)
	}

	if err == nil {
		var res ingest.Result
		res, err = s.follow(ctx, claim, plan)
		if err == nil {
			s.tell(claim, res)
			return res, nil
		}
	}

	return s.recover(ctx, claim, plan, err)
}

// follow carries out a plan, from where an earlier try stopped.
func (s Store) follow(ctx context.Context, claim *queue.Claim,
	plan *workspace.Plan) (ingest.Result, error) {
	// The version is committed, by a worker that died or whose answer was lost.
	if plan.Written {
		return next, s.finish(ctx, claim, plan, nil)
	}

	all, err := s.copy(ctx, claim, plan)
	if err != nil || !all {
		return ingest.Result{Outcome: ingest.StepContinue}, err
	}

	if plan.NoChange {
		notes, err := s.notTaken(ctx, claim.Job)
		if err != nil {
			return ingest.Result{}, err
		}
		claim.Job.FileWarnings = slices.Concat(claim.Job.FileWarnings, notes)
		return next, s.finish(ctx, claim, plan, nil)
	}

	just, err := s.publish(ctx, claim, plan)
	if err != nil {
		return ingest.Result{}, err
	}
	return next, s.finish(ctx, claim, plan, just)
}

// errMoved means that the object is at another version than the system files were written
// for.
var errMoved = errors.New("the object has a newer version")

// prepare plans the version, unless an earlier try did and the object is still at the
// version that it was planned for. It returns errMoved if the system files must be written
// again first, and a Stale if another worker of the job planned meanwhile.
func (s Store) prepare(ctx context.Context, claim *queue.Claim) (plan *workspace.Plan, err error) {
	j := claim.Job
	plan = new(workspace.Plan)
	if !j.FirstTry() {
		plan, err = s.Work.Plan(ctx, j.ID)
		if err != nil {
			return plan, err
		}
	}

	if plan.IsOf(j) {
		state, err := s.Root.State(ctx, plan.Prepared)
		if err != nil || state != ocfl.Overtaken {
			plan.Written = plan.Written || state == ocfl.Committed
			return plan, err
		}
	}

	if j.Done > 0 { // of the plan before: the row must not count it for the next one
		return plan, errAgain
	}

	j.Healed = j.Healed.Replanned()
	system, err := s.Work.SystemFiles(ctx, j.ID)
	if fault.Is(err, fault.NotFound) || err == nil && system.Follows != j.Follows {
		return plan, errMoved // what is stored there is not of this job's row
	}

	if err != nil {
		return plan, err
	}

	plan = plan.Replacing(j, claim.Take(), s.Now().UnixMilli())
	return plan, s.plan(ctx, j, plan, system)
}

// errAgain says that the progress of an earlier plan is to be forgotten before the next plan is written.
var errAgain = errors.New("the version is prepared again")

// plan writes a plan: its files first, then what names them. A worker that dies in between leaves
// files that no plan names, below the job's prefix.
func (s Store) plan(
	ctx context.Context, j *ingest.Job, plan *workspace.Plan, system workspace.SystemFiles,
) (err error) {
	draft := ocfl.Draft{
		ID:      j.Primary,
		Job:     j.ID,
		Attempt: plan.Attempt,
		Version: provenance.OCFL(j),
		Files:   s.files(ctx, j, system),
		Counts:  systemfile.Counts,
		First:   j.FirstTry() && j.Follows == "",
	}

	inventory, contents := s.Work.CreateInventory(ctx, j.ID, plan),
		s.Work.CreateContents(j.ID, plan)
	plan.Prepared, err = s.Root.Prepare(ctx, draft, inventory,
		func(file ocfl.Content) error { return contents.Add(ctx, file) })
	if err == nil {
		err = contents.Close(ctx)
	}

	// The object has got a version since its state was asked for: the system files are of an older
	// one.
	if err == nil && plan.Follows != j.Follows && !plan.Written {
		err = errMoved
	}

	if err != nil {
		inventory.Abort()
		return err
	}

	plan.Inventory, _, err = inventory.Close()
	if err != nil {
		return err
	}
	return s.Work.PutPlan(ctx, j.ID, plan)
}

// files gives every file of the version: the producer's and the system's.
func (s Store) files(ctx context.Context, j *ingest.Job,
	system workspace.SystemFiles) iter.Seq2[ocfl.File, error] {
	return func(yield func(ocfl.File, error) bool) {
		if files, _ := j.Content(); len(system.Producer) < files {
			for e, err := range s.producer(ctx, j, system) {
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

// producer gives the producer's files: from the ledger of the download, or, of a correction, from the list that
// was made for its version. An update has both.
func (s Store) producer(ctx context.Context, j *ingest.Job, system workspace.SystemFiles) iter.Seq2[aip.Entry, error] {
	switch {
	case j.Corrects():
		return s.filesOf(ctx, system)
	case !j.Updates():
		return s.Work.Entries(ctx, j)
	}

	return func(yield func(aip.Entry, error) bool) {
		submitted := map[string]bool{}
		for e, err := range s.Work.Entries(ctx, j) {
			submitted[e.Path] = true
			if err == nil && e.Path == systemfile.Deletions {
				continue
			}
			if !yield(e, err) || err != nil {
				return
			}
		}
		for e, err := range s.filesOf(ctx, system) { // the files that are kept have no work file
			if err == nil && submitted[e.Path] {
				continue
			}
			if !yield(e, err) || err != nil {
				return
			}
		}
	}
}

// copy copies the new content, and returns whether all of it is there, and all reused content
// as it must be. A try that prepared copies nothing if its time is up.
func (s Store) copy(ctx context.Context, claim *queue.Claim,
	plan *workspace.Plan) (all bool, err error) {
	j := claim.Job
	// Before the first content, so that a listing of the root finds what a crash leaves.
	if plan.Follows == "" && !plan.NoChange {
		if err := s.declare(ctx, plan.ID); err != nil {
			return false, err
		}
	}

	all = !plan.Fresh || s.inTime(claim)
	if all {
		all, err = s.copySegments(ctx, claim, plan, 0)
	}

	if err == nil && !all {
		copied := min(j.Done*workspace.SegmentFiles, plan.Contents)
		j.Checkpoint = fmt.Sprintf("%d of %d new files copied", copied, plan.Contents)
	}

	return all, err
}

// declare writes the declaration that an object is at its place. The process checks once
// that the storage root is there.
func (s Store) declare(ctx context.Context, id string) error {
	if !s.Rooted.Load() {
		if err := s.Root.Init(ctx); err != nil {
			return err
		}
		s.Rooted.Store(true)
	}
	return s.Root.Declare(ctx, id)
}

func (s Store) inTime(claim *queue.Claim) bool { return s.Now().Before(claim.Until) }

// copySegments copies the segments of a plan as long as there is time, and returns
// whether all are copied. The job's Done counts them, from first on.
func (s Store) copySegments(
	ctx context.Context, claim *queue.Claim, plan *workspace.Plan, first int,
) (all bool, err error) {
	for j := claim.Job; j.Done < first+plan.Segments(); j.Done++ {
		if !s.inTime(claim) {
			return false, nil
		}
		damaged, err := s.copySegment(ctx, claim, plan, j.Done-first)
		if errors.Is(err, ocfl.ErrStop) {
			return false, nil
		}
		if err != nil {
			return false, err
		}
		if len(damaged) > 0 { // noted with this try; the next one replaces them
			j.Healed = j.Healed.Noting(j.Done-first+1, damaged)
			return false, nil
		}
	}

	return true, nil
}

// copySegment copies the new files of one segment, and verifies the copies and the reused files. A
// reused file that is not as it must be is replaced if it is noted on the job already: what a worker
// did that then dies is known. Otherwise its path is returned.
func (s Store) copySegment(ctx context.Context, claim *queue.Claim, plan *workspace.Plan,
	n int) (damaged []string, err error) {
	list, err := s.Work.Contents(ctx, claim.Job.ID, plan, n)
	if err != nil {
		return nil, err
	}

	noted := claim.Job.Healed.Noted(n + 1)
	found := make([]bool, len(list))
	// The first error ends the copies that have not begun.
	side, ctx := errgroup.WithContext(ctx)
	side.SetLimit(s.Parallel)
	for i, content := range list {
		side.Go(func() (err error) {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			found[i], err = s.copyFile(ctx, claim, plan, content, noted)
			return err
		})
	}

	err = side.Wait()
	for i, content := range list {
		if found[i] && !noted {
			damaged = append(damaged, content.To)
		}
	}
	return damaged, err
}

// copyFile copies a new file, or checks a reused one. It reports whether that is not as it must be;
// heal replaces it.
func (s Store) copyFile(ctx context.Context, claim *queue.Claim, plan *workspace.Plan, c ocfl.Content,
	heal bool) (damaged bool, err error) {
	// Its bytes are there already: they are read only if S3 has no checksum of them.
	if c.Reused {
		intact, err := s.Root.Intact(ctx, plan.ID, c)
		if err == nil && !intact && c.Source == "" && c.Data == nil {
			err = &ocfl.DamagedError{ID: plan.ID,
				Why: c.To + " is damaged or missing, and the submission does not have it"}
		}
		if err != nil || intact || !heal {
			return err == nil && !intact, err
		}
	}

	if plan.NoChange && !c.Reused {
		return false, nil // its version is not made
	}
	return c.Reused, s.Root.Copy(ctx, plan.ID, c, func() bool { return s.inTime(claim) })
}

// tell adds to the end of the step the event of the object that its damaged files were replaced.
func (s Store) tell(claim *queue.Claim, res ingest.Result) {
	j := claim.Job
	if res.Outcome != ingest.StepNext || j.Healed == nil || j.Healed.Told {
		return
	}

	told := *j.Healed
	told.Told = true
	j.Healed = &told
	claim.OnCommit(func(ctx context.Context, tx *table.Tx) error {
		err := s.Objects.Happened(ctx, tx, j.Primary, event.New{
			Type:      inventory.EventRepair,
			Time:      s.Now().UnixMilli(),
			Component: "store",
			Actor:     j.Actor(),
			Detail: replica.Detail{
				Repair: j.ID,
				Keys:   told.Paths,
				More:   told.More,
				Reason: "the submission brought the bytes of damaged or missing files",
			},
		})
		if fault.Is(err, fault.NotFound) {
			return nil // its rows are lost, and made again with the version
		}
		return err
	})
}

// publish commits the version. It is called again after a lost answer: Publish finds its own
// version.
func (s Store) publish(ctx context.Context, claim *queue.Claim,
	plan *workspace.Plan) (*ocfl.Published, error) {
	j := claim.Job
	just, err := s.Root.Publish(ctx, plan.Prepared, s.Work.Inventory(j.ID, plan),
		owner(s.Queue, claim, plan.At))
	if err == nil {
		j.ObjectVersion = plan.Number // also for a worker that finds at the end that it lost the job
	}
	return just, err
}

// finish verifies the committed version and writes what is missing of it. just is a version
// that was published in this try, or nil. The digest vouches for the inventory when Record reads
// it.
func (s Store) finish(ctx context.Context, claim *queue.Claim, plan *workspace.Plan,
	just *ocfl.Published) error {
	digest, err := s.Root.Finish(ctx, plan.ID, owner(s.Queue, claim, plan.At), just)
	if err == nil {
		claim.Job.ObjectVersion, claim.Job.NoChange, claim.Job.Inventory = plan.Number,
			plan.NoChange, digest
	}
	return err
}

// owner is the job as the owner of its object's lock, with a plan of a time. planned is in
// milliseconds since 1970; only Publish asks it, so it may be 0 for Finish.
func owner(q *queue.Queue, claim *queue.Claim, planned int64) ocfl.Owner {
	return ocfl.Owner{
		Job:   claim.Job.ID,
		Fence: claim.CheckLease,
		Ended: q.JobEnded,
		Alone: func() bool { return q.Ended(planned) },
	}
}

// recover decides what to do if the version could not be stored.
func (s Store) recover(
	ctx context.Context, claim *queue.Claim, plan *workspace.Plan, why error,
) (ingest.Result, error) {
	j := claim.Job
	missing, claimed := new(ocfl.MissingError), new(ocfl.ClaimedError)
	switch {
	case errors.As(why, &missing) && !plan.NoChange:
		return s.copyAgain(ctx, claim, plan, missing)
	case errors.As(why, &missing): // a file that the submission does not bring
		why = &ocfl.DamagedError{ID: plan.ID, Why: missing.Error()}
	case errors.As(why, &claimed):
		j.Checkpoint = "waiting for the workers of job " + claimed.Job + " to end"
		// Without a wait, the execution would repeat the state each second.
		wait := min(claim.Until.Sub(s.Now()), time.Minute)
		return ingest.Result{Outcome: ingest.StepContinue}, s.Queue.Table.Wait(ctx, wait)
	case fault.Is(why, fault.Stale) && claim.CheckLease(ctx) == nil: // the object's version has changed
		j.Checkpoint, j.Done = "preparing again", 0
		j.Healed = j.Healed.Replanned()
		return ingest.Result{Outcome: ingest.StepContinue},
			s.Work.Delete(ctx, workspace.PlanKey(j.ID))
	}

	return ingest.Result{}, why
}

// copyAgain starts the copying over: some stored content is missing. Meanwhile Done counts
// beyond the number of segments.
func (s Store) copyAgain(
	ctx context.Context, claim *queue.Claim, plan *workspace.Plan, why error,
) (ingest.Result, error) {
	j, first := claim.Job, plan.Segments()
	s.Queue.Log.Error("stored content is missing; it is copied again", "job", j.ID, "error", why)
	// From the number of segments on, Done counts those that are copied again.
	if j.Done < first || j.Done >= 2*first {
		j.Done = first
	}

	all, err := s.copySegments(ctx, claim, plan, first)
	if err != nil {
		return ingest.Result{}, err
	}

	if !all {
		copied := (j.Done - first) * workspace.SegmentFiles
		j.Checkpoint = fmt.Sprintf("%d of %d new files copied again", copied, plan.Contents)
		return ingest.Result{Outcome: ingest.StepContinue}, nil
	}

	return ingest.Result{}, why // the next try checks that all is there
}
