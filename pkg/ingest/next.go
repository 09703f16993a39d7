package ingest

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"archivist/pkg/fault"
)

// Outcome is how a step ended.
type Outcome string

// Outcomes. Next: the state is done. Continue: progress was made and the time
// budget is spent. Park: a lock is taken. Defer: a source asks to be asked later.
// Fail: it cannot be done.
const (
	StepNext     Outcome = "next"
	StepContinue Outcome = "continue"
	StepPark     Outcome = "park"
	StepDefer    Outcome = "defer"
	StepFail     Outcome = "fail"
)

// Result is what a step says of its work. A step changes its copy of the item
// for what it found out; Result says where the item goes.
type Result struct {
	Outcome     Outcome
	Lock        string        // Park: the lock that is taken
	Owner       string        // Park: the job that owns it
	After       time.Duration // Defer: how long to wait
	Reason      string        // Defer, Fail: what is wrong, and what to do
	Recoverable bool          // Fail: a requeue can succeed
}

// Fail is the result of a step that cannot be done.
func Fail(recoverable bool, reason string) Result {
	return Result{Outcome: StepFail, Reason: Cut(reason, MaxReason), Recoverable: recoverable}
}

// MaxDefer is the longest wait that a source may ask for. A deferred job keeps its space:
// this and the stage's tries bound for how long.
const MaxDefer = 6 * time.Hour

// Defer is the result of a job's step whose source asks to wait. Nobody waits for it: the
// job is parked without an execution or a slot until its time has come. It is a try
// without progress.
func Defer(after time.Duration, reason string) Result {
	return Result{Outcome: StepDefer, After: min(after, MaxDefer), Reason: Cut(reason, MaxReason)}
}

// Rules are the settings that the pure rules need.
type Rules struct {
	Timing Timing
	// Aging, if not 0, is how long a job waits until it is worth one step of
	// priority more, so that low never starves.
	Aging time.Duration
	// FailedRetention is how long a failed job keeps its work files and their
	// space, so that a requeue need not fetch again.
	FailedRetention time.Duration
	// Retention is how long the rows of a Completed batch and its jobs are kept; 0
	// is for ever. Their events stay.
	Retention time.Duration
}

// New is a job as it is made: Pending at now.
func (r Rules) New(j Job, now time.Time) Job {
	j.Created = now.UnixMilli()
	return r.enter(j, Pending, now)
}

func (r Rules) grace(stage Stage) int64 { return r.Timing.Times(stage).Grace.Milliseconds() }

// enter puts a job into a state at now: a running state gets a due time, a gate
// its entry time.
func (r Rules) enter(j Job, to State, now time.Time) Job {
	j.State, j.Entered, j.Parked, j.Waits, j.WaitsOn = to, now.UnixMilli(), false, "", ""
	j.Turn = r.turn(j)
	j.progress()
	return r.due(j, now)
}

func (r Rules) due(j Job, now time.Time) Job {
	j.Due = 0
	if stage, ok := StageOf(j.State); ok && !j.Parked {
		j.Due = now.UnixMilli() + r.grace(stage)
	}
	return j
}

// Next is the job after a step of its state ended with res at now.
func (r Rules) Next(j Job, res Result, now time.Time) Job {
	switch res.Outcome {
	case StepNext:
		j.LastSuccessful, j.Message, j.Checkpoint, j.Done = j.State, "", "", 0
		j = r.enter(j, After(j.State), now)
	case StepContinue:
		j.Message = "" // why an earlier try failed
		j.progress()
		j = r.due(j, now)
	case StepPark:
		j.Parked, j.Waits, j.WaitsOn, j.Entered = true, res.Lock, res.Owner, now.UnixMilli()
		j.Turn = r.turn(j)
		j.progress()
		j = r.due(j, now)
	case StepDefer:
		j.Parked, j.Waits, j.WaitsOn, j.Entered = true, "", "", now.UnixMilli()
		j.Turn = r.turn(j)
		j.Message, j.Due = res.Reason, now.Add(res.After).UnixMilli()
	default:
		j = r.Failed(j, res.Reason, res.Recoverable, now)
	}
	return release(j)
}

