// Package stepfunctions starts, stops and answers the executions of the system's
// state machines on AWS Step Functions.
//
// It is the adapter behind queue.Executions and queue.Answers. Step Functions and the emulators
// report the same condition in different ways. This package converts each to the form that the
// queue expects: a name that was used before is a Conflict, stopping an execution that is gone
// succeeds, and a task token that is unknown, answered or timed out counts as answered.
//
//	executions := &stepfunctions.Executions{
//		Client: sfn.NewFromConfig(cfg),
//		ARNs:   map[string]string{queue.MachineJob: jobARN, queue.MachineBatch: batchARN},
//	}
//
// Executions carry no truth: an error here costs time, and the sweep starts again what has
// none. Only Start and Answer are on the usual path.
package stepfunctions

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sfn"
	"github.com/aws/aws-sdk-go-v2/service/sfn/types"

	"archivist/pkg/components/component"
	"archivist/pkg/ingest"
	"archivist/pkg/ingest/queue"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/revisions/revision"
	"archivist/pkg/revisions/runner"
)

// Executions are the executions of the system's state machines.
type Executions struct {
	Client *sfn.Client
	ARNs   map[string]string // of the state machines, by their names in the queue
}

var (
	_ queue.Executions = (*Executions)(nil)
	_ queue.Answers    = (*Executions)(nil)

	_ component.Executions = Runs{}
)

// Start begins an execution. On AWS and LocalStack the name and input of a running execution
// return that execution (Step Functions API reference, "StartExecution"); on MiniStack they
// are a Conflict. A Conflict means that this start was made before; the name stays used for
// 90 days.
func (e *Executions) Start(ctx context.Context, machine, name string, in queue.Message) error {
	return e.start(ctx, machine, name, in)
}

// start is Start for any input, which is passed as JSON.
func (e *Executions) start(ctx context.Context, machine, name string, in any) error {
	input, err := json.Marshal(in)
	if err != nil {
		return err
	}

	_, err = e.Client.StartExecution(ctx, &sfn.StartExecutionInput{
		StateMachineArn: aws.String(e.ARNs[machine]),
		Name:            &name,
		Input:           aws.String(string(input)),
	})

	var exists *types.ExecutionAlreadyExists
	if errors.As(err, &exists) {
		return fault.New(fault.Conflict, "an execution with the name %s was started before", name)
	}
	return err
}

// Runs are the executions of runs of components.
type Runs struct{ *Executions }

// Start begins one.
func (r Runs) Start(ctx context.Context, name string, in component.RunInput) error {
	return r.start(ctx, component.Machine, name, in)
}

// Stop ends one.
func (r Runs) Stop(ctx context.Context, name, why string) error {
	return r.Executions.Stop(ctx, component.Machine, name, why)
}

// Tasks are the executions that run tasks of the revision queue.
type Tasks struct{ *Executions }

// Start begins one.
func (t Tasks) Start(ctx context.Context, e revision.Execution) error {
	return t.start(ctx, runner.Machine, e.Name(), e.Input())
}

// Stop ends one.
func (t Tasks) Stop(ctx context.Context, e revision.Execution, why string) error {
	return t.Executions.Stop(ctx, runner.Machine, e.Name(), why)
}

// execution is the ARN of a machine's execution by name. The two ARNs differ only in their
// type and the name at the end.
func (e *Executions) execution(machine, name string) *string {
	return aws.String(strings.Replace(e.ARNs[machine], ":stateMachine:", ":execution:", 1) + ":" +
		name)
}

// ourStop is the error name of executions that the system stops itself. StoppedByHand tells
// by it that no person stopped one.
const ourStop = "Superseded"

// Stop ends an execution. An execution that has ended already stays as it ended. why is shown
// in the console.
func (e *Executions) Stop(ctx context.Context, machine, name, why string) error {
	_, err := e.Client.StopExecution(ctx, &sfn.StopExecutionInput{
		ExecutionArn: e.execution(machine, name),
		Error:        aws.String(ourStop),
		Cause:        &why,
	})
	var gone *types.ExecutionDoesNotExist
	if errors.As(err, &gone) {
		return nil
	}
	return err
}

