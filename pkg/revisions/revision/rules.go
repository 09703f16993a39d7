package revision

import (
	"context"

	"archivist/pkg/events/check"
	"archivist/pkg/events/event"
)

// Rules are the rules of the revision queue. They compute from scratch what rows should say.
func Rules(pg *check.Page) check.Rules {
	s := &Store{Table: pg.Table, Now: pg.Now, NewID: pg.NewID, Times: Default}
	// A rule of the rows of a kind; id is that of their partition.
	rule := func(f func(x *exam, id string) error) func(context.Context, *check.Row) error {
		return func(ctx context.Context, row *check.Row) error {
			return f(&exam{Store: s, Row: row, ctx: ctx}, row.ID())
		}
	}

	// A rule of the rows of subjects.
	of := func(t event.Type, name string, f func(x *exam, id string) error) func(context.Context, *check.Row) error {
		return check.WithHistory(t, name, rule(f))
	}

	return check.Rules{Kinds: []check.Kind{
		{PK: "ARCHIVE", SK: "ARCHIVE", Rule: of(event.Archive, "archive", (*exam).archive)},
		{PK: "ARCHIVE", SK: "WAKE", Rule: rule((*exam).wakes)},
		{PK: "ARCHIVEOF", Rule: rule((*exam).object)},
		{PK: "REVISION", SK: "REVISION", Rule: of(event.Revision, "revision", (*exam).revision)},
		{PK: "TASK", SK: "TASK", Rule: rule((*exam).instance)},
		{PK: "TASK", SK: "WAITER#", Rule: rule((*exam).waiter)},
		{PK: "WORKFLOW", Rule: rule((*exam).definition)},
		{PK: "TASKNAMES", Rule: rule((*exam).name)},
		{PK: "TASKLIVE", Rule: rule((*exam).line)},
		{PK: "TASKTIMED", Rule: rule((*exam).line)},
		{PK: "TASKCANCEL", Rule: rule((*exam).line)},
		{PK: "TASKLOCK", Rule: rule((*exam).lock)},
		{PK: "TASKLINE", Rule: rule((*exam).line)},
		{PK: "TASKRUNS", Expires: true, Rule: rule((*exam).run)},
	}}
}
