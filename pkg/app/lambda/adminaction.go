package lambda

import (
	"context"
	"encoding/json"
	"log/slog"
	"time"

	"github.com/aws/aws-lambda-go/lambda/messages"

	"archivist/pkg/aws/cloudwatch"
	"archivist/pkg/ingest"
	"archivist/pkg/ingest/queue"
	"archivist/pkg/kernel/fault"
)

// AdminAction is the function of the state machine admin-action, which a person starts in
// the AWS console, and the system for a bulk operation. The input of the execution is
// checked before anything happens.
//
// An execution keeps nothing: the machine passes its input again at each step. The name of
// the execution is the id of the request, so that a repeated step acts once. A person's
// execution does the pages of the operation that it starts; when the person stops it, the
// operation is interrupted. An operation that was started elsewhere has an execution of its
// own.
type AdminAction struct {
	Admin   queue.Admin
	Budget  time.Duration // of one step that does pages
	Metrics *cloudwatch.Metrics
	Log     *slog.Logger
}

// AdminRequest is what the machine passes to the function.
type AdminRequest struct {
	Execution string          `json:"execution"` // its name, unique among those of the machine
	Started   time.Time       `json:"started"`   // when the execution was started
	Input     json.RawMessage `json:"input"`     // of the execution
}

// AdminStep says how the execution continues, by the names of the definition.
type AdminStep struct {
	Next  string `json:"next"`            // one of the steps below
	Wait  int    `json:"wait,omitempty"`  // of stepWait: seconds
	Error string `json:"error,omitempty"` // of a refusal: the kind of the error
	Cause string `json:"cause,omitempty"` // of a refusal: the reason, a sentence
	// Result is what was done so far; at the end, it is the output of the execution.
	Result any `json:"result,omitempty"`
}

// How an execution continues.
const (
	stepDone     = "Done"     // it ends with success
	stepRefused  = "Refused"  // it fails
	stepContinue = "Continue" // with the next step, at once
	stepWait     = "Wait"     // with the next step, after some time
)

// Handle makes one step. A refusal is a step too: only what may succeed at another try is an
// error, whose name is its kind, and the machine tries again. The machine's definition names
// the kinds that it repeats. An error without a kind is one of them: it may be a defect,
// which a person sees in the end of the execution.
func (f *AdminAction) Handle(ctx context.Context, in AdminRequest) (AdminStep, error) {
	defer func() { _ = f.Metrics.Put(ctx) }() // the log has what was lost
	log := f.Log.With("execution", in.Execution)
	step, err := f.step(ctx, in)
	switch fault.Of(err) {
	case fault.Unavailable, fault.Stale, "":
		if err != nil {
			log.Error("not done; the state machine tries again", "error", err)
			return step,
				messages.InvokeResponse_Error{Type: fault.At(err).Name, Message: err.Error()}
		}
	default:
		step = AdminStep{Next: stepRefused, Error: fault.At(err).Name, Cause: err.Error()}
	}

	log.Info("step", "next", step.Next, "error", step.Error, "cause", step.Cause)
	return step, nil
}

// step checks the input and does what it asks for. Steps after the first come here with the
// same input; the request's id finds what the first has done.
func (f *AdminAction) step(ctx context.Context, in AdminRequest) (out AdminStep, err error) {
	if in.Execution == "" {
		return out, fault.New(fault.Invalid,
			"execution: none is given; start an execution of the state machine "+
				"admin-action instead of the function")
	}

	input, err := readInput(in.Input)
	if err != nil {
		return out, err
	}

	// Step Functions does not tell who started the execution; CloudTrail has that.
	actor := "console:" + in.Execution // also the id of the request
	var o *queue.Operation
	switch {
	case input.Operation != "":
		return f.runs(ctx, input.Operation, input.Exec)
	case input.Action == ingest.ActDoctor:
		o, err = f.adminFor(in).StartDoctor(ctx, input.Repair, input.Reason, actor,
			ingest.Administrator, actor)
	case input.Filter != nil:
		o, err = f.start(ctx, in, input, actor)
	default:
		return f.act(ctx, input, actor, in.Started)
	}

	if err != nil {
		return out, err
	}
	return f.follow(ctx, o, in)
}

