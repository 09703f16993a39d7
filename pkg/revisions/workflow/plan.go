package workflow

import (
	"fmt"
	"slices"
)

// Planned is an instance that a commit plans, and what it has to do with others. It is for people:
// it says why. Package revision makes its edges itself, by the same rules, since it knows the
// states of others.
type Planned struct {
	Task string `json:"task"`

	// Every instance waits for COMMIT; COMMIT for the one before.
	Awaits  []Await      `json:"awaits"`
	Cancels []Supersedes `json:"cancels,omitempty"`
}

// Await is an edge of an instance, with the instance that it is on.
type Await struct {
	Edge Edge `json:"edge"`

	// The name of the instance: the former one, if the task was renamed.
	Task     string `json:"task"`
	Revision int64  `json:"revision,omitempty"` // 0: there is none, so the edge is satisfied
	Why      string `json:"why"`
}

// Supersedes is a task whose unfinished instances of earlier revisions are superseded.
type Supersedes struct {
	Task     string `json:"task"`
	Revision int64  `json:"revision,omitempty"` // the nearest; 0: there is none
	Why      string `json:"why"`
}

// Plan is what a commit of a revision plans: COMMIT, then the tasks that commits start, each behind
// those of the revision that it waits for. prev is the nearest earlier revision that has planned a
// task of that name, if there is one; it is asked for present and former names, and for COMMIT.
func Plan(d *Definition, revision int64,
	prev func(task string) (revision int64, ok bool)) []Planned {
	p := planning{d, revision, prev}
	first := Planned{Task: Commit}
	for _, e := range append([]Edge{{Task: Commit, Prev: true, On: Ended}}, d.Commit...) {
		first.Awaits = append(first.Awaits, p.await(Commit, e))
	}

	all := []Planned{first}
	for _, t := range d.Tasks {
		if !t.OnCommit {
			continue
		}

		planned := Planned{Task: t.Name}
		for _, e := range append([]Edge{{Task: Commit, On: Ended}}, t.Depends...) {
			planned.Awaits = append(planned.Awaits, p.await(t.Name, e))
		}

		for _, name := range t.Cancels {
			planned.Cancels = append(planned.Cancels, p.supersedes(name))
		}

		all = append(all, planned)
	}
	return all
}

// planning is a plan that is being made.
type planning struct {
	definition *Definition
	revision   int64
	prev       func(string) (int64, bool)
}

// nearest is the nearest earlier instance of a task, by its name or its former one: if both are in
// the same revision, by its present name. 0: there is none.
func (p planning) nearest(task string) (name string, revision int64) {
	names := []string{task}
	if t := p.definition.Task(task); t != nil && t.Was != "" {
		names = append(names, t.Was)
	}

	name = task
	for _, n := range names {
		if r, ok := p.prev(n); ok && r > revision {
			name, revision = n, r
		}
	}
	return name, revision
}

// await finds the instance that an edge of a task is on, and says why it is waited for. Exact
// counts only the revision directly before.
func (p planning) await(task string, e Edge) Await {
	if !e.Prev {
		return Await{Edge: e, Task: e.Task, Revision: p.revision, Why: p.here(e)}
	}

	name, at := p.nearest(e.Task)
	a := Await{Edge: e, Task: name, Revision: at}
	switch {
	case at == 0:
		a.Why = fmt.Sprintf(
			"no earlier revision has planned %s, so there is nothing to wait for", e.Task)
	case e.Exact && at != p.revision-1:
		a.Task, a.Revision = e.Task, 0
		a.Why = fmt.Sprintf(
			"revision %d, directly before, has not planned %s, so there is nothing to wait for",
			p.revision-1, e.Task)
	case task == Commit && e.Task == Commit:
		a.Why = fmt.Sprintf(
			"revisions are in the order of their commits: this one comes after %d", at)
	default:
		a.Why = fmt.Sprintf("%s of revision %d, the nearest that has planned it, must %s first%s",
			name, at, ends[e.On],
			renamed(name, e.Task))
	}
	return a
}

// here says why an instance waits for another of its revision.
func (p planning) here(e Edge) string {
	on := p.definition.Task(e.Task)
	switch {
	case e.Task == Commit:
		return fmt.Sprintf("every task of revision %d waits until the commit is complete",
			p.revision)
	case on != nil && len(on.Paths) > 0:
		return fmt.Sprintf(
			"%s of this revision must %s first, if the revision changes a path that it is for",
			e.Task,
			ends[e.On])
	}
	return fmt.Sprintf("%s of this revision must %s first", e.Task, ends[e.On])
}

// supersedes finds what a task supersedes.
func (p planning) supersedes(task string) Supersedes {
	name, at := p.nearest(task)
	v := Supersedes{Task: name, Revision: at}
	if at == 0 {
		v.Why = fmt.Sprintf(
			"no earlier revision has planned %s, so there is nothing to cancel", task)
		return v
	}

	v.Why = fmt.Sprintf(
		"once it can start, %s of revision %d and earlier is superseded, unless it has ended%s",
		name,
		at, renamed(name, task))
	if t := p.definition.Task(task); t != nil && t.Uninterruptible {
		v.Why += "; while it runs, it may finish"
	}
	return v
}

// ends say what an edge waits for.
var ends = map[On]string{Succeeded: "succeed", Ended: "end", Failed: "fail", Finished: "succeed or fail"}

// renamed adds that a task has another name by now.
func renamed(name, now string) string {
	if name == now {
		return ""
	}
	return fmt.Sprintf(" (its name now is %s)", now)
}

// Implied reports whether an await needs no mention, because another one of the instance waits for
// it in turn: that on COMMIT, if the instance waits for another task of its revision.
func (p Planned) Implied(a Await) bool {
	return a.Edge.Task == Commit && !a.Edge.Prev &&
		slices.ContainsFunc(p.Awaits, func(other Await) bool {
			return !other.Edge.Prev && other.Edge.Task != Commit
		})
}
