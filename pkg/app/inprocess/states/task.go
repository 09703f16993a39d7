package states

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sfn/types"
)

// resource is what a Task state can use: call makes the call, and token says whether the task
// ends with the answer to its token (".waitForTaskToken") rather than with the call. A call's
// error is a *failure; its context ends with the task.
type resource struct {
	call  func(ctx context.Context, m *Machines, parameters any) (any, error)
	token bool
}

var resources = map[string]resource{
	"arn:aws:states:::lambda:invoke":                    {call: invoke},
	"arn:aws:states:::sqs:sendMessage.waitForTaskToken": {call: send, token: true},
	"arn:aws:states:::ecs:runTask.sync":                 {call: runTask},
	"arn:aws:states:::ecs:runTask.waitForTaskToken":     {call: runTask, token: true},
}

// task does a Task state once. What comes first decides: the call's result, an answer to the
// token, the time-out or the end of the execution. What comes later is dropped: the token is
// void then.
func (v *visit) task(ctx context.Context) (any, error) {
	use := resources[v.Resource]
	token := newToken(v.x.ExecutionARN)

	// A task without an answer has a token, too, by which its end is settled; its parameters
	// cannot name it.
	shown := ""
	if use.token {
		shown = token
	}

	parameters, err := v.Parameters.of(v.input, v.context(shown))
	if err != nil {
		return nil, err
	}

	limit, err := v.limit()
	if err != nil {
		return nil, err
	}

	text, err := encode(parameters)
	if err != nil {
		return nil, err
	}

	if err := v.record(v.scheduled(text, limit), v.taskStarted()); err != nil {
		return nil, err
	}

	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	result := v.m.opened(token, v.x)
	defer v.m.settle(token, outcome{})
	timer := time.AfterFunc(time.Duration(limit)*time.Second, func() {
		v.m.settle(token, outcome{err: &failure{timedOut, ""}})
	})

	defer timer.Stop()
	v.m.running.Go(func() { v.call(ctx, use, token, parameters) })
	select {
	case out := <-result:
		return v.taskEnded(out)
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// limit is a task's time-out in seconds.
func (v *visit) limit() (int64, error) {
	if v.TimeoutSeconds == nil && v.TimeoutSecondsPath.value == nil {
		return longestTask, nil
	}
	return v.number(v.TimeoutSeconds, v.TimeoutSecondsPath)
}

// call makes a task's call. With a token, only an error of the call ends the task; its result
// is just written into the history.
func (v *visit) call(ctx context.Context, use resource, token string, parameters any) {
	data, err := use.call(ctx, v.m, parameters)
	if err != nil || !use.token {
		v.m.settle(token, outcome{data, err})
		return
	}
	v.submitted(token, data)
}

// taskEnded writes a task's end into the history. A result that is too large is a failure of
// the task.
func (v *visit) taskEnded(out outcome) (any, error) {
	text, err := "", out.err
	if err == nil {
		text, err = encode(out.data)
	}
	if recorded := v.record(v.taskEnd(text, err)); recorded != nil {
		return nil, recorded
	}
	return out.data, err
}

// opened is where the outcome of a new task will be. It is there before the call is made, so
// an answer that comes during the call finds it.
func (m *Machines) opened(token string, x *execution) <-chan outcome {
	m.mu.Lock()
	defer m.mu.Unlock()
	a := &attempt{x, make(chan outcome, 1)}
	m.open[token] = a
	return a.result
}

// settle ends a task that is under way, and reports whether it was. The first wins, by the
// lock.
func (m *Machines) settle(token string, out outcome) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	a := m.open[token]
	delete(m.open, token)
	if a == nil || a.x.Status != types.ExecutionStatusRunning {
		return false
	}
	a.result <- out
	return true
}

// newToken is a task token: it names the execution, so that an old token is told from one
// that never was. Only refuse reads it.
func newToken(execution string) string {
	return base64.RawURLEncoding.EncodeToString([]byte(execution + "\n" + rand.Text()))
}

// refuse is the error for a token that is of no task under way. The text of each is that of
// Step Functions.
func (m *Machines) refuse(token string) error {
	text, err := base64.RawURLEncoding.DecodeString(token)
	execution, _, ok := strings.Cut(string(text), "\n")
	if err != nil || !ok {
		return &types.InvalidToken{Message: aws.String("Invalid Token: 'Invalid token'")}
	}

	m.mu.Lock()
	defer m.mu.Unlock()
	if m.executions[execution] == nil {
		return &types.TaskDoesNotExist{Message: aws.String("Task does not exist")}
	}
	return &types.TaskTimedOut{Message: aws.String("Task Timed Out: 'Provided task does not exist anymore'")}
}

// invoke is lambda:invoke. The error name of a function that failed is its error's type
// (Developer Guide, "Handling errors in Step Functions workflows"); one that says none is
// Lambda.Unknown. An answer that is no JSON is passed on as a text.
func invoke(_ context.Context, m *Machines, parameters any) (any, error) {
	fields, _ := parameters.(map[string]any)
	function, _ := fields["FunctionName"].(string)
	payload, err := encode(fields["Payload"])
	if err != nil {
		return nil, err
	}

	out, failed, err := m.Invoke(m.ctx, function, []byte(payload))
	if err != nil {
		return nil, refused("Lambda", "SdkClientException", err)
	}

	if failed != "" {
		var document struct{ ErrorType string }
		if err := json.Unmarshal(out, &document); err != nil || document.ErrorType == "" {
			document.ErrorType = "Lambda.Unknown"
		}
		return nil, &failure{document.ErrorType, string(out)}
	}

	data, err := decode(out)
	if err != nil {
		data = string(out)
	}
	return map[string]any{"ExecutedVersion": "$LATEST", "Payload": data,
		"StatusCode": json.Number("200")}, nil
}

// send is sqs:sendMessage. A body that is no text is sent as JSON. The definition has put the
// token into the body.
func send(ctx context.Context, m *Machines, parameters any) (any, error) {
	fields, _ := parameters.(map[string]any)
	queue, _ := fields["QueueUrl"].(string)
	body, isText := fields["MessageBody"].(string)
	if !isText {
		text, err := encode(fields["MessageBody"])
		if err != nil {
			return nil, err
		}
		body = text
	}

	if err := m.Send(ctx, queue, body); err != nil {
		return nil, &failure{"SQS.SqsException", err.Error()}
	}
	return map[string]any{}, nil
}

// runTask is ecs:runTask. The parameters go to RunTask as they are.
func runTask(ctx context.Context, m *Machines, parameters any) (any, error) {
	if m.RunTask == nil {
		return nil, &failure{"ECS.ClientException", "containers are not run here"}
	}

	text, err := encode(parameters)
	if err != nil {
		return nil, err
	}

	out, err := m.RunTask(ctx, []byte(text))
	if err != nil {
		return nil, refused("ECS", "SdkClientException", err)
	}

	data, err := decode(out)
	if err != nil {
		return nil, &failure{runtimeFailure, "what ECS answered is no JSON"}
	}
	return data, nil
}
