package lambda

import (
	"context"
	"encoding/json"
	"log/slog"
	"time"

	"github.com/aws/aws-lambda-go/lambda/messages"

	"archivist/pkg/cloudwatch"
	"archivist/pkg/fault"
	"archivist/pkg/ingest"
	"archivist/pkg/queue"
)

// AdminAction is the function of the state machine admin-action, which a person starts in
// the AWS console, and the system for a bulk operation. The input of the execution is
// checked before anything happens.
//
// An execution keeps nothing: the machine passes its input again at each step. The name of
// the execution is the id of the request, so that a repeated step acts once.
type AdminAction struct {
	Admin   queue.Admin
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
	Next   string `json:"next"`             // one of the steps below
	Error  string `json:"error,omitempty"`  // of a refusal: the kind of the error
	Cause  string `json:"cause,omitempty"`  // of a refusal: the reason, a sentence
	Result any    `json:"result,omitempty"` // what was done, the output of the execution
}

// How an execution continues.
const (
	stepDone    = "Done"    // it ends with success
	stepRefused = "Refused" // it fails
)

// Handle makes one step. A refusal is a step too: only what may succeed at another try is
// an error, whose name is its kind, and the machine tries again.
func (f *AdminAction) Handle(ctx context.Context, in AdminRequest) (AdminStep, error) {
	defer func() { _ = f.Metrics.Put(ctx) }() // the log has what was lost
	log := f.Log.With("execution", in.Execution)
	step, err := f.step(ctx, in)
	switch fault.Of(err) {
	case fault.Unavailable, fault.Stale, "":
		if err != nil {
			log.Error("not done; the state machine tries again", "error", err)
			return step, messages.InvokeResponse_Error{Type: fault.At(err).Name, Message: err.Error()}
		}
	default:
		step = AdminStep{Next: stepRefused, Error: fault.At(err).Name, Cause: err.Error()}
	}
	log.Info("step", "next", step.Next, "error", step.Error, "cause", step.Cause)
	return step, nil
}

// step checks the input and does what it asks for.
func (f *AdminAction) step(ctx context.Context, in AdminRequest) (out AdminStep, err error) {
	if in.Execution == "" {
		return out, fault.New(fault.Invalid, "execution: none is given; start an execution of the state machine "+
			"admin-action instead of the function")
	}
	input, err := readInput(in.Input)
	if err != nil {
		return out, err
	}
	a, err := input.action()
	if err != nil {
		return out, err
	}
	a.Actor, a.Request, a.Role = "console:"+in.Execution, "console:"+in.Execution, ingest.Administrator
	done, err := f.Admin.Act(ctx, a)
	return AdminStep{Next: stepDone, Result: shown(done)}, err
}

// acted is a result as the execution shows it.
type acted struct {
	Action    ingest.ActionName `json:"action"`
	Target    string            `json:"target"`
	Changed   bool              `json:"changed"`
	DryRun    bool              `json:"dryRun"`
	Summary   string            `json:"summary"`
	From      string            `json:"from,omitempty"`
	To        string            `json:"to,omitempty"`
	Warnings  []string          `json:"warnings,omitempty"`
	Next      *ingest.Bulk      `json:"next,omitempty"` // what usually follows, as the input of another execution
	Operation string            `json:"operation,omitempty"`
}

func shown(r ingest.ActionResult) acted {
	return acted{r.Action, r.Target.String(), r.Changed, r.DryRun, r.Summary, r.From, r.To, r.Warnings, r.Next,
		r.Operation}
}
