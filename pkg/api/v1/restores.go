package v1

import (
	"context"
	"net/url"
)

// Restores are the tables that were restored from the one that the archive works on.
type Restores struct {
	// The table that the archive works on.
	Table string `json:"table" example:"archivist-table"`
	// Why nothing is known. Absent if the tables were listed.
	Problem string `json:"problem,omitempty" example:"DynamoDB refused ListTables"`
	// The tables, the newest first; also the one in use, if it was restored.
	Items []RestoredTable `json:"items"`
	// How many tables of the account and region were looked at.
	Looked int `json:"looked" example:"12"`
	// Whether there are more tables, which were not looked at. Ask for one by its name then.
	More bool `json:"more,omitempty" example:"false"`
	// How many tables could not be looked at, for the cause in unreadWhy. Absent if that is none.
	Unread int `json:"unread,omitempty" example:"0"`
	// Why tables could not be looked at. Absent if all could.
	UnreadWhy string `json:"unreadWhy,omitempty" example:"DynamoDB refused DescribeTable"`
}

// RestoredTable is a table that was restored, or is being restored.
type RestoredTable struct {
	// Its name.
	Name string `json:"name" example:"archivist-restored"`
	// Its state, as DynamoDB calls it: CREATING while it is restored, then ACTIVE.
	Status string `json:"status" example:"ACTIVE"`
	// Whether the archive works on it.
	InUse bool `json:"inUse,omitempty" example:"false"`
	// The table that it is a copy of. Absent if DynamoDB does not tell it.
	Source string `json:"source,omitempty" example:"archivist-table"`
	// The time of which its rows are. Absent if it was not restored, but made empty.
	Moment string `json:"moment,omitempty" format:"date-time" example:"2026-11-22T09:30:00Z"`
	// Whether the restore is still under way. How much of it is done, DynamoDB does not say.
	Restoring bool `json:"restoring,omitempty" example:"false"`
	// When the restore was begun.
	Begun string `json:"begun,omitempty" format:"date-time" example:"2026-11-22T10:02:00Z"`
	// How many rows it has, as DynamoDB counts them about every six hours.
	Rows int64 `json:"rows" example:"120000"`
	// How large it is, as DynamoDB counts it about every six hours.
	Bytes int64 `json:"bytes" example:"96000000"`
	// The ARN of its stream, for the setting tableStream. Absent if it has none.
	Stream string `json:"stream,omitempty" example:"arn:aws:dynamodb:…/stream/2026"`
	// Whether it has all that the archive needs, so that the archive can be deployed on it.
	Ready bool `json:"ready" example:"false"`
	// What it lacks, in the order in which it is set. As long as it is being made, that is not known.
	Lacks []TableLack `json:"lacks"`
}

// TableLack is something that a restored table lacks.
type TableLack struct {
	// What it is: time-to-live, recovery, stream, protection or an index.
	What string `json:"what" example:"time-to-live"`
	// What that means, or why it is not known.
	Says string `json:"says" example:"old rows stay for ever"`
	// The command that sets it. Absent if there is none.
	Command string `json:"command,omitempty" example:"aws dynamodb update-table …"`
	// Whether it is not known that it lacks this.
	Unknown bool `json:"unknown,omitempty" example:"false"`
}

// Restores says how far restores of the table are. A table, if it is not "", is the only one that is looked at; it can
// also be one that was made empty.
func (c *Client) Restores(ctx context.Context, table string) (Restores, error) {
	query := ""
	if table != "" {
		query = "?table=" + url.QueryEscape(table)
	}
	return get[Restores](ctx, c, "/v1/restores"+query)
}
