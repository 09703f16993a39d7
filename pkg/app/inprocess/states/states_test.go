package states

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
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
)

const (
	machineARN = "arn:aws:states:us-east-1:000000000000:stateMachine:m"
	minute     = time.Minute
)

// started is the ARN of a new execution of a definition.
func started(t *testing.T, m *Machines, definition, name, input string) *string {
	t.Helper()
	if err := m.Add(machineARN, "m", []byte(definition)); err != nil {
		t.Fatal(err)
	}
	return begun(t, m, name, input)
}

func begun(t *testing.T, m *Machines, name, input string) *string {
	t.Helper()
	out, err := m.StartExecution(t.Context(), &sfn.StartExecutionInput{StateMachineArn: aws.String(machineARN),
		Name: &name, Input: &input})
	if err != nil {
		t.Fatal(err)
	}
	return out.ExecutionArn
}

// described is how an execution is.
func described(t *testing.T, m *Machines, arn *string) *sfn.DescribeExecutionOutput {
	t.Helper()
	out, err := m.DescribeExecution(t.Context(), &sfn.DescribeExecutionInput{ExecutionArn: arn})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// how is how an execution ended: its output, or its error and cause.
func how(x *sfn.DescribeExecutionOutput) string {
	if x.Status == types.ExecutionStatusSucceeded {
		return *x.Output
	}
	return strings.TrimSpace(fmt.Sprintf("%s %s %s", x.Status, aws.ToString(x.Error), aws.ToString(x.Cause)))
}

// echo is a Lambda function that answers what it gets; {"fail": NAME} fails with that name, {"refuse": CODE} is
// not invoked, and {"seconds": N} takes as long.
func echo(ctx context.Context, _ string, payload []byte) ([]byte, string, error) {
	var in struct {
		Fail, Refuse string
		Seconds      int
	}
	if err := json.Unmarshal(payload, &in); err != nil { // not an object
		return payload, "", nil
	}
	if in.Refuse != "" {
		return nil, "", &smithy.GenericAPIError{Code: in.Refuse, Message: "not now"}
	}
	if err := sleep(ctx, time.Duration(in.Seconds)*time.Second); err != nil {
		return nil, "", err
	}
	if in.Fail != "" {
		return fmt.Appendf(nil, `{"errorMessage":"it is so","errorType":%q}`, in.Fail), "Unhandled", nil
	}
	return payload, "", nil
}

// one is a definition that has one state, X, and others.
func one(state string, others ...string) string {
	return `{"StartAt": "X", "States": {"X": ` + strings.Join(append([]string{state}, others...), ", ") + `}}`
}

// task is a state that invokes echo with what it gets.
func task(fields string) string {
	return `{"Type": "Task", "Resource": "arn:aws:states:::lambda:invoke", "Parameters": {"FunctionName": "echo",
		"Payload.$": "$"}` + fields + `}`
}

// TestStates: what comes of a state, and how long it takes.
func TestStates(t *testing.T) {
	for name, test := range stateTests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := &Machines{Invoke: echo}
				defer m.Close()
				arn, began := started(t, m, test.definition, "e", test.input), time.Now()
				time.Sleep(24 * time.Hour)
				x := described(t, m, arn)
				if got := how(x); got != test.want {
					t.Errorf("%s, want %s", got, test.want)
				}
				if took := x.StopDate.Sub(began); took != test.took {
					t.Errorf("took %s, want %s", took, test.took)
				}
			})
		})
	}
}

// TestJitter: with jitter a state is tried again after any time up to the delay.
func TestJitter(t *testing.T) {
	r := retrier{JitterStrategy: "FULL", IntervalSeconds: aws.Float64(10)}
	var all []time.Duration
	for range 1000 {
		all = append(all, r.delay(1))
	}
	slices.Sort(all)
	if all[0] < 0 || all[0] > 2*time.Second || all[999] > 20*time.Second || all[999] < 18*time.Second {
		t.Errorf("from %s to %s", all[0], all[999])
	}
	if d := (retrier{BackoffRate: aws.Float64(10)}).delay(400); d != longest {
		t.Errorf("%s", d)
	}
}

