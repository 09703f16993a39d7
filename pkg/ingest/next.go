package ingest

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"archivist/pkg/kernel/fault"
)

// Outcome is how a step ended.
type Outcome string

// Outcomes. Next: the state is done. Continue: the step made progress and its time budget
// is spent. Park: it waits at a gate, e.g. since another job holds a lock. Defer: the source asks to retry later. Fail:
// the step cannot succeed.
const (
	StepNext     Outcome = "next"
	StepContinue Outcome = "continue"
	StepPark     Outcome = "park"
	StepDefer    Outcome = "defer"
	StepFail     Outcome = "fail"
)

// Result is the result of a step. The step writes what it found into its copy of the item;
// Result says what happens next to the item.
type Result struct {
	Outcome     Outcome
	Lock        string        // Park: the lock that another job holds
	Owner       string        // Park: that job
	Progress    bool          // Defer: the step made progress before
	After       time.Duration // Defer: how long to wait
	Reason      string        // Defer, Fail: what is wrong, and what to do
	Recoverable bool          // Fail: a requeue can succeed
}

// Fail is the result of a step that cannot succeed. The reason is for the depositor: what is wrong,
// and what to do.
func Fail(recoverable bool, reason string) Result {
	return Result{Outcome: StepFail, Reason: Cut(reason, MaxReason), Recoverable: recoverable}
}

// MaxDefer is the longest wait that a source may ask for. A deferred job keeps its space, so
// MaxDeferred limits its waits in one state together, however much progress it makes between
// them: then it fails, and others can have the space of a failed job.
const (
	MaxDefer    = 6 * time.Hour
	MaxDeferred = 7 * 24 * time.Hour
)

// Defer is the result of a job's step whose source asks to wait. Until that time the job is
// parked, without an execution or a slot. It counts as a try, unless the step made progress.
func Defer(after time.Duration, reason string) Result {
	return Result{Outcome: StepDefer, After: min(after, MaxDefer), Reason: Cut(reason, MaxReason)}
}

// New is a new job: Pending since now. Created is the time of the job, not of the submission.
func (r Rules) New(j Job, now time.Time) Job {
	j.Created = now.UnixMilli()
	return r.enter(j, Pending, now)
}

// enter puts a job into a state at now: a running state gets a due time, a gate
// its entry time. It counts tries and repairs anew.
func (r Rules) enter(j Job, to State, now time.Time) Job {
	j.State, j.Entered, j.Parked, j.Waits, j.WaitsOn, j.Hold = to, now.UnixMilli(), false, "", "",
		nil
	j.Cancelled, j.Stopped, j.AskedToWait = false, false, 0 // until decided again
	j.Turn = r.turn(j)
	j.progress()
	return r.due(j, now)
}

// due sets when the sweep looks at a job that an execution drives. At a gate there is no due time:
// each tick looks there.
func (r Rules) due(j Job, now time.Time) Job {
	j.Due = 0
	if stage, ok := StageOf(j.State); ok && !j.Parked {
		j.Due = now.UnixMilli() + r.grace(stage)
	}
	return j
}

// Next is the job after a step of its state ended with res, at now.
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
		j.AskedToWait += res.After.Milliseconds()
		if j.AskedToWait > MaxDeferred.Milliseconds() {
			return r.Failed(j, j.askedTooLong(res), true, now)
		}
		j.Parked, j.Waits, j.WaitsOn, j.Entered = true, "", "", now.UnixMilli()
		j.Turn = r.turn(j)
		// Otherwise the tries count on: a source that gives nothing is not asked without end.
		if res.Progress {
			j.progress()
		}
		j.Message, j.Due = res.Reason, now.Add(res.After).UnixMilli()
	default:
		j = r.Failed(j, res.Reason, res.Recoverable, now)
	}
	return release(j)
}

// askedTooLong is why a job fails whose source has asked to wait for too long.
func (j *Job) askedTooLong(res Result) string {
	return Cut(fmt.Sprintf("the source has asked to wait for more than %d days in all, the last time with: %s. "+
		"Once the source delivers, %s", int(MaxDeferred.Hours()/24), strings.TrimSuffix(res.Reason, "."), j.Again()),
		MaxReason)
}