// adminFor is the service for a person's execution, which itself does the pages of what it
// starts.
func (f *AdminAction) adminFor(in AdminRequest) queue.Admin {
	d := f.Admin
	d.Execution = in.Execution
	return d
}

// start starts a bulk operation.
func (f *AdminAction) start(ctx context.Context, in AdminRequest, input adminInput, actor string) (
	*queue.Operation, error) {
	b, err := input.bulk()
	if err != nil {
		return nil, err
	}
	return f.adminFor(in).Start(ctx, b, input.Reason, actor, ingest.Administrator, actor,
		input.DryRun)
}

// act does an action on a target. An operation that completes it is waited for. The operation
// of a cancellation, for example, is run by an execution that the system starts.
func (f *AdminAction) act(ctx context.Context, in adminInput, actor string, started time.Time) (
	out AdminStep, err error) {
	a, err := in.action()
	if err != nil {
		return out, err
	}

	a.Actor, a.Request, a.Role = actor, actor, ingest.Administrator
	done, err := f.Admin.Act(ctx, a)
	if err != nil {
		return out, err
	}

	shown := showAction(done)
	if done.Operation == "" {
		return AdminStep{Next: stepDone, Result: shown}, nil
	}

	o, err := f.Admin.Operation(ctx, done.Operation)
	if err != nil {
		return out, err
	}

	out, err = f.watch(ctx, o, started)
	shown.Completion = out.Result
	out.Result = shown
	return out, err
}

// runs does pages of an operation for an execution that the system has started. exec is the
// number of that execution. If another has taken over meanwhile, this one ends with success.
func (f *AdminAction) runs(ctx context.Context, id string, exec int64) (AdminStep, error) {
	o, err := f.pages(ctx, id, exec)
	if err != nil {
		return AdminStep{}, err
	}
	out := AdminStep{Next: stepDone, Result: showOperation(o)}
	if o.RunsAs(exec) {
		out.Next = stepContinue
	}
	return out, nil
}

// follow does pages of an operation that a person's execution has started, and shows it. If
// another execution does its pages, because there was no progress, it waits for that.
func (f *AdminAction) follow(ctx context.Context, o *queue.Operation,
	in AdminRequest) (out AdminStep, err error) {
	if exec := o.Exec; o.RunBy() == in.Execution {
		if o, err = f.pages(ctx, o.Operation.ID, exec); err != nil {
			return out, err
		}
		if o.RunsAs(exec) {
			return AdminStep{Next: stepContinue, Result: showOperation(o)}, nil
		}
	}
	return f.watch(ctx, o, in.Started)
}

// pages does pages of an operation for one of its executions, until the step's time is used
// up, the operation ends, or another execution does its pages. So a step, which is seven of
// the 25,000 events that an execution may have, does minutes of work.
func (f *AdminAction) pages(ctx context.Context, id string, exec int64) (*queue.Operation, error) {
	until := f.Admin.Queue.Now().Add(f.Budget)
	for {
		o, err := f.Admin.RunPage(ctx, id, exec, until)
		if err != nil || !o.RunsAs(exec) || !f.Admin.Queue.Now().Before(until) {
			return o, err
		}
	}
}

// longest is how long a person's execution waits for the end of an operation. An execution
// has at most 25,000 events ("Step Functions service quotas"); a wait of a minute has nine.
const longest = 24 * time.Hour

// watch shows an operation to the person who started it, until it ends. The longer it runs,
// the less often it is looked at. The wait is a tenth of the time that it has run so far,
// from a second to a minute. An operation that is still running after longest goes on; only
// the person's execution ends.
func (f *AdminAction) watch(ctx context.Context, o *queue.Operation,
	started time.Time) (out AdminStep, err error) {
	shown := showOperation(o)
	out = AdminStep{Next: stepDone, Result: &shown}
	running := f.Admin.Queue.Now().Sub(started)
	switch {
	case o.State == ingest.OperationInterrupted:
		return out, fault.New(fault.Conflict,
			"operation %s is interrupted. Continue it or start another one", shown.ID)
	case o.State == ingest.OperationRunning && running < longest:
		out.Next, out.Wait = stepWait, int(min(max(running/10, time.Second), time.Minute).Seconds())
		return out, nil
	}
	return out, f.addFirst(ctx, &shown)
}
