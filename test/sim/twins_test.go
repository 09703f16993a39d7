package sim

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"archivist/pkg/ingest"
	"archivist/pkg/ingest/queue"
	"archivist/pkg/kernel/table"
)

// store is a twin of the storage root and the inventory: per object a chain of
// versions, each written by a job, and which object a local id belongs to. A
// version is committed by a conditional put on the head.
type store struct {
	w     *world
	mu    sync.Mutex
	heads map[string][]string // ark → jobs of its versions
	ids   map[string]string   // lock key of a local id → ark
	files map[string]bool     // jobs whose work files are whole
	rows  map[string]bool     // jobs whose version is recorded
}

var (
	errPrecondition = errors.New("sim: precondition failed")
	errRefused      = errors.New("sim: the dependency refuses")
)

// commit appends the job's version if the head is still the one that was read.
func (s *store) commit(ark, job string, seen int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.heads[ark]) != seen {
		return errPrecondition
	}
	s.heads[ark] = append(s.heads[ark], job)
	return nil
}

func (s *store) head(ark string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.heads[ark])
}

// versions counts the versions that a job wrote.
func (s *store) versions(j *ingest.Job) (n int) {
	for _, id := range s.head(j.Primary) {
		if id == j.ID {
			n++
		}
	}
	return n
}

// reserve gives the job's local ids to its object, unless one belongs to another.
func (s *store) reserve(j *ingest.Job) (mine bool) {
	mine = s.resolve(j)
	if !mine {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, key := range localKeys(j) {
		s.ids[key] = j.Primary
	}
	return true
}

// record makes an object findable by its local ids. Locks and reservations must have
// prevented other jobs from giving one of them to another object.
func (s *store) record(j *ingest.Job) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, key := range localKeys(j) {
		if had := s.ids[key]; had != j.Primary {
			s.w.check.fail("job %s: %s is recorded as %s and as %s", j.ID, key, had, j.Primary)
		}
		s.ids[key] = j.Primary
	}
	s.rows[j.ID] = true
	delete(s.files, j.ID) // nothing after this state needs them
	return nil
}

// recordObject records all versions of an object.
func (a *actor) recordObject(_ context.Context, ark, _ string) error {
	return a.Do("record object", func() error {
		for _, job := range a.w.store.head(ark) {
			a.w.store.rows[job] = true
		}
		a.w.Met("recorded by a deletion")
		return nil
	})
}

func localKeys(j *ingest.Job) []string {
	return (&ingest.Job{Collection: j.Collection, LocalIDs: j.LocalIDs}).LockKeys()
}

// resolve finds the job's object by its local ids; false if they belong to two objects.
func (s *store) resolve(j *ingest.Job) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, key := range localKeys(j) {
		known := s.ids[key]
		if known != "" && j.Primary != "" && known != j.Primary {
			return false
		}
		if known != "" {
			j.Primary = known
		}
	}
	return true
}

// fetch creates a job's work files.
func (s *store) fetch(job string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.files[job] = true
	return nil
}

// needs fails if the work files of a running job are missing.
func (s *store) needs(job string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	j := s.w.check.jobs[job]
	if !s.files[job] && j.Running() && j.State != ingest.Recording && j.State != ingest.Notify {
		s.w.check.fail("job %s in %s has no work files: they were removed", job, j.State)
	}
	return nil
}

// clean removes a job's work files until a time, and reports whether it removed all.
func (a *actor) clean(_ context.Context, job string, _ time.Time) (all bool, err error) {
	if a.w.s.refuses == refusesClean {
		return false, errRefused
	}
	return a.Rng.IntN(2) == 0, a.Do("clean", func() error {
		a.w.store.mu.Lock()
		defer a.w.store.mu.Unlock()
		delete(a.w.store.files, job)
		return nil
	})
}

// compose addresses a mail to two people; the second cannot be reached at times.
func (a *actor) compose(_ context.Context, b *ingest.Batch, m ingest.Mail) ([]string, func(context.Context,
	string) error, error) {
	to := []string{"one", "two"}
	if m.Overtaken(b) {
		return nil, nil, fmt.Errorf("batch %s has ended, and is told as %s", b.ID, m.Kind)
	}
	return to, func(_ context.Context, to string) error {
		if a.w.s.refuses == refusesMail && to == "two" {
			return errRefused
		}
		return a.Do("mail", func() error {
			a.w.mailed[fmt.Sprintf("%s %s %d %s", b.ID, m.Kind, m.Exec, to)]++
			return nil
		})
	}, nil
}

