package runner

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"syscall"
	"time"

	"archivist/pkg/kernel/bucket"
	"archivist/pkg/kernel/fault"
)

// Runner runs Jobs. All fields are needed but those of a container. Several calls may go on at the
// same time, also of several processes, with one Dir.
type Runner struct {
	Bucket Objects
	Name   string // of the bucket, which the Job has, too

	// Secrets reads a secret by its name. A fault.NotFound, fault.Denied or fault.Invalid is final;
	// what any other error says may pass.
	Secrets func(ctx context.Context, name string) (string, error)

	// Scratch folders are made here, and those of runners that died removed.
	Dir   string
	Now   func() time.Time
	NewID func() string
	Log   *slog.Logger

	// Variables of the image, which processes get: NAME=VALUE.
	Env []string

	// What the image is made for (its CMD): run if a task has neither command nor script.
	Made []string

	// Of a process that runs nothing but tasks, one after the other; nil: others use the process, too.
	Sandbox *Sandbox

	pace pace // zero: that of the constants
}

// pace has the times of a runner, which tests make shorter.
type pace struct{ parts, looks, grace, tries, words, reserve time.Duration }

var usual = pace{betweenParts, betweenLooks, Grace, betweenTries, lastWords, reserve}

// run is one call of Run, from the claim on.
type run struct {
	*Runner
	pace
	job   Job
	scope *folder

	// The program with its arguments; what a shell or an image is given.
	argv []string

	// All that the processes have as environment, the last value of a name counts.
	env []string
	log *output

	// Texts that must not be seen in the log.
	masked []string
	claim  Claim

	// When the processes are told to end: the earliest of the time-out, the deadline of the job and
	// that of the call.
	stop   time.Time
	result Result
}

// Run runs a Job, and returns what came of it. A repeated call returns the same Result and runs
// nothing. One that finds the attempt begun, but without a Result, waits until the other call has
// ended in any case; if there is no Result then, its runner died, and that is the Result.
//
// An error means that nothing has been begun and that the same call may succeed later. The error is
// of no kind, or a fault.Unavailable. What will never succeed is a Result, whose End is Broken.
func (r *Runner) Run(ctx context.Context, job Job) (Result, error) {
	res, err := r.try(ctx, job, false)
	r.Sandbox.leave()
	return res, err
}

// try is a call of Run. In the last, what is not there is a Result: that the attempt is Broken. All
// is prepared before the claim: so a failure of that is not the end of the attempt, and a call that
// dies meanwhile leaves nothing behind.
func (r *Runner) try(ctx context.Context, job Job, last bool) (Result, error) {
	if reason := r.refuses(job); reason != "" {
		return Result{End: Broken, Exit: -1, Reason: reason, Started: r.Now(), Ended: r.Now()}, nil
	}

	err := r.tidy()
	if err != nil {
		return Result{}, err
	}

	found, err := Look(ctx, r.Bucket, job.Prefix)
	if err != nil || found.Result != nil || found.Claim != nil {
		return r.settle(ctx, job, found, err)
	}

	x := &run{Runner: r, pace: r.pace, job: job}
	if x.pace == (pace{}) {
		x.pace = usual
	}

	x.scope, err = r.scratch()
	if err != nil {
		return Result{}, err
	}

	defer x.scope.remove(r.Log)

	broken := x.prepare(ctx)
	if broken != nil && !final(broken) && !last {
		return Result{}, broken
	}

	mine, err := x.take(ctx)
	if err != nil {
		return Result{}, err
	}

	if !mine {
		found, err := Look(ctx, r.Bucket, job.Prefix)
		return r.settle(ctx, job, found, err)
	}

	if broken != nil {
		x.end(Broken, "%s", broken)
		x.result.Unstarted = !final(broken)
	} else {
		x.execute(ctx)
	}
	return x.finish(ctx), nil
}

