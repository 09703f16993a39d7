package revision

import (
	"slices"

	"archivist/pkg/kernel/definition"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/revisions/workflow"
)

// Filter selects instances. The zero value of a field selects all.
type Filter struct {
	Revision int64
	Task     string
	State    workflow.State
}

// Check returns an Invalid for a filter that cannot be, so that a mistake is not an empty list.
func (f Filter) Check() error {
	if f.Revision < 0 || f.Revision > MaxRevision {
		return Notice{Revision: f.Revision}.Check()
	}

	if f.State != "" && !slices.Contains(workflow.States, f.State) {
		return fault.New(fault.Invalid, "state: found %q; expected one of %v",
			definition.Clip(string(f.State), 60),
			workflow.States)
	}

	if f.Task != "" {
		return checkTask(f.Task)
	}
	return nil
}

// selects reports whether an instance has the task and the state of the filter. Its revision is a
// part of the query.
func (f Filter) selects(in Instance) bool {
	return (f.Task == "" || f.Task == in.Task) && (f.State == "" || f.State == in.State)
}