// Again is what to do with a failed job once its source is right. A payload whose type was never detected may be a
// batch manifest: only its submission makes jobs of the rows, so a requeue of this one job would fail.
func (j *Job) Again() string {
	if j.Detected && j.Payload.Type == "" {
		return "requeue the job; if its URL is that of a batch manifest, submit that again instead, with its type"
	}
	return "requeue the job"
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

// failure is the message of a failed or deleted job: its reason. If its version is stored,
// the message states that first, so that the depositor does not submit it again.
func failure(j Job, reason string) string {
	if j.ObjectVersion == 0 {
		return reason
	}
	text := fmt.Sprintf("preserved as %s v%d; %s", j.Primary, j.ObjectVersion,
		strings.TrimSuffix(reason, "."))
	if j.State == Deleted {
		return text + ". Do not submit again"
	}
	return text + ". Do not submit again: requeue the job"
}

// Preserved is a failed or deleted job after its version was found to be stored. A job with a version
// stays unchanged.
func (r Rules) Preserved(j Job, version int) Job {
	if j.ObjectVersion != 0 {
		return j
	}
	j.ObjectVersion = version
	j.Message = failure(j, j.Message)
	return j
}

// Cleaned is a failed or deleted job without its work files. If the version of a
// failed job is not stored yet, it has to start again from the beginning.
func (r Rules) Cleaned(j Job) Job {
	j.HasSpace, j.Cleaning, j.Due, j.Repairs, j.Blocked = false, false, 0, 0, ""
	// Once a version is stored, what is left needs no work files.
	if j.State == Failed && !isAfter(j.LastSuccessful, Processing) {
		j.LastSuccessful = ""
	}
	return j
}

// release gives back what the job's state no longer needs: only a running job has a slot;
// locks end with Recording, space with the work files: a deleted job keeps it until these are
// removed.
func release(j Job) Job {
	if !j.Running() {
		j.HasSlot = false
	}

	if j.Parked || !slices.Contains([]State{Provisioning, Downloading, Processing, Storing,
		Recording}, j.State) {
		j.Locks = nil
	}

	if j.State == Completed {
		j.HasSpace = false
	}
	return j
}

// Admit is the job after gate 1 admitted it, also to repeat its estimate after it was
// deferred: it gets a slot and an execution.
func (r Rules) Admit(j Job, now time.Time) Job {
	j.Exec++
	j.HasSlot = true
	return r.resume(j, Estimating, now)
}

// Provision is the job after a gate admitted it, with a slot, the space that it needs, and all of its locks
// known so far: from Provisioning it goes to Downloading, a parked job back to its state.
func (r Rules) Provision(j Job, now time.Time) Job {
	to := j.State
	if to == Provisioning {
		to, j.LastSuccessful = Downloading, Provisioning
	}
	j.Exec++
	j.Behind = false
	j.HasSlot, j.HasSpace, j.Locks = true, j.HasSpace || j.NeedsSpace(), j.QueuedLocks()
	return r.resume(j, to, now)
}

// resume is enter for a job that a gate admits: the tries and waits of a deferred job still
// count.
func (r Rules) resume(j Job, to State, now time.Time) Job {
	tries, asked := j.Tries, j.AskedToWait
	j = r.enter(j, to, now)
	j.Tries, j.AskedToWait = tries, asked
	return j
}

// Ready is a deferred job whose wait has ended: it is at the gate for parked jobs.
func (r Rules) Ready(j Job) Job {
	j.Due = 0
	return j
}

// Requeue is a failed job put back to the state after its last successful one. It waits at gate 1 in its turn, as
// new jobs do, so that no limit, hold or pause is passed by. It keeps the space of its work files.
func (r Rules) Requeue(j Job, now time.Time) (Job, error) {
	switch {
	case j.State != Failed:
		return j, WrongState(TargetJob, j.ID, j.State, ActRequeue, "Failed", j.State.Becomes())
	case j.NotRecoverable:
		return j, fault.New(fault.Conflict,
			"job %s cannot be requeued: %s. A new submission is needed", j.ID,
			j.Message)
	case j.Cleaning:
		return j, fault.New(fault.Held,
			"job %s: its work files are being removed; requeue it when that is done", j.ID)
	}

	to := After(j.LastSuccessful)
	// From now on FirstTry is false: what earlier workers did is looked for.
	j.RetryCount++
	j = r.enter(j, to, now)
	// Pending and Provisioning are gates already.
	if j.Running() {
		j = r.Park(j, WaitsForTurn, "", now)
	}

	j.Message = ""
	return j, nil
}

// Park is a job that was about to run, but is parked: another job holds a lock, or see WaitsForStorage.
func (r Rules) Park(j Job, lock, owner string, now time.Time) Job {
	return r.Next(j, Result{Outcome: StepPark, Lock: lock, Owner: owner}, now)
}
