package revision_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"archivist/pkg/kernel/fault"
	"archivist/pkg/revisions/revision"
	"archivist/pkg/revisions/runner"
	"archivist/pkg/revisions/workflow"
)

// TestForceBehindFollower: a run with force waits for its turn of a lock behind an instance that follows the superseder
// of both. The superseder does not wait for a run that has not started: else none of the three would ever go on.
func TestForceBehindFollower(t *testing.T) {
	w := newWorld(t)
	r := (&repository{}).add(1, `
- {name: gate, command: x}
- {name: build, command: x, depends: [gate]}
- {name: deploy, command: x, depends: [build], follow: true, lock: disk}
`)
	r.add(1, "[{name: gate, command: x}, {name: build, command: x, depends: [gate], lock: disk}]")
	r.add(1, "[{name: build, command: x, cancels: [PREV]}]")
	w.archive("maps", r, 1)
	w.notify("maps", 1, 2)
	w.pass("maps")
	forced, err := w.store.StartRun(t.Context(), "maps", revision.Run{Task: "build", Revision: 2, Force: true}, anna)
	w.must(err)
	w.pass("maps")
	w.notify("maps", 3)
	w.quiet("maps", runner.Succeeded)
	for _, id := range []string{forced.ID, "maps/3/build", "maps/1/deploy"} {
		if got := w.state(id); got != workflow.Success {
			t.Errorf("%s is %s", id, got)
		}
	}
}

// TestNoCycle: whatever the revisions define, and whatever is run by hand meanwhile, no instances wait for each other
// in a cycle, and in the end all have ended.
func TestNoCycle(t *testing.T) {
	met := map[string]int{}
	for seed := range uint64(80) {
		c := &cycles{world: newWorld(t), rng: rand.New(rand.NewPCG(seed, 3)), met: met}
		r := &repository{}
		for range 3 {
			r.add(1, c.definition())
		}
		c.archive("maps", r, 1)
		for range 30 {
			c.step()
		}
		c.rest()
		if t.Failed() {
			t.Fatalf("seed %d: %+v", seed, r.commits)
		}
	}
	for _, kind := range []string{"edge", "edge on a later revision", "superseded", "lock", "forced run"} {
		if met[kind] == 0 {
			t.Errorf("nothing waited in this way: %s", kind)
		}
	}
}

// cycles is a world in which cycles are looked for.
type cycles struct {
	*world
	rng  *rand.Rand
	met  map[string]int // kinds of waits
	last int64          // the last revision that was notified
}

func (c *cycles) one(n int) bool { return c.rng.IntN(n) == 0 }

// definition draws a definition until it is valid.
func (c *cycles) definition() string {
	for {
		var b strings.Builder
		names := slices.DeleteFunc([]string{"a", "b", "c"}, func(string) bool { return c.one(6) })
		for i, name := range names {
			b.WriteString(c.task(name, names, i))
		}
		_, problems := workflow.Parse([]workflow.File{{Path: workflow.Folder + "/a.yaml", Data: []byte(b.String())}})
		if len(problems) == 0 {
			return b.String()
		}
	}
}

// task draws a task. It waits in its revision only for those before it.
func (c *cycles) task(name string, names []string, i int) string {
	var depends, cancels []string
	more := ""
	for _, other := range names[:i] {
		if !c.one(4) {
			depends = append(depends, other)
		}
	}
	if len(depends) > 0 {
		more += ", follow: true"
	}
	if other := names[c.rng.IntN(len(names))]; c.one(8) {
		depends = append(depends, "PREV:"+other)
	}
	if i == 0 && !c.one(5) || i > 0 && c.one(4) {
		cancels = append(cancels, "PREV")
	}
	if other := names[c.rng.IntN(len(names))]; other != name && c.one(4) {
		cancels = append(cancels, other)
	}
	for _, m := range []struct {
		rarely int
		text   string
	}{{4 - 2*min(i, 1), "lock: disk"}, {8, "interruptible: false"}, {8, "retries: {attempts: 2, backoff: 1}"}} {
		if c.one(m.rarely) {
			more += ", " + m.text
		}
	}
	if was := []string{"a", "b", "c"}[c.rng.IntN(3)]; !slices.Contains(names, was) && c.one(2) {
		more += ", was: " + was
	}
	quoted := strings.ReplaceAll(fmt.Sprintf("%q", depends), " ", ", ")
	return fmt.Sprintf("- {name: %s, command: x, depends: %s, cancels: [%s]%s}\n", name, quoted,
		strings.Join(cancels, ", "), more)
}