// Failed is the job after it failed for a reason.
func (r Rules) Failed(j Job, reason string, recoverable bool, now time.Time) Job {
	j.Message, j.NotRecoverable, j.Checkpoint, j.Done = failure(j, reason), !recoverable, "", 0
	j = release(r.enter(j, Failed, now))
	if j.Uncleaned() {
		j.Due = now.Add(r.FailedRetention).UnixMilli()
	}
	return j
}

// failure is what a failed job says: its reason. If its version is stored, that comes
// first, so that nobody submits it again.
func failure(j Job, reason string) string {
	if j.ObjectVersion == 0 {
		return reason
	}
	return fmt.Sprintf("preserved as %s v%d; %s. Do not submit again: requeue the job",
		j.Primary, j.ObjectVersion, strings.TrimSuffix(reason, "."))
}

// Preserved is a failed job of which is known by now that its version is stored. One
// that says so already stays as it is.
func (r Rules) Preserved(j Job, version int) Job {
	if j.ObjectVersion != 0 {
		return j
	}
	j.ObjectVersion = version
	j.Message = failure(j, j.Message)
	return j
}

// Cleaned is a failed job without its work files. If its version is not stored
// yet, it has to begin again.
func (r Rules) Cleaned(j Job) Job {
	j.HasSpace, j.Cleaning, j.Due, j.Repairs = false, false, 0, 0
	if !past(j.LastSuccessful, Processing) {
		j.LastSuccessful = ""
	}
	return j
}

// release gives back what the job's state needs no longer: a slot belongs to a
// running job, locks end with Recording, space with the work files.
func release(j Job) Job {
	if !j.Running() {
		j.HasSlot = false
	}
	if j.Parked || !slices.Contains([]State{Provisioning, Downloading, Processing, Storing, Recording}, j.State) {
		j.Locks = nil
	}
	if j.State == Completed || j.State == Deleted {
		j.HasSpace = false
	}
	return j
}

// Admit is the job let in by gate 1, or on to its estimate after it was deferred: it
// gets a slot and an execution.
func (r Rules) Admit(j Job, now time.Time) Job {
	j.Exec++
	j.HasSlot = true
	return r.resume(j, Estimating, now)
}

// Provision is the job let on by gate 2, with a slot, space and every lock
// known by now: from Provisioning to Downloading, or from parking to its state.
func (r Rules) Provision(j Job, now time.Time) Job {
	to := j.State
	if to == Provisioning {
		to, j.LastSuccessful = Downloading, Provisioning
	}
	j.Exec++
	j.HasSlot, j.HasSpace, j.Locks = true, true, j.LockKeys()
	return r.resume(j, to, now)
}

// resume is enter for a job that a gate lets on: the tries of one that was deferred
// still count.
func (r Rules) resume(j Job, to State, now time.Time) Job {
	tries := j.Tries
	j = r.enter(j, to, now)
	j.Tries = tries
	return j
}

// Ready is a deferred job whose time has come: it is at the gate for parked jobs.
func (r Rules) Ready(j Job) Job {
	j.Due = 0
	return j
}

// Requeue is a failed job back at the state after its last successful one. The
// slot is taken without testing the limit; locks that are taken park it.
func (r Rules) Requeue(j Job, now time.Time) (Job, error) {
	switch {
	case j.State != Failed:
		return j, fault.New(fault.Conflict, "job %s is %s; only a Failed job can be requeued", j.ID, j.State)
	case j.NotRecoverable:
		return j, fault.New(fault.Conflict, "job %s cannot be requeued: %s. A new submission is needed", j.ID,
			j.Message)
	case j.Cleaning:
		return j, fault.New(fault.Held, "job %s: its work files are being removed; requeue it when that is done", j.ID)
	}
	to := After(j.LastSuccessful)
	j.RetryCount++
	j = r.enter(j, to, now)
	if j.Running() {
		j.Exec++
		j.HasSlot, j.HasSpace = true, true
		if to != Notify {
			j.Locks = j.LockKeys()
		}
	}
	j.Message = ""
	return j, nil
}

// Park is a job that was about to run, parked instead for a lock that is taken.
func (r Rules) Park(j Job, lock, owner string, now time.Time) Job {
	return r.Next(j, Result{Outcome: StepPark, Lock: lock, Owner: owner}, now)
}
