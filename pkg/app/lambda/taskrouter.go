package lambda

import (
	"context"
	"encoding/json"
	"log/slog"

	"github.com/aws/aws-lambda-go/lambda/messages"

	awsinvoke "archivist/pkg/aws/invoke"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/revisions/runner"
)

// TaskRouter is the function task-router. It calls the function task-runner for the state machine task-run, in the
// environments of the job's archive and with credentials of its own: a call of Step Functions can have neither.
type TaskRouter struct {
	Functions interface {
		Relay(ctx context.Context, function, tenant string, payload json.RawMessage) (
			json.RawMessage, *awsinvoke.Failed, error)
	}
	Runner  string // name of the function
	Tenants bool   // whether it keeps archives apart; emulators know no tenants

	// Credentials takes those of a run; nil: the runner has its own.
	Credentials func(ctx context.Context, job *runner.Job) (*runner.Credentials, error)
	Log         *slog.Logger
}

// Handle passes a job on, and answers as the runner does, its error included: the machine cannot see that another
// function is between. An Unavailable means that the runner was not reached, or that its answer was lost; it may be
// called again then, as the runner says.
func (f *TaskRouter) Handle(ctx context.Context, job runner.Job) (json.RawMessage, error) {
	log := f.Log.With("attempt", job.ID, "archive", job.Archive)
	answer, failed, err := f.relay(ctx, job)
	switch {
	case fault.Is(err, fault.Unavailable):
		log.Error("the runner was not reached; the state machine calls again", "error", err)
		return nil, messages.InvokeResponse_Error{Type: fault.Edges[fault.Unavailable].Name, Message: err.Error()}
	case err != nil:
		log.Error("the runner was not called", "error", err)
		return nil, err
	case failed != nil:
		log.Warn("the runner has failed", "type", failed.Type, "message", failed.Message)
		return nil, messages.InvokeResponse_Error{Type: failed.Type, Message: failed.Message}
	}
	return answer, nil
}

func (f *TaskRouter) relay(ctx context.Context, job runner.Job) (
	answer json.RawMessage, failed *awsinvoke.Failed, err error) {
	call := runner.Call{Job: job}
	if f.Credentials != nil {
		call.As, err = f.Credentials(ctx, &job)
		if err != nil {
			return nil, nil, err
		}
	}

	payload, err := json.Marshal(call)
	if err != nil {
		return nil, nil, err
	}

	tenant := ""
	if f.Tenants {
		tenant = job.Archive
	}
	return f.Functions.Relay(ctx, f.Runner, tenant, payload)
}