// StoppedByHand reports whether a person, not the system, stopped an execution. The text is
// what the person gave as the error and the cause. An execution that is gone was not stopped
// by a person, as far as is known.
func (e *Executions) StoppedByHand(ctx context.Context, machine,
	name string) (string, bool, error) {
	out, err := e.Client.DescribeExecution(ctx,
		&sfn.DescribeExecutionInput{ExecutionArn: e.execution(machine, name)})
	var gone *types.ExecutionDoesNotExist
	if errors.As(err, &gone) {
		return "", false, nil
	}

	if err != nil || out.Status != types.ExecutionStatusAborted ||
		aws.ToString(out.Error) == ourStop {
		return "", false, err
	}

	why := strings.TrimSpace(aws.ToString(out.Error) + " " + aws.ToString(out.Cause))
	if why == "" {
		why = "no reason was given"
	}
	return why, true, nil
}

// Problem reads from the end of an execution's history which call the machine's last state could
// not make. Responses of workers, and messages without a response, are not problems of the
// machine. It is "" if there is none, or the execution is gone. Only the newest events are read.
func (e *Executions) Problem(ctx context.Context, machine, name string) (string, error) {
	out, err := e.Client.GetExecutionHistory(ctx, &sfn.GetExecutionHistoryInput{
		ExecutionArn: e.execution(machine, name),
		ReverseOrder: true,
		MaxResults:   25,
	})

	var gone *types.ExecutionDoesNotExist
	if errors.As(err, &gone) {
		return "", nil
	}

	if err != nil {
		return "", err
	}
	return problemOf(out.Events), nil
}

// problemOf reads events, the newest first, back to where the last task began. The oldest
// error that is left is the first cause: later ones follow from it.
func problemOf(events []types.HistoryEvent) string {
	problem := ""
	for _, e := range events {
		var code, cause *string
		switch {
		case e.TaskFailedEventDetails != nil:
			code, cause = e.TaskFailedEventDetails.Error, e.TaskFailedEventDetails.Cause
		case e.TaskSubmitFailedEventDetails != nil:
			code, cause = e.TaskSubmitFailedEventDetails.Error, e.TaskSubmitFailedEventDetails.Cause
		case e.TaskStartFailedEventDetails != nil:
			code, cause = e.TaskStartFailedEventDetails.Error, e.TaskStartFailedEventDetails.Cause
		case e.ExecutionFailedEventDetails != nil:
			code, cause = e.ExecutionFailedEventDetails.Error, e.ExecutionFailedEventDetails.Cause
		case e.Type == types.HistoryEventTypeTaskStateEntered:
			if problem != "" {
				problem = fmt.Sprintf("failed at %s: %s",
					aws.ToString(e.StateEnteredEventDetails.Name), problem)
			}
			return problem
		}

		if code != nil && !ours(*code) {
			problem = strings.TrimSuffix(*code+": "+aws.ToString(cause), ": ")
		}
	}
	return problem
}

// ours reports whether an error of a task is a worker's response.
func ours(code string) bool {
	switch ingest.Answer(code) {
	case ingest.Continue, ingest.Parked, ingest.Superseded, ingest.StageFail:
		return true
	}
	return false
}

// Answer reports the result of a stage to its token. Platforms refuse tokens that are
// answered, timed out or unknown in different ways: all count as answered. That is safe,
// because the row decides whether a stage is done, never the token. The cause is cut, as it
// is for people only (Step Functions takes 32,768 characters).
func (e *Executions) Answer(ctx context.Context, token string, a ingest.Answer,
	cause string) error {
	var err error
	if a == ingest.Success {
		_, err = e.Client.SendTaskSuccess(ctx,
			&sfn.SendTaskSuccessInput{TaskToken: &token, Output: aws.String("{}")})
	} else {
		if len(cause) > 1000 {
			cause = cause[:1000]
		}
		_, err = e.Client.SendTaskFailure(ctx, &sfn.SendTaskFailureInput{
			TaskToken: &token,
			Error:     aws.String(string(a)),
			Cause:     &cause,
		})
	}

	var gone *types.TaskDoesNotExist
	var invalid *types.InvalidToken
	var late *types.TaskTimedOut
	if errors.As(err, &gone) || errors.As(err, &invalid) || errors.As(err, &late) {
		return nil
	}
	return err
}
