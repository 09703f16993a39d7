package revisionsim

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"archivist/pkg/revisions/revision"
	"archivist/pkg/revisions/workflow"
)

// follows are the states that can follow each.
var follows = map[string][]string{
	"":           {"blocked", "manual", "ready", "awaiting", "succeeded", "skipped"},
	"blocked":    {"manual", "awaiting", "ready", "cancelled", "superseded", "skipped", "succeeded"},
	"manual":     {"awaiting", "ready", "cancelled", "superseded"},
	"awaiting":   {"ready", "cancelled", "superseded"},
	"ready":      {"dispatched", "cancelled", "superseded"},
	"dispatched": {"running", "ready", "retry-wait", "failed", "cancelled", "superseded"},
	"running":    {"succeeded", "failed", "retry-wait", "cancelled", "superseded"},
	"retry-wait": {"ready", "cancelled", "superseded"},
}

func started(in *revision.Instance) bool { return in.State == "dispatched" || in.State == "running" }

// moved checks a change of an instance.
func (c *checker) moved(in *instance) {
	was, is := &in.was, &in.is
	c.fenced(was, is)
	if was.ID == "" && is.After != "" {
		c.checkAfter(is)
	}
	if over(string(was.State)) {
		c.unchanged(was, is)
		return
	}
	if was.StopRequested == "" && is.StopRequested != "" {
		c.tells(is)
	}
	if was.StopRequested != "" && is.StopRequested != was.StopRequested && string(is.State) != was.StopRequested {
		c.fail("%s was told to end %s, and is %s", is.ID, was.StopRequested, is.State)
	}
	c.checkFilter(was, is)
	c.checkEdges(was, is)
	if was.State == is.State {
		return
	}
	c.w.Met("state: " + string(is.State))
	c.byPerson(was, is)
	if !slices.Contains(follows[string(was.State)], string(is.State)) {
		c.fail("%s went from %s to %s", is.ID, was.State, is.State)
	}
	if started(was) && slices.Contains([]string{"succeeded", "failed", "retry-wait"}, string(is.State)) {
		if c.execs[was.Exec] {
			c.fail("%s: the execution %s has recorded two ends", is.ID, was.Exec)
		}
		c.execs[was.Exec] = true
	}
	switch is.State {
	case workflow.Awaiting:
		in.supersedes = c.supersedes(is)
		c.w.Met(fmt.Sprintf("awaiting: %d superseded", min(len(in.supersedes), 2)))
	case workflow.Dispatched:
		c.starts(in)
	case workflow.Waiting, workflow.Failure:
		c.tried(was, is)
	case workflow.Success:
		c.succeeds(was, is)
	case workflow.Superseded:
		c.superseded(was, is)
	case workflow.Skipped:
		c.skipped(is)
	}
}

// fenced checks that only the execution that may has recorded something.
func (c *checker) fenced(was, is *revision.Instance) {
	a := c.w.acting()
	if a == nil || a.ending == nil {
		return
	}
	if a.ending.Instance != is.ID || a.ending.Exec != was.Exec || !started(was) {
		c.fail("%s (%s, execution %s): the late result of %s changed it", is.ID, was.State, was.Exec, a.ending.Exec)
	}
}

// checkEdges checks what became of edges: they are decided once, by the end of what they await, and move only from an
// instance that was superseded to a later one of the task.
func (c *checker) checkEdges(was, is *revision.Instance) {
	for i := range was.Edges {
		e, old := is.Edges[i], was.Edges[i]
		if e == old {
			continue
		}
		if old.Verdict != workflow.Open {
			c.fail("%s: the edge %+v was decided, and becomes %+v", is.ID, old, e)
		}
		c.w.Met("edge decided: " + string(e.Verdict))
		if e.ID != old.ID {
			c.w.Met("edge: follows the superseder")
			from, to := &c.instances[old.ID].is, &c.instances[e.ID].is
			if !is.Follow || e.Prev || from.State != workflow.Superseded || !c.supersededBy(from, to) ||
				to.Revision < from.Revision {
				c.fail("%s: the edge %+v becomes %+v", is.ID, old, e)
			}
			if from.Task != to.Task {
				c.w.Met("edge: follows the superseder under another name")
			}
		}
	}
}

