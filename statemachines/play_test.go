package statemachines_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sfn"
	"github.com/aws/aws-sdk-go-v2/service/sfn/types"
	"github.com/aws/smithy-go"

	"archivist/pkg/app/inprocess/states"
	"archivist/statemachines"
)

// errorOf is the name of an error with which something that a definition calls fails; "Lambda." and what follows is
// an error of the service. late is one that does not answer.
type errorOf string

const late errorOf = "late"

// call is what a definition asked for.
type call struct {
	to string // the function, the queue's stage, or "container"
	in map[string]any
	at time.Duration // since the execution started
}

// play plays one execution of a definition.
type play struct {
	*testing.T
	*states.Machines
	arn     string
	answers []any // in the order of the calls: a result or an errorOf
	began   time.Time
	mu      sync.Mutex
	calls   []call
}

// played plays a definition on answers to its calls, in a bubble, and returns what it asked for and how it ended.
func played(t *testing.T, name, input string, answers ...any) (calls []call, end *sfn.DescribeExecutionOutput) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		p := &play{T: t, arn: "arn:aws:states:us-east-1:000000000000:stateMachine:" + name, answers: answers,
			began: time.Now()}
		p.Machines = &states.Machines{Invoke: p.invoke, Send: p.send, RunTask: p.run}
		defer p.Close()
		if err := p.Add(p.arn, name, []byte(statemachines.Definitions[name])); err != nil {
			t.Fatal(err)
		}
		x, err := p.StartExecution(t.Context(), &sfn.StartExecutionInput{StateMachineArn: &p.arn, Name: aws.String("e"),
			Input: &input})
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(48 * time.Hour)
		end, err = p.DescribeExecution(t.Context(), &sfn.DescribeExecutionInput{ExecutionArn: x.ExecutionArn})
		if err != nil {
			t.Fatal(err)
		}
		calls = p.calls
	})
	return calls, end
}

// next keeps a call and gives its answer.
func (p *play) next(to string, in map[string]any) any {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.calls = append(p.calls, call{strings.Trim(to, "${}"), in, time.Since(p.began)})
	if len(p.calls) > len(p.answers) {
		return late
	}
	return p.answers[len(p.calls)-1]
}

func (p *play) invoke(ctx context.Context, function string, payload []byte) ([]byte, string, error) {
	answer := p.next(function, decoded(p.T, payload))
	name, failed := answer.(errorOf)
	switch {
	case name == late:
		<-ctx.Done()
		return nil, "", ctx.Err()
	case strings.HasPrefix(string(name), "Lambda."):
		return nil, "", &smithy.GenericAPIError{Code: strings.TrimPrefix(string(name), "Lambda.")}
	case failed:
		return fmt.Appendf(nil, `{"errorMessage":"it is so","errorType":%q}`, name), "Unhandled", nil
	}
	return encoded(p.T, answer), "", nil
}

func (p *play) send(_ context.Context, queue, body string) error {
	in := decoded(p.T, []byte(body))
	token := in["token"].(string)
	delete(in, "token")
	answer := p.next(queue, in)
	name, failed := answer.(errorOf)
	switch {
	case name == late:
	case name == "SQS.SqsException":
		return &smithy.GenericAPIError{Code: "SqsException"}
	case failed:
		_, err := p.SendTaskFailure(p.Context(), &sfn.SendTaskFailureInput{TaskToken: &token,
			Error: aws.String(string(name)), Cause: aws.String("why")})
		return err
	default:
		_, err := p.SendTaskSuccess(p.Context(), &sfn.SendTaskSuccessInput{TaskToken: &token, Output: aws.String("{}")})
		return err
	}
	return nil
}

func (p *play) run(ctx context.Context, parameters []byte) ([]byte, error) {
	switch answer := p.next("container", decoded(p.T, parameters)).(type) {
	case errorOf:
		if answer == late {
			<-ctx.Done()
			return nil, ctx.Err()
		}
		return nil, &smithy.GenericAPIError{Code: string(answer)}
	case token:
		_, err := p.SendTaskSuccess(p.Context(), &sfn.SendTaskSuccessInput{
			TaskToken: aws.String(answer.of(p.calls[len(p.calls)-1].in)), Output: aws.String(answer.output)})
		return []byte("{}"), err
	default:
		return encoded(p.T, answer), nil
	}
}

// token is the answer of a container that gets its token in its environment.
type token struct{ output string }

func (token) of(parameters map[string]any) string {
	containers := parameters["Overrides"].(map[string]any)["ContainerOverrides"].([]any)
	environment := containers[0].(map[string]any)["Environment"].([]any)
	return environment[1].(map[string]any)["Value"].(string)
}

func decoded(t *testing.T, text []byte) (out map[string]any) {
	if err := json.Unmarshal(text, &out); err != nil {
		t.Errorf("%s: %v", text, err)
	}
	return out
}

func encoded(t *testing.T, v any) []byte {
	out, err := json.Marshal(v)
	if err != nil {
		t.Error(err)
	}
	return out
}

// wantCalls compares what a definition asked for: lines of the time, to whom, and the input.
func wantCalls(t *testing.T, calls []call, want ...string) {
	t.Helper()
	var got []string
	for _, c := range calls {
		got = append(got, fmt.Sprintf("%s %s %s", c.at, c.to, encoded(t, c.in)))
	}
	if !slices.Equal(got, want) {
		t.Errorf("calls\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// wantEnd compares how an execution ended: its output, or its error and cause.
func wantEnd(t *testing.T, end *sfn.DescribeExecutionOutput, want string) {
	t.Helper()
	got := aws.ToString(end.Output)
	if end.Status != types.ExecutionStatusSucceeded {
		got = strings.TrimSpace(fmt.Sprintf("%s %s %s", end.Status, aws.ToString(end.Error), aws.ToString(end.Cause)))
	}
	if got != want {
		t.Errorf("ended with %s, want %s", got, want)
	}
}
