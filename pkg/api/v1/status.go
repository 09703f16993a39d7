package v1

import "context"

// The states of a section of the status.
const (
	SectionOK          = "ok"
	SectionAttention   = "attention"
	SectionUnavailable = "unavailable"
	SectionAbsent      = "absent"
)

// Status is the whole deployment on one screen.
type Status struct {
	// When it was read. The sections are read at the same time, but not at one moment.
	At string `json:"at" format:"date-time" example:"2026-11-22T09:30:00Z"`
	// Whether something needs a person: a section needs attention, or could not be read.
	Attention bool `json:"attention" example:"true"`
	// The sections, always all of them and in the same order.
	Sections []StatusSection `json:"sections"`
	// Absent if it could not be read. The numbers and the holds of the queue as `GET /v1/queue` has them, without jobs
	// and actions.
	Queue *Queue `json:"queue,omitempty"`
}

// StatusSection is a part of the status. One that cannot be read does not make the others fail.
type StatusSection struct {
	// What it is about.
	Name string `json:"name" enum:"failures,waiting,holds,events,preservation,components,archives,alarms,running"`
	// attention: a person is needed. unavailable: it could not be read, so nothing is known. absent: this deployment
	// has no such thing.
	State string `json:"state" enum:"ok,attention,unavailable,absent"`
	// All of it in a sentence; why it could not be read, if it is unavailable.
	Summary string `json:"summary" example:"3 jobs failed in the last 24 hours, and are failed still"`
	// What was not read, because it is bounded. Absent if everything was.
	Cut string `json:"cut,omitempty" example:"only the newest 1,000 entries were read"`
	// The command that shows all of it. Absent if there is none.
	Command string `json:"command,omitempty" example:"archivist job list --state failed"`
	// What it consists of, what needs a person first.
	Lines []StatusLine `json:"lines"`
}

// StatusLine is one thing of a section.
type StatusLine struct {
	// What it is.
	Text string `json:"text" example:"its digest is wrong"`
	// Whether it needs a person.
	Attention bool `json:"attention" example:"true"`
	// How many things it stands for.
	Count int64 `json:"count" example:"3"`
	// Since when it is so. Absent if that is not known.
	Since string `json:"since,omitempty" format:"date-time" example:"2026-11-22T09:30:00Z"`
	// The command that shows more. Absent if there is none beyond that of the section.
	Command string `json:"command,omitempty" example:"archivist job list --state failed --message 'its digest'"`
}

// Status returns the whole deployment on one screen.
func (c *Client) Status(ctx context.Context) (Status, error) {
	return get[Status](ctx, c, "/v1/status")
}

// Attention is Status with only those lines that need a person. It costs less.
func (c *Client) Attention(ctx context.Context) (Status, error) {
	return get[Status](ctx, c, "/v1/status?attention=true")
}
