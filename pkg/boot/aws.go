package boot

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"
	"github.com/aws/aws-sdk-go-v2/service/ses"
	sestypes "github.com/aws/aws-sdk-go-v2/service/ses/types"
	"github.com/aws/aws-sdk-go-v2/service/sfn"
	"github.com/aws/aws-sdk-go-v2/service/sfn/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/smithy-go"

	"archivist/pkg/fault"
	"archivist/pkg/ingest"
	"archivist/pkg/queue"
)

// executions are Step Functions.
type executions struct {
	client *sfn.Client
	arns   map[string]string // by machine
}

var _ queue.Executions = (*executions)(nil)
var _ queue.Answers = (*executions)(nil)

// Start begins an execution. On AWS and LocalStack the name and input of a running
// execution give the same one (Step Functions API reference, "StartExecution"); on
// MiniStack they are a Conflict, too.
func (e *executions) Start(ctx context.Context, machine, name string, in queue.Message) error {
	input, err := json.Marshal(in)
	if err != nil {
		return err
	}
	_, err = e.client.StartExecution(ctx, &sfn.StartExecutionInput{StateMachineArn: aws.String(e.arns[machine]), Name: &name, Input: aws.String(string(input))})
	var exists *types.ExecutionAlreadyExists
	if errors.As(err, &exists) {
		return fault.New(fault.Conflict, "an execution with the name %s was started before", name)
	}
	return err
}

// execution is the ARN of a machine's execution by name.
func (e *executions) execution(machine, name string) *string {
	return aws.String(strings.Replace(e.arns[machine], ":stateMachine:", ":execution:", 1) + ":" + name)
}

// ourStop is the error name of executions that the system stops itself.
const ourStop = "Superseded"

// Stop ends an execution.
func (e *executions) Stop(ctx context.Context, machine, name, why string) error {
	_, err := e.client.StopExecution(ctx, &sfn.StopExecutionInput{ExecutionArn: e.execution(machine, name), Error: aws.String(ourStop), Cause: &why})
	var gone *types.ExecutionDoesNotExist
	if errors.As(err, &gone) {
		return nil
	}
	return err
}

// StoppedByHand asks whether somebody else than the system stopped an execution.
func (e *executions) StoppedByHand(ctx context.Context, machine, name string) (string, bool, error) {
	out, err := e.client.DescribeExecution(ctx, &sfn.DescribeExecutionInput{ExecutionArn: e.execution(machine, name)})
	var gone *types.ExecutionDoesNotExist
	if errors.As(err, &gone) {
		return "", false, nil
	}
	if err != nil || out.Status != types.ExecutionStatusAborted || aws.ToString(out.Error) == ourStop {
		return "", false, err
	}
	why := strings.TrimSpace(aws.ToString(out.Error) + " " + aws.ToString(out.Cause))
	if why == "" {
		why = "no reason was given"
	}
	return why, true, nil
}

// Problem reads the end of an execution's history: which call the machine's last
// state could not make. Its own answers, and messages that nobody answered, are no
// problem of the machine.
func (e *executions) Problem(ctx context.Context, machine, name string) (string, error) {
	out, err := e.client.GetExecutionHistory(ctx, &sfn.GetExecutionHistoryInput{
		ExecutionArn: e.execution(machine, name), ReverseOrder: true, MaxResults: 25})
	var gone *types.ExecutionDoesNotExist
	if errors.As(err, &gone) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	return problemOf(out.Events), nil
}

// problemOf reads events, the newest first, back to where the last task began.
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
				problem = fmt.Sprintf("failed at %s: %s", aws.ToString(e.StateEnteredEventDetails.Name), problem)
			}
			return problem
		}
		if code != nil && !ours(*code) {
			problem = strings.TrimSuffix(*code+": "+aws.ToString(cause), ": ")
		}
	}
	return problem
}

// ours reports whether an error of a task is a worker's answer.
func ours(code string) bool {
	switch ingest.Answer(code) {
	case ingest.Continue, ingest.Parked, ingest.Superseded, ingest.StageFail:
		return true
	}
	return false
}

// Answer tells a token how its stage ended. Platforms refuse tokens that are
// answered, timed out or unknown in different ways: all count as answered.
func (e *executions) Answer(ctx context.Context, token string, a ingest.Answer, cause string) error {
	var err error
	if a == ingest.Success {
		_, err = e.client.SendTaskSuccess(ctx, &sfn.SendTaskSuccessInput{TaskToken: &token, Output: aws.String("{}")})
	} else {
		if len(cause) > 1000 {
			cause = cause[:1000]
		}
		_, err = e.client.SendTaskFailure(ctx, &sfn.SendTaskFailureInput{TaskToken: &token, Error: aws.String(string(a)), Cause: &cause})
	}
	var gone *types.TaskDoesNotExist
	var invalid *types.InvalidToken
	var late *types.TaskTimedOut
	if errors.As(err, &gone) || errors.As(err, &invalid) || errors.As(err, &late) {
		return nil
	}
	return err
}

// poke asks the scheduler to look at the gates.
func (s *System) poke(ctx context.Context) error {
	_, err := s.SQS.SendMessage(ctx, &sqs.SendMessageInput{QueueUrl: aws.String(s.Env(EnvWake)), MessageBody: aws.String(`{"look":"gates"}`)})
	return err
}

// mailer sends mail by SES (its first version: the only one that every platform has).
type mailer struct{ client *ses.Client }

func (m *mailer) send(ctx context.Context, raw []byte) error {
	_, err := m.client.SendRawEmail(ctx, &ses.SendRawEmailInput{RawMessage: &sestypes.RawMessage{Data: raw}})
	return mailError(err)
}

// mailError is an error of SES as a person reads it. What SES refuses for the
// message itself, or for an address, is an Invalid.
func mailError(err error) error {
	var api smithy.APIError
	if !errors.As(err, &api) {
		return err
	}
	kind := fault.Unavailable
	var rejected *sestypes.MessageRejected
	if errors.As(err, &rejected) || api.ErrorCode() == "InvalidParameterValue" {
		kind = fault.Invalid
	}
	return &fault.Error{Kind: kind, Msg: api.ErrorCode() + ": " + api.ErrorMessage(), Err: err}
}

// secrets are kept by Secrets Manager.
type secrets struct{ client *secretsmanager.Client }

func (s *secrets) read(ctx context.Context, name string) (string, error) {
	out, err := s.client.GetSecretValue(ctx, &secretsmanager.GetSecretValueInput{SecretId: &name})
	if err != nil {
		return "", err
	}
	return aws.ToString(out.SecretString), nil
}

// executionName splits the name of a job's execution into the job and its exec.
func executionName(name string) (job string, exec int64, ok bool) {
	i := strings.LastIndex(name, "-")
	if i < 0 {
		return "", 0, false
	}
	_, err := fmt.Sscan(name[i+1:], &exec)
	return name[:i], exec, err == nil
}
