package doctor

import (
	"context"
	"strings"

	"archivist/pkg/event"
	"archivist/pkg/table"
)

// revisionKinds are the kinds of rows of the revision queue.
var revisionKinds = []kind{
	{pk: "ARCHIVE", sk: "ARCHIVE", check: checkQueued(event.Archive)},
	{pk: "ARCHIVE", sk: "WAKE"},
	{pk: "REVISION", sk: "REVISION", check: checkQueued(event.Revision)},
	{pk: "TASK", sk: "TASK", check: checkQueued(event.Task)},
	{pk: "TASK", sk: "WAITER#"},
	{pk: "WORKFLOW"},
	{pk: "TASKNAMES"},
	{pk: "TASKLIVE"},
	{pk: "TASKLOCK"},
	{pk: "TASKLINE"},
	{pk: "TASKRUNS", expires: true},
}

// checkQueued checks the history of an archive, a revision or an instance.
func checkQueued(of event.Type) func(context.Context, *rowCheck) error {
	return func(ctx context.Context, x *rowCheck) error {
		var row struct {
			table.Head
			Number int64 `dynamo:"version"`
		}
		if !x.decode(&row) {
			return nil
		}
		_, id, _ := strings.Cut(x.PK, "#")
		x.subject = strings.ToLower(of.String()) + ":" + id
		return x.history(ctx, subjectOf(of, id), row.Number, "")
	}
}
