package v1

import "context"

// EventsVerified is the result of a verification of the archive of events.
type EventsVerified struct {
	// The number of files that were checked.
	Files int `json:"files" example:"31"`
	// The number of events in them.
	Events int64 `json:"events" example:"12000"`
	// What is not as it was written.
	Findings []ArchiveFinding `json:"findings,omitempty"`
	// Send it with the next request to continue. Absent at the end.
	Cursor string `json:"cursor,omitempty"`
}

// ArchiveFinding is something in the archive of events that is not as it was written.
type ArchiveFinding struct {
	// The partition of the log.
	Partition string `json:"partition" example:"maps"`
	// The key of the file in the bucket of events. Absent if no file is known.
	File string `json:"file,omitempty" example:"epoch-1/maps/0.0/2026-11-22-000000000001.jsonl"`
	// What was found, with the line of the file.
	Problem string `json:"problem" example:"line 12: the event does not have its SHA-256"`
}

// VerifyEvents checks the archive of events for some seconds, from a cursor on ("" at the
// beginning). If the response has a cursor, call it again with that cursor.
func (c *Client) VerifyEvents(ctx context.Context, cursor string) (EventsVerified, error) {
	return post[EventsVerified](ctx, c, "/v1/events/verify"+query("cursor", cursor), nil)
}
