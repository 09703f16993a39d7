package revision

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"archivist/pkg/kernel/bucket"
	"archivist/pkg/kernel/definition"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/revisions/archive"
	"archivist/pkg/revisions/runner"
	"archivist/pkg/revisions/workflow"
)

// Control begins and ends the attempts of instances for the executions that run them: it is what
// the function task-control does.
type Control struct {
	*Store

	// It has the files of revisions, and what runs log and leave.
	Work bucket.Bucket

	// Of tasks with an image.
	Containers runner.Containers
}

// Begin takes the attempt of an execution, and prepares what its runner needs. The answer NextStop
// means that another execution has taken its place, or that the instance was told to end; it is
// also the answer beside an error. An archive that cannot be read now is an error: the execution
// tries again. A call that is repeated is answered again, as long as the attempt goes on.
//
// Files that can never be read end the attempt as broken, which is a result: it is recorded by End,
// and tried again only as the task's retries say.
func (c Control) Begin(ctx context.Context, attempt, exec string) (runner.Begun, error) {
	stop := runner.Begun{Next: runner.NextStop}
	e, err := executionOf(attempt, exec)
	if err != nil {
		return stop, err
	}

	r, err := c.instanceRow(ctx, e.Instance)
	if err != nil || r.Exec != e.Exec || !r.State.Started() {
		return stop, err
	}

	// First: to bring the files can take longer than the run, whose time begins with Store.Begin.
	checkout, err := c.checkout(ctx, &r.Instance)
	if fault.Is(err, fault.NotFound) || fault.Is(err, fault.Invalid) ||
		fault.Is(err, fault.Conflict) {
		return broken("the files of the revision cannot be read: " + err.Error()), nil
	}

	if err != nil {
		return stop, err
	}

	in, task, proceed, err := c.Store.Begin(ctx, e)
	switch {
	case err != nil || !proceed:
		return stop, err
	case task.Idle():
		return ended(runner.Result{End: runner.Succeeded}), nil
	}
	return c.begun(ctx, &in, task, checkout)
}

// begun is the answer for an attempt that has begun.
func (c Control) begun(ctx context.Context, in *Instance, task *workflow.Task,
	checkout string) (runner.Begun, error) {
	deadline := at(in.Until).Add(-runner.Margin)
	if task.Image != "" {
		deadline = deadline.Add(-runner.Stopping)
	}

	job, err := c.job(ctx, in, task, checkout, deadline)
	switch {
	case fault.Is(err, fault.Invalid):
		return broken(err.Error()), nil
	case err != nil:
		return runner.Begun{Next: runner.NextStop}, err
	case task.Image != "":
		return c.contain(ctx, in, task, job)
	}
	return runner.Begun{Next: runner.NextRun, Job: &job}, nil
}

// contain stores the job of a container, and answers with the container. It is stopped when its
// program should have ended long ago, and before its attempt is taken for lost (Until): the time
// that Step Functions needs for that is within the third of Stopping that is left. An image that
// the deployment does not have is broken.
func (c Control) contain(ctx context.Context, in *Instance, task *workflow.Task,
	job runner.Job) (runner.Begun, error) {
	container, err := c.Containers.Of(task.Image)
	if err != nil {
		return broken(err.Error()), nil
	}

	data, err := json.Marshal(job)
	if err != nil {
		return runner.Begun{}, err
	}

	container.Job = job.Prefix + runner.JobKey
	err = c.Work.Put(ctx, container.Job, data, bucket.Condition{})
	if err != nil {
		return runner.Begun{}, err
	}

	left := at(in.Until).Sub(c.Now()) - runner.Stopping/3
	container.Seconds = max(1, int(left.Seconds()))
	return runner.Begun{Next: runner.NextContainer, Container: &container}, nil
}

// ended is the answer for an attempt that has ended before it was run.
func ended(r runner.Result) runner.Begun { return runner.Begun{Next: runner.NextEnd, Result: &r} }

// broken is the answer for an attempt that cannot be run: the reason says why, to people.
func broken(reason string) runner.Begun {
	return ended(runner.Result{End: runner.Broken, Exit: -1, Reason: reason})
}

// checkoutKey is the key of the files of a revision: all of its instances use the same.
func checkoutKey(ref string, n int64) string {
	return fmt.Sprintf("%s%s/%d/checkout.tar.gz", runner.Prefix, ref, n)
}

// checkout brings the files of the revision into the bucket, if they are not there, and returns
// their key. Two that do it at once write the same, since a pack is a function of the revision. An
// incomplete one is never seen: the object is there when the upload is closed. Errors are those of
// archive.Source, and a Conflict if the revision is another than the planned one.
func (c Control) checkout(ctx context.Context, in *Instance) (string, error) {
	key := checkoutKey(in.Archive, in.Revision)
	_, err := c.Work.Head(ctx, key)
	if err == nil || !fault.Is(err, fault.NotFound) {
		return key, err
	}

	a, err := c.known(ctx, archiveOf(in.Archive))
	if err != nil {
		return "", err
	}

	src, err := c.plannedAt(ctx, a, in.Archive, in.Revision)
	if err != nil {
		return "", err
	}

	return key, c.Work.Create(ctx, key, bucket.Condition{}, func(w io.Writer) error {
		return archive.Pack(ctx, src, in.Revision, runner.MaxCheckout, w)
	})
}

