package revisionsim

import (
	"fmt"
	"slices"
	"strings"

	"archivist/pkg/revisions/revision"
	"archivist/pkg/revisions/workflow"
)

// This file says what a revision plans, from its definition alone.

// revisionID is the id of the revision of an instance.
func revisionID(in *revision.Instance) string { return fmt.Sprintf("%s/%d", in.Archive, in.Revision) }

func instanceID(ref string, n int64, task string) string {
	return fmt.Sprintf("%s/%d/%s", ref, n, task)
}

// specOf is the definition of a revision. One that is invalid or was skipped has no tasks.
func (c *checker) specOf(id string) *spec {
	r := c.revisions[id]
	if r == nil || r.is.State == revision.SkippedBy || c.commits[r.is.Transaction] == nil {
		return &spec{}
	}
	s := c.commits[r.is.Transaction].spec
	if s.invalid {
		return &spec{}
	}
	return s
}

// checkRevision compares a revision that is planned with its definition, once, and its numbers always.
func (c *checker) checkRevision(id string) {
	r := c.revisions[id]
	if r == nil || r.is.Planned == 0 {
		return
	}
	if !c.planned[id] {
		c.planned[id] = true
		c.checkPlan(id, r)
	}
	var all, ended int64
	for _, member := range c.members[id] {
		all++
		if over(string(c.instances[member].is.State)) {
			ended++
		}
	}
	if r.all != all || r.over != ended {
		c.fail("revision %s has %d instances, of which %d have ended; its row says %d and %d", id, all, ended, r.all,
			r.over)
	}
}

// checkPlan compares the instances of a revision that was just planned with its definition.
func (c *checker) checkPlan(id string, r *revisionOf) {
	ref, n := r.is.Archive, r.is.Number
	s := c.specOf(id)
	c.w.Met("revision: " + r.is.State)
	if commit := c.commits[r.is.Transaction]; commit != nil && r.is.State != revision.SkippedBy {
		if (r.is.State == revision.Invalid) != commit.spec.invalid {
			c.fail("revision %s is %s; its definition is invalid: %t", id, r.is.State, commit.spec.invalid)
		}
		maker, _, _ := strings.Cut(commit.token, ":")
		if strings.HasPrefix(maker, ref+"/") && r.is.MadeBy == "" {
			c.fail("revision %s was made by %s, and does not say so", id, maker)
		}
	}
	if maker := c.instances[r.is.MadeBy]; maker != nil {
		want := append(slices.Clone(maker.is.Chain), maker.is.Task)
		if !slices.Equal(want, r.is.Chain) {
			c.fail("revision %s was made by %s: its chain is %v; it should be %v", id, r.is.MadeBy, r.is.Chain, want)
		}
	}
	count := 1
	c.checkCommit(ref, n, s)
	for _, t := range s.tasks {
		if t.planned() {
			count++
			c.checkTask(ref, n, s, t, r.is.Chain)
		}
	}
	found := 0
	for _, member := range c.members[id] {
		if c.instances[member].is.Run == 0 {
			found++
		}
	}
	if found != count {
		c.fail("revision %s has the instances %v; its definition plans %d", id, c.members[id], count)
	}
}

// filled reports whether a revision is one of a back-fill.
func (c *checker) filled(ref string, n int64) bool {
	a := c.archives[archiveOf(ref)]
	return a.is.Ref() == ref && n < a.is.First
}

// checkCommit compares COMMIT of a revision with what it waits for.
func (c *checker) checkCommit(ref string, n int64, s *spec) {
	in := c.instances[instanceID(ref, n, workflow.Commit)]
	if in == nil {
		c.fail("revision %s/%d has no COMMIT", ref, n)
		return
	}
	if c.filled(ref, n) {
		return
	}
	want := []string{""}
	if n > c.archives[archiveOf(ref)].is.First {
		want[0] = instanceID(ref, n-1, workflow.Commit)
	}
	for _, name := range s.commit {
		want = append(want, c.awaited(ref, n, s, name))
	}
	c.sameEdges(&in.is, want)
}

// checkTask compares the instance of a task with its definition.
func (c *checker) checkTask(ref string, n int64, s *spec, t *task, chain []string) {
	in := c.instances[instanceID(ref, n, t.name)]
	if in == nil {
		c.fail("revision %s/%d has no instance of %s", ref, n, t.name)
		return
	}
	c.checkSettings(&in.is, s, t)
	want := []string{instanceID(ref, n, workflow.Commit)}
	for _, d := range t.waits {
		switch {
		case !d.prev:
			want = append(want, instanceID(ref, n, d.task))
		case c.filled(ref, n):
			return
		default:
			id := c.awaited(ref, n, s, d.task)
			if d.exact && id != "" && c.instances[id].is.Revision != n-1 {
				id = ""
				c.w.Met("edge: exact, none")
			}
			want = append(want, id)
		}
	}
	c.sameEdges(&in.is, want)
	loops := len(chain) > 0 && chain[len(chain)-1] == t.name ||
		len(chain) > workflow.MaxDepth && slices.Contains(chain, t.name) || len(chain) >= revision.MaxChain
	if loops != strings.HasPrefix(in.is.Reason, "loop: ") {
		c.fail("%s is %s (%s); the chain of its revision is %v", in.is.ID, in.is.State, in.is.Reason, chain)
	}
	if loops {
		c.w.Met("skipped: loop")
	}
}

