package collection

import (
	"context"

	"archivist/pkg/events/check"
	"archivist/pkg/events/event"
	"archivist/pkg/kernel/table"
)

// Rules are the rules of profiles.
var Rules = check.Rules{Kinds: []check.Kind{{PK: "COLLECTION", SK: "COLLECTION", Rule: checkProfile}}}

// checkProfile checks the history of a profile. A collection without a profile has no row,
// and is not checked. Events by an earlier release are in a partition with the bare name, until they are moved.
func checkProfile(ctx context.Context, x *check.Row) error {
	name := x.ID()
	x.Subject = "collection:" + name
	var moved []event.Row
	_, err := x.Table.Page(ctx, table.Query{PK: name, Prefix: event.Prefix, Limit: 1}, &moved)
	if err != nil || len(moved) > 0 {
		return err
	}
	return x.Numbered(ctx, event.Collection)
}
