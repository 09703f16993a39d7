package runner

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"time"

	"archivist/pkg/kernel/bucket"
	"archivist/pkg/kernel/fault"
)

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

// putPart stores a part of the log. It may be stored again with the same bytes: its number is its
// key.
func (x *run) putPart(ctx context.Context, n int, data []byte) error {
	return x.Bucket.Put(ctx, logKey(x.job.Prefix, n), data, bucket.Condition{})
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
