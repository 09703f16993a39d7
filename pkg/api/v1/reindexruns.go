package v1

import (
	"context"
	"net/url"
)

// The states of a run of a reindex.
const (
	ReindexRunning     = "Running"
	ReindexInterrupted = "Interrupted"
	ReindexDone        = "Done"
)

// ReindexReport says how far a reindex of all objects is. Who drives it sends one from time to time.
type ReindexReport struct {
	// How many parts of the storage root are done. All parts have about the same number of objects.
	Done int `json:"done" minimum:"0" maximum:"1000000" example:"2048"`
	// How many parts there are.
	Total int `json:"total" minimum:"1" maximum:"1000000" example:"4096"`
	// The number of objects that were read.
	Objects int `json:"objects" minimum:"0" example:"1000"`
	// The number of objects whose missing rows were restored.
	Changed int `json:"changed" minimum:"0" example:"2"`
	// The number of objects that could not be restored completely.
	Failed int `json:"failed" minimum:"0" example:"1"`
	// The first of those that could not, at most 20.
	Failures []NotReindexed `json:"failures,omitempty" maxItems:"20"`
	// Whether it has come to its end.
	Ended bool `json:"ended,omitempty"`
}

// ReindexRun is how far a reindex of all objects is, as it was reported last.
type ReindexRun struct {
	// The id of the run, which its driver has chosen.
	ID string `json:"id" example:"01M7ZBMEYHBB62YP6RY21T1GQ8"`
	// Interrupted: it has not ended, and nothing was heard of it for three minutes. The same command, on the same
	// computer, resumes it.
	State string `json:"state" enum:"Running,Interrupted,Done" example:"Running"`
	// Who has started it.
	Actor string `json:"actor" example:"ann"`
	// When it was started.
	Started string `json:"started" format:"date-time" example:"2026-11-22T09:30:00Z"`
	// When it was reported last.
	Reported string `json:"reported" format:"date-time" example:"2026-11-22T09:31:12Z"`
	// For how many seconds it still runs at its rate. Absent if that is not known.
	SecondsLeft int64 `json:"secondsLeft,omitempty" example:"1800"`
	ReindexReport
}

// ReportReindex reports how far a reindex of all objects is. The first report of an id begins it.
func (c *Client) ReportReindex(ctx context.Context, id string, in ReindexReport) (ReindexRun,
	error) {
	return put[ReindexRun](ctx, c, "/v1/reindex/runs/"+url.PathEscape(id), in)
}

// ReindexRuns lists the reindexes of all objects of the last 90 days, the newest first.
func (c *Client) ReindexRuns(ctx context.Context) ([]ReindexRun, error) {
	return list[ReindexRun](ctx, c, "/v1/reindex/runs", 0)
}
