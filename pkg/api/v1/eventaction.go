package v1

import "context"

// EventLogAction is an action on the log of events.
type EventLogAction struct {
	// What to do: raise-epoch says that the table was restored from a backup.
	Action string `json:"action" enum:"raise-epoch" example:"raise-epoch"`
	// Why. It is kept in the event.
	Reason string `json:"reason" minLength:"1" maxLength:"500" example:"The table was restored to 2026-11-22T09:30Z."`
}

// EventLogOutcome is what an action on the log of events did.
type EventLogOutcome struct {
	// The action.
	Action string `json:"action" example:"raise-epoch"`
	// The epoch of the log from now on.
	Epoch int64 `json:"epoch" example:"2"`
	// What was done, in a sentence.
	Summary string `json:"summary" example:"The log has the epoch 2."`
}

// ActOnEventLog acts on the log of events. A repeated request with the same key does nothing more.
func (c *Client) ActOnEventLog(ctx context.Context, in EventLogAction,
	key string) (EventLogOutcome, error) {
	return post[EventLogOutcome](ctx, c, "/v1/events/actions", in, key)
}
