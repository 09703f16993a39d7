package lambda

import (
	"context"

	"archivist/pkg/api"
	v1 "archivist/pkg/api/v1"
	"archivist/pkg/ingest"
	"archivist/pkg/ingest/queue"
)

// shownAction is the result of an action as the execution shows it: that of the API, with
// the operation that completes it.
type shownAction struct {
	v1.ActionResult
	Completion any `json:"completion,omitempty"`
}

// shownOperation is an operation as an execution shows it: that of the API, with the first
// refused jobs and the first findings when it has ended.
type shownOperation struct {
	v1.Operation
	Refusals []v1.Refusal `json:"refusals,omitempty"`
	Findings []v1.Finding `json:"findings,omitempty"`
}

func showAction(r ingest.ActionResult) shownAction {
	return shownAction{ActionResult: api.WireResult(r)}
}

func showOperation(o *queue.Operation) shownOperation {
	return shownOperation{Operation: api.WireOperation(*o)}
}

// mostShown is how many refusals and findings an execution shows; the API lists all. An
// execution's output has at most 256 KiB ("Step Functions service quotas").
const mostShown = 20

// addFirst adds the first refusals or findings of an operation that has ended. The counts
// tell whether there are any, so that an operation without costs no read.
func (f *AdminAction) addFirst(ctx context.Context, o *shownOperation) error {
	if o.Counts.Refused > 0 {
		page, err := f.Admin.Refusals(ctx, o.ID, "")
		if err != nil {
			return err
		}
		for _, r := range page.Items[:min(len(page.Items), mostShown)] {
			o.Refusals = append(o.Refusals, v1.Refusal{Job: r.Job, Reason: r.Reason})
		}
	}

	if o.Counts.Findings > 0 {
		page, err := f.Admin.Findings(ctx, o.ID, "")
		if err != nil {
			return err
		}
		for _, x := range page.Items[:min(len(page.Items), mostShown)] {
			o.Findings = append(o.Findings, v1.Finding(x.Finding))
		}
	}
	return nil
}
