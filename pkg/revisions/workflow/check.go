package workflow

import (
	"maps"
	"slices"
	"strings"
)

// check finds what is wrong between tasks, and sets their places. What is wrong with a task by
// itself is known already.
func (p *parsing) check() {
	p.names()
	names := slices.Sorted(maps.Keys(p.byName))
	for _, d := range p.drafts {
		d.resolve()
		for i, e := range d.task.Depends {
			p.edge(d, e, d.depends[i], names)
		}
		p.cancels(d, names)
		p.handed(d)
		p.former(d)
		d.follows()
	}

	p.places()
	for _, d := range p.drafts {
		d.fits()
	}
}

// fits checks the size of the task as it is given to a runner, which is known only when all is
// filled in.
func (d *draft) fits() {
	if size := len(asJSON(d.task)); size > MaxTask {
		d.refuse("name",
			"the task has %d bytes as JSON, with what is filled in; at most %d are accepted; keep long "+
				"scripts and values in files of the archive", size, MaxTask)
	}
}

// names notes tasks by name. Of a name that is there twice, the first counts. The number of tasks
// is checked here, without COMMIT.
func (p *parsing) names() {
	for _, d := range p.drafts {
		name := d.task.Name
		first, twice := p.byName[name]
		switch {
		case name == Prev:
			d.refuse("name", "name: %s is this task in the previous revision", Prev)
		case twice:
			d.refuse("name", "name: %s is already defined at %s", name,
				first.source.place(first.at))
		default:
			p.byName[name] = d
		}
	}

	tasks := len(p.byName)
	if p.byName[Commit] != nil {
		tasks--
	}

	if last := len(p.drafts) - 1; tasks > MaxTasks {
		p.drafts[last].refuse("name", "more than %d tasks", MaxTasks)
	}
}

// edge checks one dependency. What is refused would wait for ever, for nothing, or for itself: in
// particular, a task that commits start cannot wait for one that they do not, and COMMIT only for
// ends of earlier revisions.
func (p *parsing) edge(d *draft, e Edge, at *node, names []string) {
	on := p.byName[e.Task]
	refuse := func(format string, args ...any) { d.source.refuse(at, "depends: "+format, args...) }
	switch {
	case on == nil:
		refuse("there is no task %q%s", clip(e.Task), suggestTask(e.Task, names))
	case !e.Prev && on == d:
		refuse("%s would wait for itself; %s is this task in the previous revision", e.Task, Prev)
	case !e.Prev && d.task.Name == Commit:
		refuse("every task of a revision waits for %s; it can wait only for those of earlier ones, such as %s:%s",
			Commit, Prev, e.Task)
	case d.task.Name == Commit && e.On != Ended:
		refuse(
			"%s waits for any end, so that nothing stops an archive for ever; write no condition",
			Commit)
	// It would wait for the end of what it cancels only when it need not wait any more.
	case e.Prev && slices.Contains(d.task.Cancels, e.Task):
		refuse("%s: the task cannot both wait for earlier ones of %s and cancel them", e, e.Task)
	case !on.task.OnCommit && (d.task.OnCommit || d.task.Name == Commit):
		refuse("%s: commits do not start %s, so revisions do not have it", e, e.Task)
	}
}

// cancels checks what a task cancels: tasks of this definition, but not COMMIT.
func (p *parsing) cancels(d *draft, names []string) {
	for i, name := range d.task.Cancels {
		switch {
		case name == Commit:
			d.source.refuse(d.cancels[i], "cancels: %s cannot be cancelled", Commit)
		case p.byName[name] == nil:
			d.source.refuse(d.cancels[i], "cancels: there is no task %q%s", clip(name),
				suggestTask(name, names))
		}
	}
}

// former checks the former name of a task: it is no other task's name, present or former, so that
// PREV is never two.
func (p *parsing) former(d *draft) {
	was := d.task.Was
	if was == "" || was == d.task.Name {
		return
	}

	if was == Commit || was == Prev {
		d.refuse("was", "was: %s is no task that can have another name", was)
	}

	if other := p.byName[was]; other != nil {
		d.refuse("was", "was: %s is another task, at %s", was, other.source.place(other.at))
	}

	// Of two tasks with the same former name, the second is the problem.
	for _, other := range p.drafts {
		if other == d {
			return
		}
		if other.task.Was == was {
			d.refuse("was", "was: %s is also the former name of %s, at %s", was, other.task.Name,
				other.source.place(other.at))
			return
		}
	}
}

// follows checks that there is something to follow.
func (d *draft) follows() {
	if d.task.Follow && !slices.ContainsFunc(d.task.Depends, func(e Edge) bool { return !e.Prev }) {
		d.refuse("follow",
			"follow: the task depends on no other of its revision, so there is nothing to follow")
	}
}

// places sets the place of each task, and reports cycles, each once and with its way. The tasks of
// a cycle are then left out, so that the next one is found; this ends, since each step takes at
// least one task.
func (p *parsing) places() {
	left := map[string]*draft{} // tasks without place
	for name, d := range p.byName {
		if name != Commit {
			left[name] = d
		}
	}

	for len(left) > 0 {
		if p.placed(left) {
			continue
		}

		cycle := p.cycle(left)
		first := left[cycle[0]]
		at := slices.IndexFunc(first.task.Depends,
			func(e Edge) bool { return !e.Prev && e.Task == cycle[1] })
		first.source.refuse(first.depends[at], "depends: a cycle: %s", strings.Join(cycle, " → "))
		for _, name := range cycle[1:] {
			delete(left, name)
		}
	}
}

// placed gives tasks their places that wait for none without one, and reports whether there were
// any.
func (p *parsing) placed(left map[string]*draft) bool {
	any := false
	for _, name := range slices.Sorted(maps.Keys(left)) {
		d := left[name]
		if p.waits(d, left) != "" {
			continue
		}

		for _, e := range d.task.Depends {
			if on := p.byName[e.Task]; !e.Prev && on != nil {
				d.task.Place = max(d.task.Place, on.task.Place+1)
			}
		}

		delete(left, name)
		any = true
	}
	return any
}

// waits is the first task without place that a task waits for, "" if there is none. A task that
// waits for itself is reported elsewhere.
func (p *parsing) waits(d *draft, left map[string]*draft) string {
	least := ""
	for _, e := range d.task.Depends {
		if !e.Prev && left[e.Task] != nil && e.Task != d.task.Name &&
			(least == "" || e.Task < least) {
			least = e.Task
		}
	}
	return least
}

// cycle is a cycle among tasks that all wait for another of them: names, the last being the first.
// The way begins with the first name, and always takes the least next one: so the message is the
// same each time.
func (p *parsing) cycle(left map[string]*draft) []string {
	way := []string{slices.Sorted(maps.Keys(left))[0]}
	for {
		next := p.waits(left[way[len(way)-1]], left)
		if i := slices.Index(way, next); i >= 0 {
			return append(way[i:], next)
		}
		way = append(way, next)
	}
}