// refusesStep reports whether a dependency of a stage refuses for this item.
func (w *world) refusesStep(claim *queue.Claim, stage string) bool {
	if claim.Batch != nil {
		return stage == "report" && w.s.refuses == refusesReport && claim.Batch.Note == "0"
	}
	return w.s.refuses == refusesStep && w.s.of(claim.Job).refused == stage
}

// step is a twin of a stage's step: the same kinds of calls and results, with only the store
// behind it.
func (a *actor) step(stage ingest.Stage) queue.Step {
	do := map[string]queue.Step{"unpack": a.unpack, "estimate": a.estimate, "download": a.download,
		"process": a.process, "store": a.storing, "record": a.record,
		"notify": a.notify, "report": a.report}[stage.Name]
	if do == nil {
		do = func(context.Context, *queue.Claim) (ingest.Result, error) {
			return ingest.Result{Outcome: ingest.StepNext}, nil
		}
	}
	return func(ctx context.Context, claim *queue.Claim) (ingest.Result, error) {
		if a.w.refusesStep(claim, stage.Name) {
			if claim.Job != nil {
				a.w.refused[claim.Job.ID] = a.w.Calm
			} else {
				a.w.refused[claim.Batch.ID] = a.w.Calm
			}
			return ingest.Result{}, errRefused
		}
		if err := a.Do("work at "+stage.Name, func() error { return nil }); err != nil {
			return ingest.Result{}, err
		}
		if claim.Job != nil && !a.w.Calm && a.Rng.IntN(a.w.s.failing(stage.Name)) == 0 {
			if stage.Job == ingest.Notify {
				called(claim.Job, "the simulation fails this call")
			}
			return ingest.Fail(a.w.s.tight || a.Rng.IntN(2) == 0, "the simulation fails this step"), nil
		}
		if fetches := stage.Name == "estimate" || stage.Name == "download"; fetches && a.asksToWait() {
			after := time.Duration(1+a.Rng.IntN(20)) * time.Minute
			a.w.asked[claim.Job.ID] = append(a.w.asked[claim.Job.ID], time.Now().Add(after))
			res := ingest.Defer(after, "the source asks to wait")
			res.Progress = after > 10*time.Minute // as likely as not
			return res, nil
		}
		return do(ctx, claim)
	}
}

// asksToWait reports whether the source of a job asks to retry later.
func (a *actor) asksToWait() bool { return !a.w.Calm && a.Rng.IntN(12) == 0 }

// called notes what became of the two callbacks of a job. That of its submission fails for the
// reason why, if there is one.
func called(j *ingest.Job, why string) {
	at := time.Now().UnixMilli()
	next := []ingest.Called{{By: ingest.CalledByProfile, Site: "https://one", At: at},
		{By: ingest.CalledBySubmission, Site: "https://two", At: at, Problem: why}}
	for i := range next {
		next[i].Tries = j.CalledBefore(next[i].By, next[i].Site) + 1
	}
	j.Calls = next
}

// notify calls back. Every other job goes on although one of them could not be delivered.
func (a *actor) notify(_ context.Context, claim *queue.Claim) (ingest.Result, error) {
	why := ""
	if claim.Job.Row%2 == 0 {
		why = "it is not there"
	}
	called(claim.Job, why)
	return ingest.Result{Outcome: ingest.StepNext}, nil
}

func (a *actor) unpack(ctx context.Context, claim *queue.Claim) (ingest.Result, error) {
	var b int
	fmt.Sscan(claim.Batch.Note, &b)
	total := len(a.w.s.plans[b])
	if a.w.s.refuses == "" && !a.w.Calm && a.Rng.IntN(40) == 0 {
		return ingest.Fail(false, "the simulation cannot read the manifest"), nil
	}
	for claim.Batch.Unpacked < total {
		if a.w.s.refuses == refusesUnpack && b == 0 && claim.Batch.Unpacked > 0 {
			a.w.refused[claim.Batch.ID] = a.w.Calm
			return ingest.Result{}, errRefused
		}
		var jobs []ingest.Job
		for row := claim.Batch.Unpacked; row < total && len(jobs) < 1+a.Rng.IntN(3); row++ {
			j := a.w.s.job(b, row)
			j.Related = claim.Batch.Related
			jobs = append(jobs, j)
		}
		if err := claim.Unpack(ctx, jobs[:queue.Chunk(jobs)], total); err != nil {
			return ingest.Result{}, err
		}
		if claim.Batch.Unpacked < total && a.Rng.IntN(4) == 0 {
			return ingest.Result{Outcome: ingest.StepContinue}, nil
		}
	}
	return ingest.Result{Outcome: ingest.StepNext}, nil
}

