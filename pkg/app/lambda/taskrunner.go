package lambda

import (
	"context"
	"log/slog"

	"github.com/aws/aws-lambda-go/lambda/messages"

	"archivist/pkg/kernel/fault"
	"archivist/pkg/revisions/runner"
)

// TaskRunner is the function task-runner, which the state machine task-run calls.
type TaskRunner struct {
	Run func(ctx context.Context, call runner.Call) (runner.Result, error)
	Log *slog.Logger

	// Left says what the runs so far have left in the process, "" for nothing; nil: nobody looks. Exit ends the
	// process.
	Left func() string
	Exit func(code int)
}

// Handle runs a task. An error means that nothing has been begun; its name tells the machine
// to call again. That a task has failed is a result, not an error.
//
// After a run that has left something, the process ends in place of an answer: what the next run could find is gone
// with it. The machine looks for the result then, which is stored.
func (f *TaskRunner) Handle(ctx context.Context, call runner.Call) (runner.Result, error) {
	log := f.Log.With("attempt", call.ID, "prefix", call.Prefix)
	result, err := f.Run(ctx, call)
	if err != nil {
		log.Error("not begun; the state machine calls again", "error", err)
		return result, messages.InvokeResponse_Error{Type: fault.Edges[fault.Unavailable].Name,
			Message: err.Error()}
	}
	log.Info("the task has run", "end", result.End, "exit", result.Exit, "reason", result.Reason)
	if f.Left != nil && f.Left() != "" {
		log.Warn("the process ends, since the task has left something in it", "left", f.Left())
		f.Exit(1)
	}
	return result, nil
}
