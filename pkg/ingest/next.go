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
// budget is spent. Park: a lock is taken. Fail: it cannot be done.
const (
	StepNext     Outcome = "next"
	StepContinue Outcome = "continue"
	StepPark     Outcome = "park"
	StepFail     Outcome = "fail"
)

// Result is what a step says of its work. A step changes its copy of the item
// for what it found out; Result says where the item goes.
type Result struct {
	Outcome     Outcome
	Lock        string // Park: the lock that is taken
	Owner       string // Park: the job that owns it
	Reason      string // Fail: what is wrong and what to do
	Recoverable bool   // Fail: a requeue can succeed
}

// Fail is the result of a step that cannot be done.
func Fail(recoverable bool, reason string) Result {
	return Result{Outcome: StepFail, Reason: Cut(reason, MaxReason), Recoverable: recoverable}
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

// turn orders waiting jobs: by priority, then age; with aging by the time at
// which each would come to priority 0, which does not change while it waits.
func (r Rules) turn(j Job) string {
	if r.Aging == 0 {
		return fmt.Sprintf("%03d#%013d#%s", j.Priority, j.Entered, j.ID)
	}
	return fmt.Sprintf("%013d#%s", j.Entered+int64(j.Priority)*r.Aging.Milliseconds(), j.ID)
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
		j.progress()
		j = r.due(j, now)
	case StepPark:
		j.Parked, j.Waits, j.WaitsOn, j.Entered = true, res.Lock, res.Owner, now.UnixMilli()
		j.Turn = r.turn(j)
		j.progress()
		j = r.due(j, now)
	default:
		j = r.Failed(j, res.Reason, res.Recoverable, now)
	}
	return release(j)
}

// Failed is the job after it failed for a reason.
func (r Rules) Failed(j Job, reason string, recoverable bool, now time.Time) Job {
	j.Message, j.NotRecoverable, j.Checkpoint, j.Done = preserved(j, reason), !recoverable, "", 0
	j = release(r.enter(j, Failed, now))
	if j.Uncleaned() {
		j.Due = now.Add(r.FailedRetention).UnixMilli()
	}
	return j
}

// preserved is why a job failed; one whose version is stored says so first, so that
// nobody submits it again.
func preserved(j Job, reason string) string {
	const says = "preserved as "
	if j.ObjectVersion == 0 || strings.HasPrefix(reason, says) {
		return reason
	}
	return fmt.Sprintf("%s%s v%d; %s. Do not submit again: requeue the job", says, j.Primary, j.ObjectVersion, strings.TrimSuffix(reason, "."))
}