// refuses says why a Job cannot be run at all, or "". It is no input of people, so what is wrong is
// a defect, or a deployment that does not fit.
func (r *Runner) refuses(job Job) string {
	switch {
	case job.Bucket != "" && job.Bucket != r.Name:
		return fmt.Sprintf("the job is for the bucket %s; this runner has %s", job.Bucket, r.Name)
	case !strings.HasPrefix(job.Prefix, Prefix) || !strings.HasSuffix(job.Prefix, "/") ||
		job.Prefix == Prefix:
		return fmt.Sprintf("the prefix is %q; expected one below %s that ends in a slash",
			job.Prefix, Prefix)
	case job.Task.Command != "" && job.Task.Script != "":
		return "the task has to have a command or a script, and not both"
	case job.Task.Command == "" && job.Task.Script == "" && !job.Task.Idle() && len(r.Made) == 0:
		return "the task has neither a command nor a script, and the image " + job.Task.Image +
			" has no CMD"
	case job.Task.Timeout <= 0:
		return "the task has no time-out"
	}
	return ""
}

// final reports whether an error is not cured by another call.
func final(err error) bool {
	switch fault.Of(err) {
	case fault.Invalid, fault.NotFound, fault.Denied, fault.Conflict:
		return true
	}
	return false
}

// Found is what is stored of an attempt. Both are nil if it has not been begun.
type Found struct {
	Result *Result
	Claim  *Claim
}

// Look reads what is stored of an attempt, by the Prefix of its Job. An attempt with a Claim and no
// Result goes on until Claim.Until at the latest. The result is read first: once there is one, the
// claim does not matter.
func Look(ctx context.Context, b Objects, prefix string) (found Found, err error) {
	found.Result, err = read[Result](ctx, b, prefix+ResultKey)
	if err != nil || found.Result != nil {
		return found, err
	}

	found.Claim, err = read[Claim](ctx, b, prefix+StartedKey)
	return found, err
}

// read reads a small JSON object; nil if there is none.
func read[T any](ctx context.Context, b Objects, key string) (*T, error) {
	data, _, err := b.Read(ctx, key)
	if fault.Is(err, fault.NotFound) {
		return nil, nil
	}

	if err != nil {
		return nil, err
	}

	out := new(T)
	err = json.Unmarshal(data, out)
	if err != nil {
		return nil, fmt.Errorf("runner: %s is damaged: %w", key, err)
	}
	return out, nil
}

// skew is how far the clocks of two functions are apart at most: a claim is taken for over only
// this much later.
const skew = 5 * time.Second

// settle returns the Result of an attempt that another call runs or ran: it looks again until there
// is one, or the claim is over. An Unavailable means that this call's time was up before. err is of
// the look that found found.
func (r *Runner) settle(ctx context.Context, job Job, found Found, err error) (Result, error) {
	every := r.pace.looks
	if every == 0 {
		every = betweenLooks
	}

	for {
		switch {
		case ctx.Err() != nil:
			return Result{}, fault.New(fault.Unavailable, "runner: %s is run by another call: %w",
				job.ID, ctx.Err())
		case err != nil:
			return Result{}, err
		case found.Result != nil:
			return *found.Result, nil
		case found.Claim == nil: // what a claim was lost to is never removed
			return Result{}, fault.New(fault.Unavailable, "runner: %s: the claim is gone", job.ID)
		case r.Now().After(found.Claim.Until.Add(skew)):
			died := Result{
				End:     Broken,
				Exit:    -1,
				Reason:  "the runner died while it ran",
				Started: found.Claim.Started,
				Ended:   r.Now(),
			}
			return r.store(ctx, job, died)
		}

		select {
		case <-ctx.Done():
		case <-time.After(every):
		}

		found, err = Look(ctx, r.Bucket, job.Prefix)
	}
}