// supersededBy reports whether an instance was superseded by another of the same task, directly or by those between
// them. A task can have got another name since.
func (c *checker) supersededBy(old, by *revision.Instance) bool {
	for old.ID != by.ID {
		next, there := c.instances[old.By]
		if !there || next.is.Task != old.Task && next.is.Was != old.Task {
			return false
		}
		old = &next.is
	}
	return true
}

// unchanged checks that nothing of an instance that has ended changes, but that others were told.
func (c *checker) unchanged(was, is *revision.Instance) {
	a, b := *was, *is
	if a.Settled && !b.Settled {
		c.fail("%s was settled, and is no longer", is.ID)
	}
	if !a.Settled && b.Settled && b.Dependents {
		c.checkFollow(is)
	}
	a.Settled, b.Settled, a.Left, b.Left = false, false, nil, nil
	one, _ := json.Marshal(a)
	two, _ := json.Marshal(b)
	if string(one) != string(two) {
		c.fail("%s had ended, and changes from %s to %s", is.ID, one, two)
	}
}

// supersedes are the instances that one supersedes when it begins to await their ends.
func (c *checker) supersedes(s *revision.Instance) (ids []string) {
	for id, in := range c.instances {
		v := &in.is
		if v.Archive == s.Archive && v.Revision < s.Revision && slices.Contains(s.Cancels, v.Task) &&
			!over(string(v.State)) && !(v.Force && v.Exec == "") || slices.Contains(s.Replaces, id) {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}

// taskOf is the definition of the task of an instance.
func (c *checker) taskOf(in *revision.Instance) *task {
	t := c.specOf(revisionID(in)).task(in.Task)
	if t == nil {
		c.fail("the definition of %s has no such task", in.ID)
		return &task{}
	}
	return t
}

// starts checks that an instance may start now.
func (c *checker) starts(in *instance) {
	is := &in.is
	t := c.taskOf(is)
	rev := c.revisions[revisionID(is)]
	if rev == nil || rev.is.Planned == 0 {
		c.fail("%s starts before its revision is planned", is.ID)
		return
	}
	for _, e := range is.Edges {
		if !c.satisfied(e) {
			c.fail("%s starts, and the edge %+v is not satisfied", is.ID, e)
		}
	}
	if is.Run == 0 {
		c.awaitsAsDefined(is, t)
	}
	c.checkSteps(is, t)
	for _, id := range in.supersedes {
		if !over(string(c.instances[id].is.State)) {
			c.fail("%s starts beside %s, which it supersedes and which is %s", is.ID, id, c.instances[id].is.State)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(c.instances)) {
		c.startsBeside(is, c.instances[id])
	}
	if newest := c.newest(is.Archive, is.Task); is.LatestOnly && !is.Force && newest > is.Revision {
		c.fail("%s starts, and only the latest is wanted: one has started in revision %d", is.ID, newest)
	}
	if len(is.Replaces) > 0 {
		c.w.Met("start: replaces a run by schedule")
	}
	c.w.Met("start: by " + is.Trigger)
	if is.Lock != "" {
		c.w.Met("start: with a lock")
	}
	c.startCounts(is)
}

// startsBeside checks that another instance lets one start.
func (c *checker) startsBeside(is *revision.Instance, other *instance) {
	o := &other.is
	if o.ID == is.ID || o.Archive != is.Archive || over(string(o.State)) {
		return
	}
	// A person does not wait for a pass: a run, or a step that a person starts, can come between the look of a
	// pass and its commit. The superseder then waits for this one, too: starts checks all that it supersedes.
	byPerson := o.Trigger == revision.ByHand || o.Starter != ""
	if slices.Contains(other.supersedes, is.ID) && !byPerson && !(is.Force && is.Run > 0) {
		c.fail("%s starts, and %s, which supersedes it, is %s", is.ID, o.ID, o.State)
	}
	if is.Lock == "" || o.Lock != is.Lock {
		return
	}
	if started(o) || o.State == workflow.Waiting {
		c.fail("%s starts with the lock %s, and %s is %s", is.ID, is.Lock, o.ID, o.State)
	}
	if is.Attempt == 1 && is.Starts == 0 && is.Run == 0 && o.Run == 0 && o.Order < is.Order && !gated(o) {
		c.fail("%s starts with the lock %s before %s, which is %s", is.ID, is.Lock, o.ID, o.State)
	}
}

// startCounts checks that the archive runs no more at once than it may.
func (c *checker) startCounts(is *revision.Instance) {
	n := 0
	for _, in := range c.instances {
		if archiveOf(in.is.ID) == archiveOf(is.ID) && started(&in.is) {
			n++
		}
	}
	if most := c.w.s.running; most > 0 && n > most {
		c.fail("%s starts, and %d run in the archive; %d may", is.ID, n, most)
	}
	for _, in := range c.instances {
		if in.is.Archive == is.Archive && in.is.Revision != is.Revision && started(&in.is) {
			c.w.Met("start: beside another revision")
			return
		}
	}
}

// started is called when an execution is started: it is the one of the instance.
func (c *checker) started(e revision.Execution) {
	in := c.instances[e.Instance]
	if in == nil || in.fold.events == 0 {
		c.fail("an execution of %s is started, which there is not", e.Instance)
	}
}

// succeeds checks the success of an instance.
func (c *checker) succeeds(was, is *revision.Instance) {
	if is.Task == workflow.Commit {
		for _, e := range is.Edges {
			if !c.satisfied(e) {
				c.fail("%s succeeds, and the edge %+v is not satisfied", is.ID, e)
			}
		}
		return
	}
	if was.StopRequested != "" || is.Last == nil || is.Last.End != "succeeded" || is.Last.Attempt != is.Attempt {
		c.fail("%s succeeds; told %q, last %+v", is.ID, was.StopRequested, is.Last)
	}
	key := is.Archive + " " + is.Task
	c.succeeded[key] = max(c.succeeded[key], is.Revision)
}

// tried checks that an execution of which nothing was begun takes no attempt, and that another follows, at most five
// times.
func (c *checker) tried(was, is *revision.Instance) {
	if is.Last == nil || !is.Last.Unstarted || !started(was) {
		return
	}
	c.w.Met("unstarted: " + string(is.State))
	switch {
	case is.State == workflow.Waiting && (is.Attempt != was.Attempt-1 || is.Starts != was.Starts+1):
		c.fail("%s was not begun, and goes from attempt %d to %d", is.ID, was.Attempt, is.Attempt)
	case is.State == workflow.Failure && was.Starts < 5:
		c.fail("%s has failed after %d executions that were not begun", is.ID, was.Starts+1)
	}
}

// tells checks that an instance may be told to end.
func (c *checker) tells(is *revision.Instance) {
	c.w.Met("told: " + is.StopRequested)
	if is.StopRequested != "superseded" {
		return
	}
	if is.Uninterruptible {
		c.fail("%s is not to be interrupted, and is told to end", is.ID)
	}
	by := c.instances[is.By]
	if by == nil || by.is.State != workflow.Awaiting && by.is.State != workflow.Cancelled || !c.above(&by.is, is) {
		c.fail("%s is told to end because of %q", is.ID, is.By)
	}
}

// above reports whether an instance may supersede another.
func (c *checker) above(by, in *revision.Instance) bool {
	if slices.Contains(by.Replaces, in.ID) {
		return true
	}
	return by.Archive == in.Archive && by.Revision > in.Revision && slices.Contains(by.Cancels, in.Task)
}

// superseded checks who has superseded an instance.
func (c *checker) superseded(was, is *revision.Instance) {
	if is.Uninterruptible && started(was) {
		c.fail("%s is not to be interrupted, and was superseded when it was %s", is.ID, was.State)
	}
	for _, e := range is.Edges {
		if awaited := c.instances[e.ID]; !e.Prev && awaited != nil && awaited.is.State == workflow.Superseded &&
			was.State == workflow.Blocked && e.On != workflow.Ended {
			c.w.Met("superseded: with what it awaits")
			return
		}
	}
	n := c.newest(is.Archive, is.Task)
	by := c.instances[is.By]
	if by != nil && c.above(&by.is, is) {
		c.w.Met("superseded: from " + string(was.State))
		// Once it awaits their ends, they are superseded, also if a person cancels it meanwhile.
		if was.StopRequested == "" && by.is.State != workflow.Awaiting && by.is.State != workflow.Cancelled &&
			n <= is.Revision {
			c.fail("%s was superseded by %s, which is %s", is.ID, by.is.ID, by.is.State)
		}
		return
	}
	if by == nil || !c.overtakes(&by.is, is) || by.is.Revision != n {
		c.fail("%s was superseded by %q; the newest revision of it is %d", is.ID, is.By, n)
	}
}

// skipped checks why an instance was skipped.
func (c *checker) skipped(is *revision.Instance) {
	if strings.HasPrefix(is.Reason, "loop: ") {
		return // see checkTask
	}
	for _, e := range is.Edges {
		if e.Verdict == workflow.Impossible {
			awaited := c.instances[e.ID]
			if !over(string(awaited.is.State)) || c.satisfied(e) {
				c.fail("%s is skipped, and the edge %+v is on %s", is.ID, e, awaited.is.State)
			}
			if is.Root == "" {
				c.fail("%s is skipped without a cause", is.ID)
			}
			c.w.Met("skipped: because of an edge")
			return
		}
	}
	if c.w.s.forced && strings.HasPrefix(is.Reason, "its filter of paths cannot be asked: ") {
		c.w.Met("skipped: because its revision is another")
		return
	}
	if !strings.HasPrefix(is.Reason, "no path") {
		c.fail("%s is skipped: %s", is.ID, is.Reason)
	}
	c.w.Met("skipped: because of its filter")
}

// checkFilter checks what the filter of paths of an instance has said.
func (c *checker) checkFilter(was, is *revision.Instance) {
	if !was.Filtered || is.Filtered || c.w.s.forced {
		return
	}
	matches := false
	for n := is.Base + 1; n <= is.Revision; n++ {
		matches = matches || c.w.repos[archiveOf(is.ID)].commits[n-1].changed[0] == "src/main.go"
	}
	if matches == (is.State == workflow.Skipped) {
		c.fail("%s is %s; a path that its filter selects changed after revision %d: %t", is.ID, is.State, is.Base,
			matches)
	}
	c.w.Met(fmt.Sprintf("filter: %t", matches))
}

// checkInstance compares the row of an instance with its events, its places in lines and its waiters.
func (c *checker) checkInstance(id string) {
	in := c.instances[id]
	if in == nil || in.is.ID == "" {
		c.fail("there are rows of %s, but no such instance", id)
		return
	}
	is, f := &in.is, in.fold
	if f.events != in.version || f.state != string(is.State) || f.attempt != is.Attempt || f.told != is.StopRequested ||
		is.Attempt > 0 && f.exec != is.Exec {
		c.fail("the events of %s say %+v; its row %d %s %d %s %q", id, f, in.version, is.State, is.Attempt, is.Exec,
			is.StopRequested)
	}
	if (in.over > 0) != over(string(is.State)) {
		c.fail("%s is %s; it ended at %d", id, is.State, in.over)
	}
	want := c.places(is)
	got := slices.Sorted(maps.Keys(c.owned[id]))
	if !slices.Equal(got, want) {
		c.fail("%s (%s) is in the lines %q; it should be in %q", id, is.State, got, want)
	}
	if over(string(is.State)) {
		return
	}
	if is.Superseding != "" && (is.State != workflow.Awaiting || !c.waiters[is.Superseding][id] ||
		c.instances[is.Superseding].is.Settled) {
		c.fail("%s is %s and waits for the end of %s", id, is.State, is.Superseding)
	}
	for _, e := range is.Edges {
		if e.ID == "" || e.Verdict != workflow.Open {
			continue
		}
		awaited := c.instances[e.ID]
		if !c.waiters[e.ID][id] && !c.w.mutant.deafEdges {
			c.fail("%s waits for %s, which does not know it", id, e.ID)
		}
		if awaited != nil && awaited.is.Settled {
			c.fail("%s waits for %s, which is settled", id, e.ID)
		}
	}
}

// places are the rows of lines that an instance has, sorted.
func (c *checker) places(in *revision.Instance) (keys []string) {
	line := "TASKLINE#" + archiveOf(in.Archive) + " "
	end := "#" + in.Order + "#" + in.Archive
	if over(string(in.State)) {
		if !in.Settled {
			keys = append(keys, line+"settle"+end)
		}
		return keys
	}
	keys = append(keys, "TASKLIVE#"+in.Archive+"#"+in.Task+" "+in.Order)
	if in.Trigger == revision.BySchedule {
		keys = append(keys, "TASKTIMED#"+in.Archive+"#"+in.Task+" "+in.Order)
	}
	if in.Lock != "" && !gated(in) {
		keys = append(keys, "TASKLOCK#"+in.Archive+"#"+in.Lock+" "+in.Order)
	}
	open := slices.ContainsFunc(in.Edges, func(e revision.Awaits) bool { return e.Verdict == "" })
	switch {
	case in.State == workflow.Blocked && in.Filtered && !open:
		keys = append(keys, line+"filter"+end)
	case in.State == workflow.Awaiting:
		if in.Superseding == "" {
			keys = append(keys, line+"cancel"+end)
		}
		for _, task := range slices.Compact(slices.Sorted(slices.Values(in.Cancels))) {
			keys = append(keys, "TASKCANCEL#"+in.Archive+"#"+task+" "+in.Order)
		}
	case in.State == workflow.Ready && !in.Parked:
		keys = append(keys, line+"start"+end)
	case started(in):
		keys = append(keys, line+"run"+end)
	}
	if in.Until > 0 {
		keys = append(keys, fmt.Sprintf("%sdue#%013d%s", line, in.Until, end))
	}
	slices.Sort(keys)
	return keys
}

// later is how late a pass may look at an archive: after what could not be done it waits a minute.
const later = time.Minute + 10*time.Second

// checkWake checks that an archive that has something to do is looked at in time.
func (c *checker) checkWake(name string) {
	a := c.archives[name]
	if a == nil || c.w.mutant.asleep {
		return
	}
	need, why := c.due(name, &a.is)
	if why == "" {
		return
	}
	w := c.wakes[name]
	if at := time.UnixMilli(w.at); !w.listed || at.Sub(need) > later && time.Until(at) > later {
		c.fail("%s has something to do at %s: %s; it is looked at %+v, at %s", name, need.UTC(), why, w, at.UTC())
	}
}

// due is when there is something to do in an archive, and what.
func (c *checker) due(name string, a *revision.Archive) (at time.Time, why string) {
	soonest := func(t time.Time, what string) {
		if why == "" || t.Before(at) {
			at, why = t, what
		}
	}
	running := 0
	keys := slices.Sorted(maps.Keys(c.lines["TASKLINE#"+name]))
	for _, sk := range keys {
		if strings.HasPrefix(sk, "run#") {
			running++
		}
	}
	for _, sk := range keys {
		kind, rest, _ := strings.Cut(sk, "#")
		switch kind {
		case "settle", "filter":
			soonest(time.Now(), sk)
		case "due", "keep":
			if kind == "keep" && a.Mode != revision.Active {
				continue
			}
			var ms int64
			fmt.Sscanf(rest, "%013d", &ms)
			soonest(time.UnixMilli(ms), sk)
		case "start":
			if a.Mode == revision.Active && (a.Running == 0 || running < a.Running) {
				soonest(time.Now(), sk)
			}
		case "plan":
			if a.Mode == revision.Active && a.Trouble == nil && a.First > 0 &&
				rest == fmt.Sprintf("%s#%012d", a.Ref(), a.Watermark+1) {
				soonest(time.Now(), sk)
			}
		}
	}
	return at, why
}