func (a *actor) estimate(_ context.Context, claim *queue.Claim) (ingest.Result, error) {
	p := a.w.s.of(claim.Job)
	claim.Job.SpaceNeeded, claim.Job.SizeKnown, claim.Job.Files = p.size, p.known, undetailed
	if !p.known {
		claim.Job.Priority += ingest.UnknownSizePenalty
	}
	return a.resolve(claim)
}

func (a *actor) resolve(claim *queue.Claim) (ingest.Result, error) {
	one := true
	err := a.Do("look up", func() error { one = a.w.store.resolve(claim.Job); return nil })
	if err == nil && !one {
		return ingest.Fail(false, "its identifiers belong to two objects"), nil
	}
	return ingest.Result{Outcome: ingest.StepNext}, err
}

func (a *actor) download(_ context.Context, claim *queue.Claim) (ingest.Result, error) {
	p := a.w.s.of(claim.Job)
	if claim.Job.Done < p.parts {
		claim.Job.Done++
		return ingest.Result{Outcome: ingest.StepContinue}, nil
	}
	if err := a.Do("fetch", func() error { return a.w.store.fetch(claim.Job.ID) }); err != nil {
		return ingest.Result{}, err
	}
	claim.Job.SpaceNeeded, claim.Job.SizeKnown = max(1, p.size+p.grows), true
	claim.Job.Bytes = claim.Job.SpaceNeeded
	return ingest.Result{Outcome: ingest.StepNext}, nil
}

// process fixes the identifiers and takes their locks, as the stage does.
func (a *actor) process(ctx context.Context, claim *queue.Claim) (ingest.Result, error) {
	j := claim.Job
	if err := a.Do("read files", func() error { return a.w.store.needs(j.ID) }); err != nil {
		return ingest.Result{}, err
	}
	for _, id := range a.w.s.of(j).inside {
		if !slices.Contains(j.LocalIDs, id) && len(j.LocalIDs) < ingest.MaxLocalIDs {
			j.LocalIDs = append(slices.Clip(j.LocalIDs), id)
		}
	}
	if res, err := a.resolve(claim); err != nil || res.Outcome != ingest.StepNext {
		return res, err
	}
	before := *j
	if j.Primary == "" {
		j.Primary = "ark:/99999/" + j.ID
	}
	if len(j.Locks) < len(j.LockKeys()) {
		j.Locks = j.LockKeys()
		err := claim.Checkpoint(ctx)
		var ce *table.ConditionError
		if errors.As(err, &ce) {
			for _, lock := range j.LockKeys() {
				if ce.Failed(queue.LockKey(lock)) {
					*j = before
					return ingest.Result{Outcome: ingest.StepPark, Lock: lock}, nil
				}
			}
		}
		if err != nil {
			return ingest.Result{}, err
		}
	}
	mine := false // under the locks it stays valid
	err := a.Do("reserve ids", func() error { mine = a.w.store.reserve(j); return nil })
	if err == nil && !mine {
		return ingest.Fail(false, "an identifier now belongs to another object"), nil
	}
	return ingest.Result{Outcome: ingest.StepNext}, err
}

func (a *actor) storing(ctx context.Context, claim *queue.Claim) (ingest.Result, error) {
	if res, err := a.resolve(claim); err != nil || res.Outcome != ingest.StepNext {
		return res, err // after it failed, its ids were given to another object
	}
	var head []string
	ark := claim.Job.Primary
	if err := a.Do("read head", func() error { head = a.w.store.head(ark); return nil }); err != nil {
		return ingest.Result{}, err
	}
	if !slices.Contains(head, claim.Job.ID) { // not done already
		if err := claim.CheckLease(ctx); err != nil {
			return ingest.Result{}, err
		}
		seen := len(head)
		if err := a.w.store.needs(claim.Job.ID); err != nil {
			return ingest.Result{}, err
		}
		err := a.Do("commit version", func() error { return a.w.store.commit(ark, claim.Job.ID, seen) })
		if err != nil {
			return ingest.Result{}, err
		}
		head = append(head, claim.Job.ID)
	}
	claim.Job.ObjectVersion = slices.Index(head, claim.Job.ID) + 1
	return ingest.Result{Outcome: ingest.StepNext}, nil
}

func (a *actor) record(_ context.Context, claim *queue.Claim) (ingest.Result, error) {
	err := a.Do("record", func() error { return a.w.store.record(claim.Job) })
	return ingest.Result{Outcome: ingest.StepNext}, err
}

// stored checks in the storage whether a job's version is committed.
func (a *actor) stored(_ context.Context, j *ingest.Job) error {
	return a.Do("ask the storage", func() error {
		j.ObjectVersion = slices.Index(a.w.store.head(j.Primary), j.ID) + 1
		return nil
	})
}