// waits is a state that sends a message and waits for the answer to its token.
func waits(fields string) string {
	return `{"Type": "Task", "Resource": "arn:aws:states:::sqs:sendMessage.waitForTaskToken", "Parameters": {"QueueUrl": "q",
		"MessageBody": {"token.$": "$$.Task.Token", "in.$": "$"}}` + fields + `}`
}

// mailbox keeps the tokens of the messages that are sent.
type mailbox struct {
	mu     sync.Mutex
	tokens []string
	fails  bool
}

func (b *mailbox) send(_ context.Context, queue, body string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	var message struct{ Token string }
	if err := json.Unmarshal([]byte(body), &message); err != nil || queue != "q" || b.fails {
		return cmp.Or(err, errors.New("no such queue: "+queue))
	}
	b.tokens = append(b.tokens, message.Token)
	return nil
}

// succeed and fail answer a token and return the type of the refusal, or "".
func succeed(t *testing.T, m *Machines, token, output string) string {
	_, err := m.SendTaskSuccess(t.Context(), &sfn.SendTaskSuccessInput{TaskToken: &token, Output: &output})
	return code(err)
}

func fail(t *testing.T, m *Machines, token, name string) string {
	_, err := m.SendTaskFailure(t.Context(), &sfn.SendTaskFailureInput{TaskToken: &token, Error: &name,
		Cause: aws.String("why")})
	return code(err)
}

func code(err error) string {
	var api smithy.APIError
	if errors.As(err, &api) {
		return api.ErrorCode()
	}
	if err != nil {
		return err.Error()
	}
	return ""
}

func same(t *testing.T, what, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("%s: %s, want %s", what, got, want)
	}
}

// TestTokens: a task ends with the first answer to its token. A second answer, one after the time-out and one after
// the execution was stopped have no effect, and say so.
func TestTokens(t *testing.T) {
	definition := one(waits(`, "TimeoutSeconds": 60, "Retry": [{"ErrorEquals": ["Again", "States.Timeout"], "MaxAttempts": 1}],
		"Catch": [{"ErrorEquals": ["States.ALL"], "ResultPath": "$.f", "Next": "OK"}]`+ends), toPass)
	bubble := func(name string, test func(t *testing.T, m *Machines, b *mailbox, arn *string)) {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := &mailbox{}
				m := &Machines{Send: b.send}
				defer m.Close()
				arn := started(t, m, definition, "e", `{"a":1}`)
				synctest.Wait()
				test(t, m, b, arn)
			})
		})
	}
	bubble("repeated", func(t *testing.T, m *Machines, b *mailbox, arn *string) {
		same(t, "first", succeed(t, m, b.tokens[0], `{"r": 2}`), "")
		same(t, "second", fail(t, m, b.tokens[0], "E"), "TaskTimedOut")
		synctest.Wait()
		same(t, "third", succeed(t, m, b.tokens[0], `{"r": 3}`), "TaskTimedOut")
		same(t, "end", how(described(t, m, arn)), `{"r":2}`)
	})
	bubble("failed", func(t *testing.T, m *Machines, b *mailbox, arn *string) {
		same(t, "first", fail(t, m, b.tokens[0], "E"), "")
		synctest.Wait()
		same(t, "end", how(described(t, m, arn)), `{"a":1,"f":{"Cause":"why","Error":"E"}}`)
	})
	bubble("tried again with another token", func(t *testing.T, m *Machines, b *mailbox, arn *string) {
		same(t, "first", fail(t, m, b.tokens[0], "Again"), "")
		time.Sleep(time.Second)
		synctest.Wait()
		same(t, "old token", succeed(t, m, b.tokens[0], `{}`), "TaskTimedOut")
		same(t, "new token", succeed(t, m, b.tokens[1], `{}`), "")
		synctest.Wait()
		same(t, "end", how(described(t, m, arn)), `{}`)
	})
	bubble("late", func(t *testing.T, m *Machines, b *mailbox, arn *string) {
		time.Sleep(minute + time.Millisecond)
		same(t, "answer", succeed(t, m, b.tokens[0], `{}`), "TaskTimedOut")
		same(t, "status", how(described(t, m, arn)), "RUNNING")
		time.Sleep(2 * minute)
		same(t, "end", how(described(t, m, arn)), `{"a":1,"f":{"Cause":"","Error":"States.Timeout"}}`)
	})
	bubble("stopped", func(t *testing.T, m *Machines, b *mailbox, arn *string) {
		time.Sleep(time.Second)
		_, err := m.StopExecution(t.Context(), &sfn.StopExecutionInput{ExecutionArn: arn, Error: aws.String("E"),
			Cause: aws.String("tired of it")})
		same(t, "stop", code(err), "")
		same(t, "answer", succeed(t, m, b.tokens[0], `{}`), "TaskTimedOut")
		x := described(t, m, arn)
		same(t, "end", how(x), "ABORTED E tired of it")
		time.Sleep(time.Hour)
		again, err := m.StopExecution(t.Context(), &sfn.StopExecutionInput{ExecutionArn: arn})
		if err != nil || !again.StopDate.Equal(*x.StopDate) || how(described(t, m, arn)) != how(x) ||
			len(b.tokens) != 1 {
			t.Errorf("stopped again: %v, %+v, %d messages", err, again, len(b.tokens))
		}
	})
	bubble("odd", func(t *testing.T, m *Machines, b *mailbox, _ *string) {
		same(t, "no token", succeed(t, m, "x!", `{}`), "InvalidToken")
		same(t, "another's", fail(t, m, newToken("arn:of:another"), "E"), "TaskDoesNotExist")
		same(t, "no JSON", succeed(t, m, b.tokens[0], `{`), "InvalidOutput")
		same(t, "too large", succeed(t, m, b.tokens[0], `"`+strings.Repeat("a", most)+`"`), "InvalidOutput")
	})
}

