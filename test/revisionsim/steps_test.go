package revisionsim

import (
	"context"
	"fmt"
	"hash/fnv"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"

	"archivist/pkg/kernel/fault"
	"archivist/pkg/revisions/revision"
	"archivist/pkg/revisions/workflow"
)

// steps is what a task has to do with people, and with what others leave.
type steps struct {
	mayFail, byHand bool
	parameter       string // "", "default" or "required"
	inputs          []wait
}

// drawSteps draws the steps of all tasks. It depends on what was drawn for them before, and on nothing else.
func (s *spec) drawSteps() {
	sum := fnv.New64a()
	fmt.Fprint(sum, s.text())
	rng := rand.New(rand.NewPCG(sum.Sum64(), 1))
	one := func(n int) bool { return rng.IntN(n) == 0 }
	for _, t := range s.tasks {
		t.mayFail = one(4)
		t.byHand = one(4) && t.planned() && t.schedule == ""
		if one(3) && t.schedule == "" {
			t.parameter = "default"
			if t.byHand && one(2) {
				t.parameter = "required"
			}
		}
		for _, d := range t.waits {
			if one(2) && t.schedule == "" {
				t.inputs = append(t.inputs, d)
			}
		}
	}
	for _, t := range s.tasks {
		for i, d := range t.waits {
			t.waits[i].allowed = !d.prev && s.task(d.task).mayFail
		}
	}
}

// text is the part of a definition with the steps.
func (t steps) text() string {
	var b strings.Builder
	if t.mayFail {
		b.WriteString("  allowFailure: true\n")
	}
	if t.byHand {
		b.WriteString("  manual: the curator\n")
	}
	switch t.parameter {
	case "default":
		b.WriteString("  parameters: {P: {type: integer, default: 1}}\n")
	case "required":
		b.WriteString("  parameters: {P: {type: integer}}\n")
	}
	for i, d := range t.inputs {
		if i == 0 {
			b.WriteString("  inputs:\n")
		}
		fmt.Fprintf(&b, "    - %s\n", d.name())
	}
	return b.String()
}

// name is the dependency as inputs name it.
func (d wait) name() string {
	if d.prev {
		return "PREV:" + d.task
	}
	return d.task
}

// gated reports whether a person is to start an instance, and has not.
func gated(in *revision.Instance) bool { return in.Manual != "" && in.Starter == "" }

// starts lets a person start one of the instances that wait for it, one time in of. It reports whether one was started,
// or all calls of the person fail now.
func (a *actor) starts(ctx context.Context, of int) bool {
	var ids []string
	for _, id := range slices.Sorted(maps.Keys(a.w.check.instances)) {
		in := &a.w.check.instances[id].is
		if in.State == workflow.Manual && a.w.check.archives[archiveOf(id)].is.Mode != revision.Deleting {
			ids = append(ids, id)
		}
	}
	if len(ids) == 0 || a.Rng.IntN(of) > 0 {
		return false
	}
	in := &a.w.check.instances[ids[a.Rng.IntN(len(ids))]].is
	set := map[string]string{}
	if a.w.check.taskOf(in).parameter != "" && (a.w.Calm || a.Rng.IntN(3) > 0) {
		set["P"] = "7"
	}
	missing := a.w.check.taskOf(in).parameter == "required" && len(set) == 0
	_, err := a.store.StartManual(ctx, in.ID, set, a.by())
	a.did("start", in.ID, err)
	if missing && err == nil {
		a.w.check.fail("%s is started without its parameter", in.ID)
	}
	if missing && fault.Is(err, fault.Invalid) {
		a.w.Met("parameters: missing")
	}
	return err == nil
}

// values are those of the parameters of a run by hand.
func (c *checker) values(a revision.Archive, run revision.Run) map[string]string {
	n := run.Revision
	if n == 0 {
		n = a.Watermark
	}
	t := c.specOf(fmt.Sprintf("%s/%d", a.Ref(), n)).task(run.Task)
	if t == nil || t.parameter == "" {
		return nil
	}
	c.w.Met("parameters: set")
	return map[string]string{"P": "7"}
}

