package v1

import "context"

// Activity is what was done, and what waited, in the last 24 hours.
type Activity struct {
	// The hours, the one that runs last. Always 24.
	Hours []ActivityHour `json:"hours" minItems:"24" maxItems:"24"`
	// What was not counted, because it is bounded. Absent if everything was.
	Cut string `json:"cut,omitempty" example:"the first 300 parts of the log were counted"`
	// How many jobs can run at once.
	MaxInFlight int `json:"maxInFlight" example:"100"`
	// The work space, in bytes.
	Space int64 `json:"space" example:"10995116277760"`
}

// ActivityHour is an hour of all collections.
type ActivityHour struct {
	// When it began.
	Begin string `json:"begin" format:"date-time" example:"2026-11-22T09:00:00Z"`
	// Jobs that were completed in it.
	Completed int64 `json:"completed" example:"151"`
	// Failures of jobs in it. A job that fails again after a requeue counts again.
	Failed int64 `json:"failed" example:"4"`
	// Bytes of the versions that were stored in it.
	Bytes int64 `json:"bytes" example:"73014444032"`
	// Whether the queue was measured in it, as it is each minute: the scheduler ran.
	Measured bool `json:"measured" example:"true"`
	// The most seconds for which the oldest job had waited at a gate. 0 if none waited.
	Waited int64 `json:"waited" example:"360"`
	// The most slots in use.
	Running int `json:"running" example:"87"`
	// The most work space in use, in bytes.
	Space int64 `json:"space" example:"5497558138880"`
}

// Activity returns what was done, and what waited, in the last 24 hours.
func (c *Client) Activity(ctx context.Context) (Activity, error) {
	return get[Activity](ctx, c, "/v1/activity")
}
