package workflow

import (
	"fmt"

	"archivist/pkg/kernel/graph"
)

// Names of groups of nodes.
const (
	earlier = "an earlier revision"
	current = "this revision"
)

// Graph is the definition as a graph: the tasks of a revision, and those of earlier ones that they
// wait for or cancel, as far as these are named. That a task waits for COMMIT is shown only if it
// waits for no other task of the revision. Tasks that no commit starts are in it, with a note.
func (d *Definition) Graph() graph.Graph {
	g := graph.Graph{Name: "Tasks of a revision"}
	var here []graph.Node
	before := map[string]bool{}
	prev := func(name string) string {
		if !before[name] {
			before[name] = true
			g.Nodes = append(g.Nodes, graph.Node{ID: Prev + ":" + name, Label: name, Group: earlier,
				Round: name == Commit})
		}
		return Prev + ":" + name
	}

	link := func(task string, e Edge) {
		from := e.Task
		if e.Prev {
			from = prev(e.Task)
		}
		g.Links = append(g.Links,
			graph.Link{From: from, To: task, Kind: graph.Then, Label: e.Condition()})
	}

	// The instances of a revision that has all tasks, by which Implied decides.
	all := []Planned{{Task: Commit,
		Awaits: []Await{{Edge: Edge{Task: Commit, Prev: true, On: Ended}}}}}
	for _, e := range d.Commit {
		all[0].Awaits = append(all[0].Awaits, Await{Edge: e})
	}

	for _, t := range d.Tasks {
		p := Planned{Task: t.Name, Awaits: []Await{{Edge: Edge{Task: Commit, On: Ended}}}}
		for _, e := range t.Depends {
			p.Awaits = append(p.Awaits, Await{Edge: e})
		}
		for _, name := range t.Cancels {
			p.Cancels = append(p.Cancels, Supersedes{Task: name})
		}
		all = append(all, p)
	}

	for _, p := range all {
		here = append(here,
			graph.Node{ID: p.Task, Label: p.Task, Group: current, Note: d.note(p.Task),
				Round: p.Task == Commit})

		for _, a := range p.Awaits {
			if !p.Implied(a) {
				link(p.Task, a.Edge)
			}
		}

		for _, c := range p.Cancels {
			g.Links = append(g.Links,
				graph.Link{From: p.Task, To: prev(c.Task), Kind: graph.Cancels, Label: "cancels"})
		}
	}

	g.Nodes = append(g.Nodes, here...)
	return g
}

// note is what makes a task differ from most.
func (d *Definition) note(name string) string {
	t := d.Task(name)
	switch {
	case t == nil || t.OnCommit && t.Lock == "":
		return ""
	case t.OnCommit:
		return "lock " + t.Lock
	case len(t.Schedules) > 0:
		return "by schedule"
	}
	return "by hand"
}

// Condition is what the edge needs, if it is not what edges usually need; "" if it is.
func (e Edge) Condition() string {
	out := ""
	if e.On != DefaultOn(e.Prev) && e.Task != Commit {
		out = "if " + string(e.On)
	}
	if e.Exact {
		out += " (directly before)"
	}
	return out
}

// PlanGraph is a plan as a graph: the instances of a revision, and those of earlier ones that they
// wait for or cancel. The graphs of several revisions can be put together with Add. An instance's
// id is like "12:index".
func PlanGraph(revision int64, plan []Planned) graph.Graph {
	g := graph.Graph{Name: fmt.Sprintf("Revision %d", revision)}
	id := func(revision int64, task string) string { return fmt.Sprintf("%d:%s", revision, task) }
	node := func(revision int64, task string) string {
		n := graph.Node{ID: id(revision, task), Label: task,
			Group: fmt.Sprintf("revision %d", revision),
			Round: task == Commit}
		g.Add(graph.Graph{Nodes: []graph.Node{n}})
		return n.ID
	}

	for _, p := range plan {
		for _, a := range p.Awaits {
			if a.Revision > 0 && !p.Implied(a) {
				g.Links = append(g.Links,
					graph.Link{From: node(a.Revision, a.Task), To: id(revision, p.Task),
						Kind: graph.Then, Label: a.Edge.Condition()})
			}
		}
		for _, c := range p.Cancels {
			if c.Revision > 0 {
				g.Links = append(g.Links,
					graph.Link{From: id(revision, p.Task), To: node(c.Revision, c.Task),
						Kind: graph.Cancels, Label: "cancels"})
			}
		}
	}

	for _, p := range plan {
		node(revision, p.Task)
	}
	return g
}