// step lets something happen.
func (c *cycles) step() {
	c.t.Helper()
	switch c.rng.IntN(7) {
	case 0:
		if c.last < 3 {
			c.last++
			c.notify("maps", c.last)
		}
	case 1, 2, 3:
		c.pass("maps")
		c.check()
	case 4:
		if ids := c.running(); len(ids) > 0 {
			id := ids[c.rng.IntN(len(ids))]
			if c.mayBegin(id) {
				c.over(id, []string{runner.Succeeded, runner.Failed}[c.rng.IntN(2)])
			}
		}
		c.now = c.now.Add(revision.Default.Grace / 3)
	case 5, 6:
		task := []string{"a", "b", "c"}[c.rng.IntN(3)]
		_, err := c.store.StartRun(c.t.Context(), "maps", revision.Run{Task: task, Force: !c.one(4),
			Revision: 1 + c.rng.Int64N(max(c.last, 1))}, anna)
		if !fault.Is(err, fault.Conflict) { // the revision has no such task, or a newer one has started
			c.must(err)
		}
	}
}

// rest lets all go on until all has ended.
func (c *cycles) rest() {
	c.t.Helper()
	c.notify("maps", 1, 2, 3)
	var left []string
	for range 200 {
		c.pass("maps")
		for _, id := range c.running() {
			if c.mayBegin(id) {
				c.over(id, runner.Succeeded)
			}
		}
		c.now = c.now.Add(revision.Default.Grace)
		left = c.check()
		if len(left) == 0 {
			return
		}
	}
	c.t.Errorf("it does not come to rest: %v", left)
}

// live are the instances that have not ended, and the one that has the lock.
func (c *cycles) live() (all []revision.Instance, holder string) {
	for _, row := range c.fake.All() {
		if id, is := row["holder_id"].(*types.AttributeValueMemberS); is {
			holder = id.Value
		}
		doc, is := row["instance_json"].(*types.AttributeValueMemberS)
		if !is {
			continue
		}
		var in revision.Instance
		c.must(json.Unmarshal([]byte(doc.Value), &in))
		if !in.State.Over() {
			all = append(all, in)
		}
	}
	return all, holder
}

// check looks for a cycle among the instances that have not ended, and returns these.
func (c *cycles) check() (left []string) {
	c.t.Helper()
	live, holder := c.live()
	waits := map[string][]string{}
	for _, in := range live {
		waits[in.ID] = c.waits(in, live, holder)
		left = append(left, fmt.Sprintf("%s is %s", in.ID, in.State))
	}
	var visit func(id string, way []string)
	visit = func(id string, way []string) {
		if slices.Contains(way, id) {
			c.t.Errorf("a cycle: %v", append(way, id))
			return
		}
		for _, next := range waits[id] {
			visit(next, append(slices.Clone(way), id))
		}
		delete(waits, id) // no cycle goes through it
	}
	for _, in := range live {
		visit(in.ID, nil)
	}
	return left
}

// waits are the instances for which one waits.
func (c *cycles) waits(in revision.Instance, live []revision.Instance, holder string) (ids []string) {
	switch in.State {
	case workflow.Blocked:
		for _, e := range in.Edges {
			if e.Verdict == workflow.Open {
				ids = append(ids, e.ID)
				c.met["edge"]++
				later := slices.ContainsFunc(live, func(o revision.Instance) bool {
					return o.ID == e.ID && o.Revision > in.Revision
				})
				if later {
					c.met["edge on a later revision"]++
				}
			}
		}
	case workflow.Awaiting:
		if in.Superseding != "" {
			ids = append(ids, in.Superseding)
			c.met["superseded"]++
		}
	case workflow.Ready:
		if in.Force {
			c.met["forced run"]++
		}
		for _, o := range live {
			if in.Lock == "" || o.Lock != in.Lock || holder == in.ID {
				continue
			}
			if o.ID == holder || holder == "" && o.Order < in.Order {
				ids = append(ids, o.ID)
				c.met["lock"]++
			}
		}
	}
	return ids
}