// store stores a Result if there is none. It returns the one that is there then: of two that store
// at once, both return the first.
func (r *Runner) store(ctx context.Context, job Job, result Result) (Result, error) {
	data, err := json.Marshal(result)
	if err != nil {
		return result, err
	}

	err = r.Bucket.Put(ctx, job.Prefix+ResultKey, data, bucket.Condition{Absent: true})
	if !fault.Is(err, fault.Stale) {
		return result, err
	}

	data, _, err = r.Bucket.Read(ctx, job.Prefix+ResultKey)
	if err != nil {
		return result, err
	}

	err = json.Unmarshal(data, &result)
	return result, err
}

// take claims the attempt. It reports whether this call is the one that runs it. The id of the
// claim is unique to the call: so a claim whose answer was lost is known to be its own. If it is
// not known whether it was written, the error is returned; then nobody runs the attempt until its
// time is over.
func (x *run) take(ctx context.Context) (mine bool, err error) {
	x.result.Started = x.Now().UTC()
	x.times(ctx)
	x.claim.ID, x.claim.Started = x.NewID(), x.result.Started
	data, err := json.Marshal(x.claim)
	if err != nil {
		return false, err
	}

	err = x.Bucket.Put(ctx, x.job.Prefix+StartedKey, data, bucket.Condition{Absent: true})
	if err == nil {
		return true, nil
	}

	// Another was first; or the answer to our own request was lost, then the claim that is there is
	// ours.
	there, readErr := read[Claim](context.WithoutCancel(ctx), x.Bucket, x.job.Prefix+StartedKey)
	switch {
	case readErr == nil && there != nil && there.ID == x.claim.ID:
		return true, nil
	case fault.Is(err, fault.Stale) && readErr != nil:
		return false, readErr
	case fault.Is(err, fault.Stale):
		return false, nil
	}
	return false, err
}

// closed is the id of a claim by which nobody begins an attempt any more.
const closed = "closed"

// Close lets nobody begin an attempt that has no claim, and reports whether that is so: false means that
// a runner has begun it. A call of a function can fail while its runner still prepares; without this, that
// one would run the task beside the next attempt. It may be repeated.
func Close(ctx context.Context, b Objects, prefix string, now time.Time) (bool, error) {
	data, err := json.Marshal(Claim{ID: closed, Started: now, Until: now})
	if err != nil {
		return false, err
	}

	err = b.Put(ctx, prefix+StartedKey, data, bucket.Condition{Absent: true})
	if err == nil || !fault.Is(err, fault.Stale) {
		return err == nil, err
	}

	there, err := read[Claim](ctx, b, prefix+StartedKey)
	return there != nil && there.ID == closed, err
}

// times decides when the processes are told to end, and by when all has ended. A call whose context
// has a deadline (a function's time-out) ends them early enough for outputs and the result.
func (x *run) times(ctx context.Context) {
	x.stop = x.result.Started.Add(x.job.Task.Timeout)
	if at := x.job.Deadline; !at.IsZero() && at.Before(x.stop) {
		x.stop = at
	}

	call, limited := ctx.Deadline()
	if at := call.Add(-x.grace - x.reserve); limited && at.Before(x.stop) {
		x.stop = at
	}

	x.claim.Until = x.stop.Add(x.grace + x.words + Saving)
	if limited && call.Before(x.claim.Until) {
		x.claim.Until = call
	}
}

// end sets how the run ended. What is Broken has no exit code.
func (x *run) end(end, format string, args ...any) {
	x.result.End, x.result.Reason = end, fmt.Sprintf(format, args...)
	if end == Broken {
		x.result.Exit = -1
	}
}

// finish stores the Result. If that is impossible, the Result still is the answer of this call:
// only a repeated one would find that the runner died. It has reserve for that, also if the call
// was told to end.
func (x *run) finish(ctx context.Context) Result {
	x.result.Ended = x.Now().UTC()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), x.reserve)
	defer cancel()
	var err error
	for range 5 {
		var stored Result
		stored, err = x.store(ctx, x.job, x.result)
		if err == nil {
			return stored
		}
		select {
		case <-ctx.Done():
		case <-time.After(x.tries):
		}
	}

	x.Log.Error("the result could not be stored", "attempt", x.job.ID, "error", err)
	return x.result
}