// checkSettings compares what an instance has of its task.
func (c *checker) checkSettings(in *revision.Instance, s *spec, t *task) {
	latest := slices.Contains(t.cancels, t.name)
	cancels := slices.Clone(t.cancels)
	for _, name := range t.cancels {
		if was := s.task(name).was; was != "" {
			cancels = append(cancels, was)
		}
	}
	slices.Sort(cancels)
	order := fmt.Sprintf("%012d#%03d#%s#%06d", in.Revision, s.place(t)+1, t.name, in.Run)
	if in.Order != order || in.Lock != t.lock || in.LatestOnly != latest || in.Follow != t.follow ||
		in.Uninterruptible != t.fixed || in.AllowFailure != t.mayFail ||
		!slices.Equal(slices.Sorted(slices.Values(in.Cancels)), cancels) {
		c.fail("%s is not as its definition says: %+v; %+v, place %s", in.ID, in, t, order)
	}
}

// place is the longest way from a task without dependencies to a task.
func (s *spec) place(t *task) (n int) {
	for _, d := range t.waits {
		if !d.prev {
			n = max(n, s.place(s.task(d.task))+1)
		}
	}
	return n
}

// awaited is the nearest instance of a task by its name or, if that is nearer, its former one.
func (c *checker) awaited(ref string, n int64, s *spec, name string) string {
	id, was := c.nearest(ref, n, name), s.task(name).was
	if was == "" {
		return id
	}
	former := c.nearest(ref, n, was)
	if former == "" || id != "" && c.instances[id].is.Revision >= c.instances[former].is.Revision {
		return id
	}
	c.w.Met("edge: on the former name")
	return former
}

// nearest is the instance of a task in the nearest earlier revision that has planned it, "" for none. A revision of a
// back-fill can be half planned: what it has planned is waited for, since the rest follows.
func (c *checker) nearest(ref string, n int64, name string) string {
	for n--; n > 0; n-- {
		id, in := instanceID(ref, n, name), fmt.Sprintf("%s/%d", ref, n)
		half := c.revisions[in] != nil && c.revisions[in].is.State == revision.Planning
		if c.instances[id] != nil && (c.planned[in] || half) {
			return id
		}
	}
	return ""
}

// sameEdges compares what an instance awaits.
func (c *checker) sameEdges(in *revision.Instance, want []string) {
	var got []string
	for _, e := range in.Edges {
		got = append(got, e.ID)
		c.w.Met("edge planned: " + string(e.Verdict))
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		c.fail("%s waits for %q; by its definition, for %q", in.ID, got, want)
	}
}

// satisfied reports whether an edge lets its instance go on, by the end of what it awaits.
func (c *checker) satisfied(e revision.Awaits) bool {
	if e.ID == "" {
		return true
	}
	awaited := c.instances[e.ID]
	if awaited == nil {
		return false
	}
	state := string(awaited.is.State)
	switch {
	case !over(state):
		return false
	case e.Task == workflow.Commit:
		return true
	case e.Verdict == "healed":
		c.w.Met("edge healed")
		return e.Prev && e.On == "succeeded" && c.succeededSince(&awaited.is)
	}
	switch e.On {
	case "ended":
		return true
	case "succeeded", "failed":
		return state == string(e.On)
	case "finished":
		c.w.Met("edge: on one that may fail, " + state)
		return state == "succeeded" || state == "failed"
	}
	return false
}

// succeededSince reports whether a run of a task has succeeded, at the revision of an instance that has not or at a
// later one.
func (c *checker) succeededSince(in *revision.Instance) bool {
	for _, other := range c.instances {
		o := &other.is
		if o.Archive == in.Archive && o.Task == in.Task && o.Revision >= in.Revision && o.ID != in.ID &&
			string(o.State) == "succeeded" {
			return true
		}
	}
	return false
}

// awaitsAsDefined checks that the edges have the conditions of the definition.
func (c *checker) awaitsAsDefined(in *revision.Instance, t *task) {
	var got, want []string
	s := c.specOf(revisionID(in))
	for _, e := range in.Edges[1:] {
		name := e.Task
		for _, other := range s.tasks {
			if e.Prev && name == other.was {
				name = other.name
			}
		}
		got = append(got, fmt.Sprint(name, " ", e.Prev, " ", e.On))
	}
	for _, d := range t.waits {
		want = append(want, fmt.Sprint(d.task, " ", d.prev, " ", d.needs()))
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		c.fail("%s waits for %q; by its definition, for %q", in.ID, got, want)
	}
}

// hasStarted reports whether an instance has ever started that counts for a task: it has its name, or had it.
func (c *checker) hasStarted(o *revision.Instance, ref, name string) bool {
	return o.Archive == ref && o.Exec != "" && (o.Task == name || c.taskOf(o).was == name)
}

// newest is the highest revision in which a task has started, under its name or a later one.
func (c *checker) newest(ref, name string) (n int64) {
	for _, in := range c.instances {
		if c.hasStarted(&in.is, ref, name) {
			n = max(n, in.is.Revision)
		}
	}
	return n
}

// overtakes reports whether an instance is not to start because a newer one has.
func (c *checker) overtakes(by, in *revision.Instance) bool {
	c.w.Met("superseded: overtaken")
	if !by.LatestOnly {
		c.w.Met("superseded: overtaken by one of which each is wanted")
	}
	if by.Task != in.Task {
		c.w.Met("superseded: overtaken by one with another name")
	}
	return in.LatestOnly && !in.Force && by.Revision > in.Revision && c.hasStarted(by, in.Archive, in.Task)
}