// TestSend: a message that cannot be sent fails the state at once.
func TestSend(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &mailbox{fails: true}
		m := &Machines{Send: b.send}
		defer m.Close()
		arn := started(t, m, one(waits(ends)), "e", `{}`)
		synctest.Wait()
		if got := how(described(t, m, arn)); got != "FAILED SQS.SqsException no such queue: q" {
			t.Error(got)
		}
	})
}

// TestNames: a name is that of one execution, for good. The same start returns it while it runs.
func TestNames(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &Machines{}
		defer m.Close()
		arn := started(t, m, one(`{"Type": "Wait", "Seconds": 5, "End": true}`), "e", `{"a":1}`)
		start := func(machine, name, input string) (string, string) {
			out, err := m.StartExecution(t.Context(), &sfn.StartExecutionInput{StateMachineArn: &machine, Name: &name,
				Input: &input})
			if err != nil {
				return "", code(err)
			}
			return *out.ExecutionArn, ""
		}
		if got, refused := start(machineARN, "e", `{"a":1}`); got != *arn || refused != "" {
			t.Errorf("the same again: %s, %s", got, refused)
		}
		check := func(machine, name, input, want string) {
			t.Helper()
			if _, got := start(machine, name, input); got != want {
				t.Errorf("%s with %.20s: %s, want %s", name, input, got, want)
			}
		}
		check(machineARN, "e", `{"a":2}`, "ExecutionAlreadyExists")
		check("arn:of:another", "e", `{}`, "StateMachineDoesNotExist")
		check(machineARN, "a b", `{}`, "InvalidName")
		check(machineARN, strings.Repeat("a", 81), `{}`, "InvalidName")
		check(machineARN, "f", `{`, "InvalidExecutionInput")
		time.Sleep(minute)
		check(machineARN, "e", `{"a":1}`, "ExecutionAlreadyExists")
		out, err := m.StartExecution(t.Context(), &sfn.StartExecutionInput{StateMachineArn: aws.String(machineARN)})
		if err != nil || aws.ToString(described(t, m, out.ExecutionArn).Input) != "{}" {
			t.Errorf("without name and input: %v, %v", out, err)
		}
	})
}