// byPerson checks that only a person lets an instance go on that waits for one.
func (c *checker) byPerson(was, is *revision.Instance) {
	if is.State == workflow.Manual {
		if !gated(is) || is.Run > 0 && is.After == "" {
			c.fail("%s waits for a person: %+v", is.ID, is)
		}
		if is.After != "" {
			c.w.Met("manual: after a rerun")
		}
	}
	if was.State != workflow.Manual {
		return
	}
	c.w.Met("manual: " + map[bool]string{true: "started", false: string(is.State)}[is.Starter != ""])
	if a := c.w.acting(); a != nil && a.passes && is.Starter != was.Starter {
		c.fail("%s was started by a pass", is.ID)
	}
	if goesOn := is.State == workflow.Ready || is.State == workflow.Awaiting; goesOn && is.Starter == "" {
		c.fail("%s goes on, and nobody has started it", is.ID)
	}
}

// checkSteps checks an instance that starts: a person has started it, if its definition says so, with its parameters;
// and what it is given is what was left for it.
func (c *checker) checkSteps(is *revision.Instance, t *task) {
	if t.byHand && (is.Run == 0 || is.After != "") && is.Starter == "" {
		c.fail("%s starts, and nobody has started it", is.ID)
	}
	if t.parameter == "required" && is.Parameters["P"] == "" {
		c.fail("%s starts without its parameter", is.ID)
	}
	if len(is.Inputs) != len(t.inputs) {
		c.fail("%s starts with the inputs %v; its definition has %v", is.ID, is.Inputs, t.inputs)
		return
	}
	for _, d := range t.inputs {
		at := slices.IndexFunc(is.Inputs, func(i revision.Input) bool { return i.Name == d.name() })
		if at < 0 {
			c.fail("%s starts with the inputs %v, without %s", is.ID, is.Inputs, d.name())
			return
		}
		c.checkInput(is, d, is.Inputs[at].ID)
	}
}

// checkInput checks whose outputs an instance gets for a dependency: those of what the planned instance waited for, or
// of what has succeeded in its place, of the same task. There are none only if there was nothing to wait for, or if a
// run by hand did not wait.
func (c *checker) checkInput(is *revision.Instance, d wait, id string) {
	planned := c.instances[instanceID(is.Archive, is.Revision, is.Task)]
	if planned == nil {
		c.fail("%s has inputs, and its revision has not planned it", is.ID)
		return
	}
	e := revision.Awaits{}
	for _, other := range planned.is.Edges[1:] {
		if other.Prev == d.prev && other.Task == d.task {
			e = other
		}
	}
	if id == "" {
		c.w.Met("inputs: none")
		if e.ID != "" && (is.Run == 0 || !d.prev) {
			c.fail("%s gets nothing for %s, and waited for %s", is.ID, d.name(), e.ID)
		}
		return
	}
	giver, on := &c.instances[id].is, &c.instances[e.ID].is
	c.w.Met("inputs: of " + map[bool]string{true: "an earlier one", false: "this revision"}[d.prev])
	if giver.Run > 0 {
		c.w.Met("inputs: of a run")
	}
	// What it waited for is of a later revision if that one has superseded its own.
	stands := giver.State == workflow.Success && giver.Task == on.Task && giver.Revision >= on.Revision &&
		on.State != workflow.Success && giver.Revision <= max(is.Revision, on.Revision)
	if !over(string(giver.State)) || id != e.ID && !stands {
		c.fail("%s gets for %s the outputs of %s (%s); it waited for %s (%s)", is.ID, d.name(), id, giver.State, e.ID,
			on.State)
	}
	if is.Run > 0 && id == e.ID && !c.satisfied(e) {
		c.fail("%s gets for %s the outputs of %s, which is %s", is.ID, d.name(), id, giver.State)
	}
}
