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
// environments of the job's archive: a call of Step Functions can name no tenant.
type TaskRouter struct {
	Functions interface {
		Relay(ctx context.Context, function, tenant string, payload json.RawMessage) (
			json.RawMessage, *awsinvoke.Failed, error)
	}
	Runner  string // name of the function
	Tenants bool   // whether it keeps archives apart; emulators know no tenants
	Log     *slog.Logger
}

// Handle passes a job on, and answers as the runner does, its error included: the machine cannot see that another
// function is between. An Unavailable means that the runner was not reached, or that its answer was lost; it may be
// called again then, as the runner says.
func (f *TaskRouter) Handle(ctx context.Context, job json.RawMessage) (json.RawMessage, error) {
	var is runner.Job
	err := json.Unmarshal(job, &is)
	if err != nil {
		return nil, err
	}

	tenant := ""
	if f.Tenants {
		tenant = is.Archive
	}

	answer, failed, err := f.Functions.Relay(ctx, f.Runner, tenant, job)
	log := f.Log.With("attempt", is.ID, "tenant", tenant)
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
