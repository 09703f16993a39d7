package revisionsim

import (
	"maps"
	"slices"
	"strings"

	"archivist/pkg/revisions/revision"
	"archivist/pkg/revisions/workflow"
)

// checkFollow checks, when a run is settled that is followed by its dependents, that all are run that can be: what
// waited for its task, has not done its work, and has all that it needs by now. What cannot be is named in its row, and
// what waits for another run is not looked at: that comes when it is settled.
func (c *checker) checkFollow(run *revision.Instance) {
	c.w.Met("run with dependents: " + string(run.State))
	a := c.archives[archiveOf(run.ID)].is
	if a.Ref() != run.Archive || a.Mode == revision.Deleting ||
		run.State != workflow.Success && run.State != workflow.Failure {
		return
	}
	on := instanceID(run.Archive, run.Revision, run.Task)
	for _, id := range slices.Sorted(maps.Keys(c.instances)) {
		in := &c.instances[id].is
		waited := slices.ContainsFunc(in.Edges, func(e revision.Awaits) bool { return e.ID == on })
		if !waited || in.Archive != run.Archive || in.Revision < run.Revision || !c.stalled(in) {
			continue
		}
		again := c.revisions[revisionID(in)].is.Again[in.Task]
		if again != "" && c.instances[again].is.After == run.ID {
			c.w.Met("run with dependents: followed")
			continue
		}
		if !c.can(in) {
			continue
		}
		if !slices.ContainsFunc(run.Left, func(why string) bool { return strings.HasPrefix(why, id+" ") }) {
			c.fail("%s is settled, and %s, which waited for it and has all that it needs, is not run", run.ID, id)
		}
		c.w.Met("run with dependents: not followed, with the reason")
	}
}

// causes are the planned instances of an archive because of which others were skipped.
func (c *checker) causes(name string) (ids []string) {
	for _, id := range slices.Sorted(maps.Keys(c.instances)) {
		in := &c.instances[id].is
		if in.Archive != c.archives[name].is.Ref() || !c.stalled(in) || c.instances[in.Root] == nil {
			continue
		}
		if root := &c.instances[in.Root].is; root.Run == 0 && root.State != workflow.Success {
			ids = append(ids, in.Root)
		}
	}
	return slices.Compact(slices.Sorted(slices.Values(ids)))
}

// stalled reports whether a planned instance has not done its work, nor a run of it since.
func (c *checker) stalled(in *revision.Instance) bool {
	failed := in.State == workflow.Failure || in.State == workflow.Skipped && in.Root != ""
	return in.Run == 0 && in.Task != workflow.Commit && failed && c.revisions[revisionID(in)].is.Healed[in.Task] == ""
}

// can reports whether a stalled instance has all that it needs, and neither it nor what it needs is being run again.
func (c *checker) can(in *revision.Instance) bool {
	if c.rerunning(in) {
		return false
	}
	for _, e := range in.Edges {
		if e.ID == "" || e.Task == workflow.Commit {
			continue
		}
		on := &c.instances[e.ID].is
		end := string(on.State)
		if c.revisions[revisionID(on)].is.Healed[on.Task] != "" {
			end = "succeeded"
		}
		finished := e.On == workflow.Finished && (end == "succeeded" || end == "failed")
		if string(e.On) != end && e.On != workflow.Ended && !finished || c.rerunning(on) {
			return false
		}
	}
	return true
}

// rerunning reports whether a planned instance is being run again with its dependents: until that is settled.
func (c *checker) rerunning(in *revision.Instance) bool {
	again := c.revisions[revisionID(in)].is.Again[in.Task]
	return again != "" && !c.instances[again].is.Settled
}

// checkAfter checks a run that follows another: that has ended, and is followed by it once.
func (c *checker) checkAfter(in *revision.Instance) {
	after := c.instances[in.After]
	if after == nil || !over(string(after.is.State)) || !after.is.Dependents || !in.Dependents {
		c.fail("%s follows %s, which has not ended, or is not to be followed", in.ID, in.After)
		return
	}
	for _, id := range c.members[revisionID(in)] {
		if o := &c.instances[id].is; o.ID != in.ID && o.Task == in.Task && o.After == in.After {
			c.fail("%s and %s both follow %s", in.ID, id, in.After)
		}
	}
}