// TestStop: the function of an execution that is stopped goes on; a container is ended, and so are the items of a Map
// state. Each change of a status is told once.
func TestStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var events []string
		event := func(format string, args ...any) {
			mu.Lock()
			defer mu.Unlock()
			events = append(events, fmt.Sprintf(format, args...))
		}
		m := &Machines{
			Invoke: func(ctx context.Context, function string, payload []byte) ([]byte, string, error) {
				out, failed, err := echo(ctx, function, payload)
				event("function: %v", err)
				return out, failed, err
			},
			RunTask: func(ctx context.Context, _ []byte) ([]byte, error) {
				<-ctx.Done()
				event("container: %v", ctx.Err())
				return nil, ctx.Err()
			},
			Changed: func(c ChangeEvent) { event("%s %s %s%s", c.Name, c.Status, c.Output, c.Cause) },
		}
		defer m.Close()
		stop := func(arn *string) {
			time.Sleep(time.Second)
			_, err := m.StopExecution(t.Context(), &sfn.StopExecutionInput{ExecutionArn: arn,
				Cause: aws.String("enough")})
			if err != nil {
				t.Error(err)
			}
			time.Sleep(minute)
		}
		container := `{"Type": "Task", "Resource": "arn:aws:states:::ecs:runTask.sync", "Parameters": {}, "End": true}`
		stop(started(t, m, one(task(ends)), "a", `{"seconds": 30}`))
		stop(started(t, m, one(`{"Type": "Map", "End": true, "ItemProcessor": {"StartAt": "I", "States": {"I": `+container+`}}}`), "b", `[1]`))
		started(t, m, one(task(payload)), "c", `1`)
		synctest.Wait()
		want := []string{"a RUNNING ", "a ABORTED enough", "function: <nil>", "b RUNNING ", "b ABORTED enough",
			"container: context canceled", "c RUNNING ", "function: <nil>", "c SUCCEEDED 1"}
		if !slices.Equal(events, want) {
			t.Errorf("%q", events)
		}
	})
}

// TestClose: all ends with Close, also what would never end; the bubble proves it.
func TestClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &Machines{Invoke: echo, Send: (&mailbox{}).send}
		started(t, m, one(task(ends)), "a", `{"seconds": 3000}`)
		started(t, m, one(waits(ends)), "b", `{}`)
		started(t, m, one(`{"Type": "Wait", "Seconds": 3000, "End": true}`), "c", `{}`)
		synctest.Wait()
		began := time.Now()
		m.Close()
		if !time.Now().Equal(began) {
			t.Error("Close waited")
		}
		_, err := m.StartExecution(t.Context(), &sfn.StartExecutionInput{StateMachineArn: aws.String(machineARN)})
		if err == nil {
			t.Error("an execution started after Close")
		}
		(&Machines{}).Close()
	})
}

// TestForgotten: an execution that ended long ago is not known any more, but its name is not used again.
func TestForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &Machines{}
		defer m.Close()
		first := started(t, m, one(`{"Type": "Succeed"}`), "first", `{}`)
		synctest.Wait()
		for i := range keptExecutions {
			described(t, m, first)
			if len(m.ended) != i+1 {
				t.Fatalf("%d have ended, want %d", len(m.ended), i+1)
			}
			begun(t, m, fmt.Sprint(i), `{}`)
			synctest.Wait()
		}
		_, err := m.DescribeExecution(t.Context(), &sfn.DescribeExecutionInput{ExecutionArn: first})
		if code(err) != "ExecutionDoesNotExist" {
			t.Errorf("%v", err)
		}
		_, err = m.StartExecution(t.Context(), &sfn.StartExecutionInput{StateMachineArn: aws.String(machineARN),
			Name: aws.String("first")})
		if code(err) != "ExecutionAlreadyExists" {
			t.Errorf("%v", err)
		}
	})
}
