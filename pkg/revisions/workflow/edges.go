package workflow

import (
	"slices"
	"strings"
)

// Scopes of dependencies on earlier revisions, as they are written.
const (
	scopeNearest = "nearest"
	scopeExact   = "exact"
)

// readDepends reads the dependencies of a task: texts such as PREV:name, or mappings with a
// condition. The nodes are kept beside them (d.depends), for what is found out later.
func (d *draft) readDepends(n *node) {
	for _, v := range d.source.entries("depends", n, MaxDepends) {
		e := Edge{}
		// The nodes are read when it is known whether the dependency is on an earlier revision.
		on, scope, ok := (*node)(nil), (*node)(nil), true
		if v.kind == mapping {
			ok = d.source.fields("depends", v, map[string]func(*node){
				"task":  func(v *node) { e.Task = d.source.text("task", v, maxText) },
				"on":    func(v *node) { on = v },
				"scope": func(v *node) { scope = v },
			})
			if !slices.ContainsFunc(v.keys, func(k *node) bool { return k.text == "task" }) {
				d.source.refuse(v, "depends: task is missing")
			}
		} else {
			e.Task = d.source.text("depends", v, maxText)
		}

		if name, prev := strings.CutPrefix(e.Task, Prev+":"); prev {
			e.Task, e.Prev = name, true
			if name == "" {
				d.source.refuse(v, "depends: %s: a name is missing after it", Prev+":")
				continue
			}
		}

		if !ok || e.Task == "" {
			continue
		}

		d.condition(&e, on, scope)
		d.task.Depends, d.depends = append(d.task.Depends, e), append(d.depends, v)
	}
}

// condition sets what an edge waits for. PREV without a name stays the task of the edge until the
// task's own name is known: the key name may come behind this one.
func (d *draft) condition(e *Edge, on, scope *node) {
	earlier := e.Prev || e.Task == Prev
	e.On = DefaultOn(earlier)
	if on != nil {
		e.On = On(d.source.choice("on", on, string(Succeeded), string(Ended), string(Failed)))
	}

	if scope == nil {
		return
	}

	if !earlier {
		d.source.refuse(scope, "scope is for tasks of earlier revisions, such as %s or %s:%s", Prev,
			Prev, clip(e.Task))
		return
	}

	e.Exact = d.source.choice("scope", scope, scopeNearest, scopeExact) == scopeExact
}

// readCancels reads which tasks the task cancels. It is always those of earlier revisions, so PREV:
// before a name would say nothing, and is refused.
func (d *draft) readCancels(n *node) {
	for _, v := range d.source.entries("cancels", n, MaxCancels) {
		name := d.source.text("cancels", v, maxText)
		if name == "" {
			continue
		}

		if other, prev := strings.CutPrefix(name, Prev+":"); prev {
			d.source.refuse(v, "cancels: %s: write %s; it is always the task of earlier revisions",
				clip(name),
				clip(other))
			continue
		}

		d.task.Cancels, d.cancels = append(d.task.Cancels, name), append(d.cancels, v)
	}
}

// resolve puts the task's name for PREV, and leaves out the edges that every task has. What is
// there twice is a problem: one of the two is not what was meant.
func (d *draft) resolve() {
	var edges []Edge
	var at []*node
	for i, e := range d.task.Depends {
		// PREV alone is the task itself.
		if e.Task == Prev {
			e.Task, e.Prev = d.task.Name, true
		}

		// Every task has this edge, so it is not kept: equal definitions are to be equal.
		if e.Task == Commit && (e.Prev || d.task.Name != Commit) {
			if e.On != DefaultOn(e.Prev) || e.Exact {
				d.source.refuse(d.depends[i],
					"depends: %s: every task waits for its end; write no condition", e)
			}
			continue
		}

		if slices.ContainsFunc(edges,
			func(other Edge) bool { return other.Task == e.Task && other.Prev == e.Prev }) {
			d.source.refuse(d.depends[i], "depends: %s is there twice", clip(e.String()))
			continue
		}

		edges, at = append(edges, e), append(at, d.depends[i])
	}

	d.task.Depends, d.depends = edges, at
	var cancels []string
	for i, name := range d.task.Cancels {
		if name == Prev {
			name = d.task.Name
		}
		if slices.Contains(cancels, name) {
			d.source.refuse(d.cancels[i], "cancels: %s is there twice", clip(name))
		}
		cancels = append(cancels, name)
	}

	d.task.Cancels = cancels
}

// readInputs reads the dependencies whose outputs the task gets.
func (d *draft) readInputs(n *node) {
	for _, v := range d.source.entries("inputs", n, MaxDepends) {
		name := d.source.text("inputs", v, maxText)
		if name != "" {
			d.task.Inputs, d.inputs = append(d.task.Inputs, name), append(d.inputs, v)
		}
	}
}

// handed checks the inputs: each is a dependency of the task. What no commit starts waits for
// nothing, so it gets outputs of tasks of its revision only, which its run is refused without.
func (p *parsing) handed(d *draft) {
	t := &d.task
	for i, name := range t.Inputs {
		if name == Prev {
			name = Prev + ":" + t.Name
		}

		refuse := func(format string, args ...any) { d.source.refuse(d.inputs[i], "inputs: "+format, args...) }
		at := slices.IndexFunc(t.Depends, func(e Edge) bool { return e.String() == name })
		switch {
		case at < 0:
			refuse("%s is not in depends", clip(name))
		case slices.Contains(t.Inputs[:i], name):
			refuse("%s is there twice", clip(name))
		case len(t.Schedules) > 0:
			refuse("a run by schedule waits for no other task, so their outputs may not be there")
		case !t.OnCommit && (t.Depends[at].Prev || !p.commits(t.Depends[at].Task)):
			refuse("%s: commits do not start this task, so it gets outputs only of tasks of its revision that they "+
				"start", clip(name))
		}
		t.Inputs[i] = name
	}
}

// commits reports whether commits start a task, or there is none.
func (p *parsing) commits(task string) bool {
	d := p.byName[task]
	return d == nil || d.task.OnCommit
}

// allow lets the edges within the revision go on that are on the success of tasks that may fail.
func (p *parsing) allow(t *Task) {
	for i, e := range t.Depends {
		if on := p.byName[e.Task]; !e.Prev && e.On == Succeeded && on != nil && on.task.AllowFailure {
			t.Depends[i].On = Finished
		}
	}
}