// End records what came of an attempt: its result, or the failure of its runner. It returns false
// if nothing was recorded: the attempt is not that of the execution any more, or its runner may
// still be at work. In both cases the execution has nothing more to do: in the second the pass ends
// the attempt when its time is over. It may be repeated.
func (c Control) End(ctx context.Context, x runner.Control) (bool, error) {
	e, err := executionOf(x.Attempt, x.Exec)
	if err != nil {
		return false, err
	}

	res := x.Result
	if res == nil {
		res, err = c.failure(ctx, e, x.Failure)
		if err != nil || res == nil {
			return false, err
		}
	}

	_, recorded, err := c.Store.End(ctx, e, *res)
	return recorded, err
}

// failure is what came of an attempt whose runner failed: the result that it has left, or the
// failure. It is nil while the runner may be at work: then the end of its time (Until) ends the attempt. A
// call of a function can fail while the function goes on, so only the end of a runtime, or the time
// of its claim, shows that it does not.
func (c Control) failure(ctx context.Context, e Execution,
	f *runner.Failure) (*runner.Result, error) {
	in, err := c.instanceRow(ctx, e.Instance)
	if err != nil || in.Exec != e.Exec || f == nil {
		return nil, err
	}

	found, unstarted, err := c.outcome(ctx, in.Prefix())
	if err != nil || found.Result != nil {
		return found.Result, err
	}

	if !unstarted && f.Stopped() == nil && c.Now().Before(found.Claim.Until) && !died(f.Error) {
		return nil, nil
	}
	return &runner.Result{
		End:       runner.Broken,
		Exit:      -1,
		Reason:    definition.Clip(why(f, unstarted), keptText),
		Unstarted: unstarted,
	}, nil
}

// outcome is what a runner that failed has left. unstarted means that it has begun nothing of the task,
// and never will: a claim is taken when all is prepared, and before that. Without a result there is a
// claim, or it is unstarted.
func (c Control) outcome(ctx context.Context, prefix string) (found runner.Found, unstarted bool, err error) {
	found, err = runner.Look(ctx, c.Work, prefix)
	if err != nil || found.Result != nil {
		return found, false, err
	}

	unstarted, err = runner.Close(ctx, c.Work, prefix, c.Now())
	if err == nil && !unstarted && found.Claim == nil { // it was taken just now
		found, err = runner.Look(ctx, c.Work, prefix)
	}
	return found, unstarted, err
}

// why is the failure of a runner, for people.
func why(f *runner.Failure, unstarted bool) string {
	if stopped := f.Stopped(); stopped != nil {
		return stopped.Why()
	}
	if unstarted && f.Error == "States.Timeout" {
		return "the runner did not begin in time"
	}
	return fmt.Sprintf("the runner failed: %s: %s", f.Error, f.Cause)
}

// died reports whether an error of a function means that it has ended: that of its runtime, not one
// of the service or of the state machine ("Handling errors in Step Functions workflows"). Examples
// are Runtime.ExitError and Sandbox.Timedout.
func died(name string) bool {
	return !strings.HasPrefix(name, "Lambda.") && !strings.HasPrefix(name, "States.")
}

// Flag asks a run to end, by an object in its folder, whose content is the reason. It is Store.Tell
// of functions that have the work bucket.
func (c Control) Flag(ctx context.Context, prefix, reason string) error {
	return c.Work.Put(ctx, prefix+runner.CancelKey, []byte(reason), bucket.Condition{})
}

// job is what the runner of an attempt gets. checkout is the key of the files of the revision,
// deadline when the run has ended at the latest. The prefix and the id are of the attempt that goes
// on. An Invalid says what it cannot be given.
func (c Control) job(ctx context.Context, in *Instance, task *workflow.Task, checkout string,
	deadline time.Time) (job runner.Job, err error) {
	job = in.Job(task, c.Work.Name, checkout, deadline)
	job.Inputs, err = c.handed(ctx, in)
	return job, err
}

// Job is that without inputs.
func (in *Instance) Job(task *workflow.Task, bucket, checkout string,
	deadline time.Time) runner.Job {
	return runner.Job{
		ID:       fmt.Sprintf("%s/%d", in.ID, in.Attempt),
		Archive:  archiveOf(in.Archive),
		Revision: in.Revision,
		Base:     in.Base,
		Attempt:  in.Attempt,
		Task:     *task,
		Bucket:   bucket,
		Prefix:   in.Prefix(),
		Checkout: checkout,
		Token:    in.token(),
		Deadline: deadline,

		Parameters: in.Parameters,
	}
}
