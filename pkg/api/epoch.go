package api

import (
	"context"
	"fmt"

	"github.com/danielgtaylor/huma/v2"

	v1 "archivist/pkg/api/v1"
)

// EventLogAction is a request to act on the log of events.
type EventLogAction struct {
	Acting
	Body v1.EventLogAction
}

// eventLogActions registers the route of actions on the log of events.
func (a *API) eventLogActions(h huma.API) {
	post(a, h, "/v1/events/actions", "actOnEventLog", "Act on the log of events", a.actOnEventLog)
}

// actOnEventLog raises the epoch: there is no other action. With an idempotency key a repeated request
// raises it once. Consumers stop by themselves when they see the new epoch; the sentence says what a
// person does then.
func (a *API) actOnEventLog(ctx context.Context,
	in *EventLogAction) (out v1.EventLogOutcome, err error) {
	by, err := in.by(in.Body.Reason)
	if err != nil {
		return out, err
	}
	out.Action = in.Body.Action
	out.Epoch, err = a.Epochs.RaiseEpoch(ctx, by)
	out.Summary = fmt.Sprintf("The log has the epoch %d. Consumers that have begun before stop until they are reset: "+
		"archivist consumer reset NAME --to cursor.", out.Epoch)
	return out, err
}
