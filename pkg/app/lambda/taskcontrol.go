package lambda

import (
	"context"
	"log/slog"

	"archivist/pkg/aws/cloudwatch"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/revisions/revision"
	"archivist/pkg/revisions/runner"
)

// TaskControl is the function of the state machine task-run that begins and ends attempts.
type TaskControl struct {
	Control revision.Control
	Metrics *cloudwatch.Metrics
	Log     *slog.Logger
}

// Handle begins or ends an attempt. The answer to the end is empty: what is recorded is in
// the table. Both actions can be repeated: begin answers a repeat in the same way, end
// records an attempt once.
func (f *TaskControl) Handle(ctx context.Context, in runner.Control) (out runner.Begun, err error) {
	log := f.Log.With("action", in.Action, "attempt", in.Attempt, "exec", in.Exec)
	switch in.Action {
	case runner.ActionBegin:
		out, err = f.Control.Begin(ctx, in.Attempt, in.Exec)
		log = log.With("next", out.Next)
	case runner.ActionEnd:
		var recorded bool
		recorded, err = f.Control.End(ctx, in)
		out.Next = runner.NextStop
		log = log.With("recorded", recorded)
	default:
		err = fault.New(fault.Invalid, "action: found %q; expected %s or %s", in.Action,
			runner.ActionBegin,
			runner.ActionEnd)
	}

	if err != nil {
		log.Error("the state machine tries again", "error", err)
	} else {
		log.Info("done")
	}

	_ = f.Metrics.Put(context.WithoutCancel(ctx)) // the log has what was lost
	return out, err
}
