package api

import (
	"cmp"
	"strings"

	v1 "archivist/pkg/api/v1"
	"archivist/pkg/revisions/revision"
	"archivist/pkg/revisions/workflow"
)

// wireTask is the wire form of a task, as tasks, revisions and archives show it. Archive is the name
// without its epoch, which the id has.
func wireTask(in revision.Instance) v1.Task {
	id, _ := revision.ParseID(in.ID)
	name, _, _ := strings.Cut(id.Ref, "@")
	out := v1.Task{
		ID:              in.ID,
		Archive:         name,
		Revision:        in.Revision,
		Name:            in.Task,
		Run:             in.Run,
		Trigger:         in.Trigger,
		State:           string(in.State),
		Since:           timestamp(in.Since),
		Created:         timestamp(in.Created),
		Reason:          in.Reason,
		Root:            in.Root,
		By:              in.By,
		Told:            in.StopRequested,
		Edges:           []v1.TaskEdge{},
		Cancels:         in.Cancels,
		Lock:            in.Lock,
		Manual:          in.Manual,
		Starter:         in.Starter,
		Parameters:      in.Parameters,
		Inputs:          each(in.Inputs, func(i revision.Input) v1.TaskInputs { return v1.TaskInputs(i) }),
		AllowFailure:    in.AllowFailure,
		Uninterruptible: in.Uninterruptible,
		WithDependents:  in.Dependents,
		After:           in.After,
		Left:            in.Left,
		Attempt:         in.Attempt,
		Base:            in.Base,
	}

	for _, e := range in.Edges {
		out.Edges = append(out.Edges, v1.TaskEdge{
			Task:    e.Task,
			Prev:    e.Prev,
			On:      string(e.On),
			ID:      e.ID,
			Verdict: verdictOf(e.Verdict),
			End:     string(e.End),
			By:      e.By,
		})
	}
	return out
}

// verdictOf is the verdict of an edge as it is shown. An edge that is not judged yet is "open".
func verdictOf(v workflow.Verdict) string { return cmp.Or(string(v), "open") }
