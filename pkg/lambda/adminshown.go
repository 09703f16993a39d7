package lambda

import (
	"context"

	"archivist/pkg/ingest"
	"archivist/pkg/queue"
)

// shownAction is the result of an action as the execution shows it.
type shownAction struct {
	Action   ingest.ActionName `json:"action"`
	Target   string            `json:"target"`
	Changed  bool              `json:"changed"`
	DryRun   bool              `json:"dryRun"`
	Summary  string            `json:"summary"`
	From     string            `json:"from,omitempty"`
	To       string            `json:"to,omitempty"`
	Warnings []string          `json:"warnings,omitempty"`
	// Next is what usually follows. With a reason it is the input of another execution.
	Next *ingest.Bulk `json:"next,omitempty"`
	// Completes is the operation that completes the action.
	Completes any `json:"operation,omitempty"`
}

func showAction(r ingest.ActionResult) shownAction {
	return shownAction{Action: r.Action, Target: r.Target.String(), Changed: r.Changed, DryRun: r.DryRun,
		Summary: r.Summary, From: r.From, To: r.To, Warnings: r.Warnings, Next: r.Next}
}

// shownOperation is an operation as an execution shows it.
type shownOperation struct {
	ID       string                `json:"id"`
	Action   ingest.ActionName     `json:"action"`
	Filter   *ingest.Filter        `json:"filter,omitempty"`
	State    ingest.OperationState `json:"state"`
	DryRun   bool                  `json:"dryRun"`
	Progress string                `json:"progress,omitempty"`
	ingest.Tally
	Left int `json:"left"`

	// Refusals and Found are the first refused jobs and the first findings, when it has ended.
	Refusals []shownRefusal  `json:"refusals,omitempty"`
	Found    []queue.Finding `json:"found,omitempty"`
}

// shownRefusal is a job that an operation did not act on, and why.
type shownRefusal struct {
	Job    string `json:"job"`
	Reason string `json:"reason"`
}

func showOperation(o *queue.Operation) shownOperation {
	out := shownOperation{ID: o.Operation.ID, Action: o.Name, State: o.State, DryRun: o.DryRun, Progress: o.Progress,
		Tally: o.Tally, Left: o.Tally.Left()}
	if o.Name != ingest.ActDoctor {
		out.Filter = &o.Filter
	}
	return out
}

// mostShown is how many refusals and findings an execution shows; the API lists all.
const mostShown = 20

// firstOf reads the first refusals or findings of an operation that has ended.
func (f *AdminAction) firstOf(ctx context.Context, o shownOperation) (refused []shownRefusal,
	found []queue.Finding, err error) {
	if o.Refused > 0 {
		page, err := f.Admin.Refusals(ctx, o.ID, "")
		if err != nil {
			return nil, nil, err
		}
		for _, r := range page.Items[:min(len(page.Items), mostShown)] {
			refused = append(refused, shownRefusal{r.Job, r.Reason})
		}
	}
	if o.Findings > 0 {
		page, err := f.Admin.Findings(ctx, o.ID, "")
		if err != nil {
			return nil, nil, err
		}
		for _, x := range page.Items[:min(len(page.Items), mostShown)] {
			found = append(found, x.Finding)
		}
	}
	return refused, found, nil
}
