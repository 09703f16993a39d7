package doctor

import (
	"context"
	"encoding/json"
	"strconv"
	"strings"

	"archivist/pkg/events/event"
	"archivist/pkg/kernel/table"
	"archivist/pkg/revisions/revision"
)

// revisionKinds are the kinds of rows of the revision queue. Their rules are in package
// revision (Examine), beside the code that writes them.
var revisionKinds = []kind{
	{pk: "ARCHIVE", sk: "ARCHIVE", check: checkQueued(event.Archive)},
	{pk: "ARCHIVE", sk: "WAKE", check: checkRevisionDue},
	{pk: "ARCHIVEOF", check: checkRevision},
	{pk: "REVISION", sk: "REVISION", check: checkQueued(event.Revision)},
	{pk: "TASK", sk: "TASK", check: checkQueued(event.Task)},
	{pk: "TASK", sk: "WAITER#", check: checkRevision},
	{pk: "WORKFLOW", check: checkRevision},
	{pk: "TASKNAMES", check: checkRevision},
	{pk: "TASKLIVE", check: checkRevision},
	{pk: "TASKTIMED", check: checkRevision},
	{pk: "TASKCANCEL", check: checkRevision},
	{pk: "TASKLOCK", check: checkRevision},
	{pk: "TASKLINE", check: checkRevisionDue},
	{pk: "TASKRUNS", expires: true, check: checkRevision},
}

// checkQueued checks an archive, a revision or an instance, and its history. Events of
// archives and revisions name no state; only that of an instance is compared.
func checkQueued(of event.Type) func(context.Context, *rowCheck) error {
	return func(ctx context.Context, x *rowCheck) error {
		var row struct {
			table.Head
			Number   int64  `dynamo:"version"`
			Instance string `dynamo:"instance_json"`
		}

		if !x.decode(&row) {
			return nil
		}

		_, id, _ := strings.Cut(x.PK, "#")
		x.subject = strings.ToLower(of.String()) + ":" + id
		var in struct{ State string } // only instances have it
		if row.Instance != "" && json.Unmarshal([]byte(row.Instance), &in) != nil {
			in.State = "" // its own check says that it cannot be read
		}

		err := x.history(ctx, subjectOf(of, id), row.Number, in.State)
		if err != nil {
			return err
		}
		return checkRevision(ctx, x)
	}
}

// checkRevision checks a row by the rules of the revision queue. The repair of a rule is
// conditioned on the rows that the rule has read.
func checkRevision(ctx context.Context, x *rowCheck) error {
	s := &revision.Store{
		Table: x.Queue.Table,
		Now:   x.Queue.Now,
		NewID: x.Queue.NewID,
		Times: revision.Default,
	}

	wrong, err := s.Examine(ctx, x.Raw)
	for _, w := range wrong {
		x.add(revisionFinding(w), revisionCommand(w), w.Repair, "%s", w.What)
	}
	return err
}

func revisionFinding(w revision.Wrong) string { return "revision-" + string(w.Rule) }

// revisionCommand is what a person does about what cannot be repaired. An instance whose
// attempt, lock or edges are wrong is cancelled, which gives back what it has: what it did
// cannot be told, but its task can run again.
func revisionCommand(w revision.Wrong) string {
	switch {
	case w.Repair != nil:
		return ""
	case w.Rule == revision.RuleAttempt, w.Rule == revision.RuleLock, w.Rule == revision.RuleEdges:
		return "cancel the instance, and run its task again"
	}
	return restoreRow
}

// checkRevisionDue checks that passes do what is due. The time, in milliseconds since 1970,
// begins the sort key: that of the index work for the row that wakes an archive, that of the
// table after "due#" for a place in a line.
func checkRevisionDue(ctx context.Context, x *rowCheck) error {
	var row table.Head
	if !x.decode(&row) {
		return nil
	}

	// Where the time is depends on the kind of row.
	at := ""
	if x.SK == "WAKE" {
		at, _, _ = strings.Cut(row.WorkSK, "#")
	} else if rest, is := strings.CutPrefix(x.SK, "due#"); is {
		at, _, _ = strings.Cut(rest, "#")
	}

	due, _ := strconv.ParseInt(at, 10, 64) // 0: it has no time
	if x.late(due, "") {
		x.add("overdue", "look at the function revisions: it runs each minute", nil,
			"it is due since %d", due)
	}
	return checkRevision(ctx, x)
}