// Preserved is a failed job of which is known by now that its version is committed.
func (r Rules) Preserved(j Job, version int) Job {
	j.ObjectVersion = version
	j.Message = preserved(j, j.Message)
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

// Admit is the job let in by gate 1: it gets a slot and an execution.
func (r Rules) Admit(j Job, now time.Time) Job {
	j.Exec++
	j.HasSlot = true
	return r.enter(j, Estimating, now)
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
	return r.enter(j, to, now)
}

// Repair is the item after the sweep gave it a new execution.
func (r Rules) Repair(w Work, stage Stage, now time.Time) Work {
	w.Exec++
	return r.Postpone(w, stage, now)
}

// Postpone is the item whose next look by the sweep is later, the more so the
// more looks there were since its last progress.
func (r Rules) Postpone(w Work, stage Stage, now time.Time) Work {
	w.Repairs++
	w.Due = now.Add(backoff(r.Timing, r.Timing.Times(stage), w.Repairs)).UnixMilli()
	return w
}

// Requeue is a failed job back at the state after its last successful one. The
// slot is taken without testing the limit; locks that are taken park it.
func (r Rules) Requeue(j Job, now time.Time) (Job, error) {
	switch {
	case j.State != Failed:
		return j, fault.New(fault.Conflict, "job %s is %s; only a Failed job can be requeued", j.ID, j.State)
	case j.NotRecoverable:
		return j, fault.New(fault.Conflict, "job %s cannot be requeued: %s. A new submission is needed", j.ID, j.Message)
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

// Answer is what a message's token is told. It is decided by the row alone.
type Answer string

// Answers: Success goes on in the execution; the others are error names that
// the definition catches. Keep leaves the token alone.
const (
	Success    Answer = "Success"
	Continue   Answer = "Continue"
	Parked     Answer = "Parked"
	Superseded Answer = "Superseded"
	StageFail  Answer = "StageFailed"
)

// Answer says what the token of execution exec at state at is told, given the
// job as it is now.
func (j *Job) Answer(at State, exec int64) Answer {
	switch {
	case j.Exec != exec:
		return Superseded
	case j.State == at && !j.Parked:
		return Continue
	case j.State == Failed:
		return StageFail
	case j.Parked || j.State == Provisioning && past(j.State, at):
		return Parked
	case past(j.State, at):
		return Success
	}
	return Superseded
}

// Answer says what the token of execution exec at a batch's stage is told.
func (b *Batch) Answer(stage Stage, exec int64) Answer {
	now, working := StageOfBatch(b.State)
	switch {
	case b.Exec != exec:
		return Superseded
	case working && now == stage:
		return Continue
	}
	return Success
}

// Wake is one wake-up that an item is owed.
type Wake struct {
	Kind WakeKind
	ID   string // of the job or batch
	Exec int64
	At   string // the state or step where the execution begins; the kind of the mail
}

// WakeKind is what a wake-up does.
type WakeKind string

// The wake-ups: an execution of ingest-job or ingest-batch, a look at the gates,
// a look whether the batch can report, a mail about a batch.
const (
	StartJob   WakeKind = "start-job"
	StartBatch WakeKind = "start-batch"
	LookGates  WakeKind = "look-gates"
	CloseBatch WakeKind = "close-batch"
	SendMail   WakeKind = "send-mail"
)

// Wakes are the wake-ups that a job is owed after a change from was to is. With
// a zero was they are all that it can be owed: the sweep asks like that.
func Wakes(prev, next Job) []Wake {
	var out []Wake
	if next.Running() && next.Exec != prev.Exec {
		out = append(out, Wake{StartJob, next.ID, next.Exec, string(next.State)})
	}
	place, _ := next.WorkKey()
	waits := place == WorkPending || place == WorkProvisioning || place == WorkParked
	freed := prev.HasSlot && !next.HasSlot || len(prev.Locks) > len(next.Locks) || prev.HasSpace && !next.HasSpace
	if waits || freed {
		out = append(out, Wake{Kind: LookGates})
	}
	if !next.State.Open() && (prev.State == "" || prev.State.Open()) {
		out = append(out, Wake{Kind: CloseBatch, ID: next.Batch})
	}
	return out
}

// BatchWakes are the wake-ups that a batch is owed after a change.
func BatchWakes(prev, next Batch) []Wake {
	var out []Wake
	if stage, ok := StageOfBatch(next.State); ok && next.Exec != prev.Exec {
		out = append(out, Wake{StartBatch, next.ID, next.Exec, stage.Name})
	}
	if next.Unpacked != prev.Unpacked {
		out = append(out, Wake{Kind: LookGates})
	}
	if next.State == BatchProcessing && next.Sealed {
		out = append(out, Wake{Kind: CloseBatch, ID: next.ID})
	}
	for _, kind := range Mails(prev, next) { // last: nothing waits for a mail
		out = append(out, Wake{SendMail, next.ID, next.Exec, string(kind)})
	}
	return out
}

// EnterBatch puts a batch into a state at now, with an execution if it has a stage.
func (r Rules) EnterBatch(b Batch, to BatchState, now time.Time) Batch {
	b.State, b.Entered = to, now.UnixMilli()
	b.progress()
	if _, ok := StageOfBatch(to); ok {
		b.Exec++
	}
	return r.DueBatch(b, now)
}

// ContinueBatch is a batch after a step that made progress and is not at its end.
func (r Rules) ContinueBatch(b Batch, now time.Time) Batch {
	b.progress()
	return r.DueBatch(b, now)
}

// DueBatch sets when the sweep looks at the batch.
func (r Rules) DueBatch(b Batch, now time.Time) Batch {
	b.Due = 0
	if stage, ok := StageOfBatch(b.State); ok {
		b.Due = now.UnixMilli() + r.grace(stage)
	} else if b.State == BatchCompleted && r.Retention > 0 {
		b.Due = now.Add(r.Retention).UnixMilli()
	} else if b.State == BatchProcessing {
		b.Due = now.Add(backoff(r.Timing, r.Timing.Times(Stage{}), b.Repairs)).UnixMilli()
	}
	return b
}
