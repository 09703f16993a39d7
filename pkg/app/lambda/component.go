package lambda

import (
	"context"
	"encoding/json"
	"log/slog"
	"strings"

	"archivist/pkg/aws/cloudwatch"
	"archivist/pkg/components/component"
	"archivist/pkg/kernel/fault"
)

// Component is the function of the state machine component-run.
type Component struct {
	Runner  *component.Runner
	Metrics *cloudwatch.Metrics
	Log     *slog.Logger
}

// ComponentRequest is a step of an execution: "find" the next items of a run, "work" on those
// of a lane, or "end" the run; of a component whose runnable is a task, "take" the item of a
// lane, and "record" what its container answered. Taken, Result and Error are of "record":
// what "take" returned, and what the container or the machine answered.
type ComponentRequest struct {
	Action string           `json:"action"`
	Run    component.RunRef `json:"run"`
	Lane   component.Lane   `json:"lane"`
	Taken  component.Taken  `json:"taken"`
	Result json.RawMessage  `json:"result"`
	Error  *TaskError       `json:"error"`
}

// TaskError is how a task of the state machine failed. The names of the fields are those of a
// Catch.
type TaskError struct {
	Error string
	Cause string
}

// TakenItem is the answer of "take". Text is the work, for the container. Is is false if the
// item is not this lane's to work on any more; then no container is started.
type TakenItem struct {
	Is    bool            `json:"is"`
	Taken component.Taken `json:"taken"`
	Text  string          `json:"text"`
}

// Handle does a step. The state machine repeats one that fails, but "work": its items are
// found again. An answer that has nothing to say is an empty object, since the definition may
// select from it.
func (f *Component) Handle(ctx context.Context, in ComponentRequest) (out any, err error) {
	log := f.Log.With("action", in.Action, "component", in.Run.Component, "run", in.Run.Run)
	defer func() { _ = f.Metrics.Put(context.WithoutCancel(ctx)) }() // the log has what was lost
	out = struct{}{}
	switch in.Action {
	case "find":
		out, err = f.Runner.Find(ctx, in.Run)
	case "work":
		err = f.Runner.WorkLane(ctx, in.Run, in.Lane)
	case "end":
		err = f.Runner.End(ctx, in.Run)
	case "take":
		out, err = f.take(ctx, in)
	case "record":
		err = f.record(ctx, in)
	default:
		err = fault.New(fault.Invalid, "action: %q; expected find, work, end, take or record",
			in.Action)
	}

	if err != nil {
		log.Error("the step failed", "error", err)
	}
	return out, err
}

// take takes the claim on the only item of a lane.
func (f *Component) take(ctx context.Context, in ComponentRequest) (out TakenItem, err error) {
	if len(in.Lane.Items) != 1 {
		return out, fault.New(fault.Invalid, "take: %d items; a lane of containers has one",
			len(in.Lane.Items))
	}
	t, err := f.Runner.Take(ctx, in.Run, in.Lane.Number, in.Lane.Items[0])
	if err != nil || t == nil {
		return out, err
	}
	text, err := t.Work.Text()
	return TakenItem{Is: true, Taken: *t, Text: text}, err
}

// record records what a container answered. What cannot be read as a result is a failure of
// the item, with the reason.
func (f *Component) record(ctx context.Context, in ComponentRequest) error {
	var result component.Result
	var failed error
	switch {
	case in.Error != nil:
		failed = in.Error.failure()
	default:
		err := json.Unmarshal(in.Result, &result)
		if err != nil {
			failed = fault.New(fault.Invalid, "the container's answer is not a result: %w", err)
		}
	}
	return f.Runner.Record(ctx, in.Run, in.Lane.Number, in.Taken, result, failed)
}

// failure is what a failed task says of the item. A container that could not be started says
// nothing of it ("Error handling in Step Functions"). An Unavailable leaves the item in its
// line without a failure; an Invalid counts as one.
func (e *TaskError) failure() error {
	said := strings.TrimSuffix(e.Error+": "+e.Cause, ": ")
	switch {
	case e.Error == "States.Timeout":
		return fault.New(fault.Invalid, "timed out: the container did not answer in time")
	case strings.HasPrefix(e.Error, "ECS.") || e.Error == "States.Permissions" ||
		e.Error == "States.Runtime":
		return fault.New(fault.Unavailable, "the container could not be started: %s", said)
	}
	return fault.New(fault.Invalid, "the container failed: %s", said)
}