// execute runs the task, keeps its output while it runs, and its outputs when it has ended. A run
// that is cancelled, or late, before it has begun starts nothing. Of one that is cancelled, or
// whose runner was told to end, no outputs are kept.
func (x *run) execute(ctx context.Context) {
	reason, cancelled, err := x.cancelled(ctx)
	switch {
	case err != nil:
		x.Log.Warn(
			"it is not known whether the run is cancelled", "attempt", x.job.ID, "error", err)
	case cancelled:
		x.end(Cancelled, "%s", reason)
		x.result.Exit = -1
		return
	}

	if !x.Now().Before(x.stop) {
		x.end(TimedOut, "no time was left to run it: it had to end by %s",
			x.stop.Format(time.RFC3339))
		x.result.Exit, x.result.Unstarted = -1, true
		return
	}

	x.log = &output{put: x.putPart, now: x.Now, every: x.parts, wake: make(chan struct{}, 1)}
	logged := x.log.begin(context.WithoutCancel(ctx))
	x.process(ctx)
	if x.result.End == Succeeded || x.result.End == Failed || x.result.End == TimedOut {
		x.keepOutputs(ctx)
	}

	x.result.LogSize, x.result.Cut = logged()
}

// cancelled reports whether the run is to end, and why: the reason that was given, which may be
// empty.
func (x *run) cancelled(ctx context.Context) (reason string, is bool, err error) {
	data, _, err := x.Bucket.Read(ctx, x.job.Prefix+CancelKey)
	if fault.Is(err, fault.NotFound) {
		return "", false, nil
	}
	return strings.TrimSpace(string(data)), err == nil, err
}

// process runs the task's process to its end, or ends it, and all that it has started.
func (x *run) process(ctx context.Context) {
	p, err := x.begin()
	if err != nil {
		x.end(Broken, "the process could not be started: %v", err)
		// What exec says of the task, such as arguments that are too long, is the task's.
		x.result.Unstarted = errors.Is(err, syscall.ENOMEM) || errors.Is(err, syscall.EAGAIN)
		return
	}

	end, reason := x.watch(ctx, p)
	if end != "" {
		p.terminate(x.grace)
	}

	<-p.done
	x.Sandbox.end() // before its outputs are read
	p.sweep(x.words)
	x.outcome(p.cmd.ProcessState, end, reason)
}

// watch waits until the process has ended, or is to end: then it says how and why. A look at the
// cancel flag that fails is tried again with the next one: a bucket that cannot be reached ends no
// run.
func (x *run) watch(ctx context.Context, p *process) (end, reason string) {
	timeout := time.NewTimer(x.stop.Sub(x.Now()))
	defer timeout.Stop()
	look := time.NewTicker(x.looks)
	defer look.Stop()
	for {
		select {
		case <-p.done:
			return "", ""
		case <-timeout.C:
			if x.stop.Sub(x.result.Started) < x.job.Task.Timeout {
				return TimedOut, "the time that was left to run it has passed: it had to end by " +
					x.stop.Format(time.RFC3339)
			}
			return TimedOut, fmt.Sprintf("timed out after %s", x.job.Task.Timeout)
		case <-ctx.Done():
			return Broken, "the runner was asked to stop"
		case <-look.C:
			reason, is, err := x.cancelled(ctx)
			if err == nil && is {
				return Cancelled, reason
			}
		}
	}
}

// outcome is what the end of the process means. Why it was told to end is set if it was: that
// counts, whatever the process made of it. The exit code is kept in any case.
func (x *run) outcome(state *os.ProcessState, end, reason string) {
	code, signal := exitOf(state)
	switch {
	case end != "":
		x.end(end, "%s", reason)
	case signal != "":
		x.end(Failed, "ended by the signal %s", signal)
	case code != 0:
		x.end(Failed, "exit code %d", code)
	default:
		x.end(Succeeded, "")
	}

	x.result.Exit = code
}
