package componentsim

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"archivist/pkg/components/component"
	"archivist/pkg/kernel/table/tabletest"
	"archivist/test/adversary"
)

// lanes is one invocation of a function that works on the items of a lane.
type lanes struct {
	run  component.RunRef
	lane component.Lane
}

// Start starts an execution, if the adversary lets it.
func (a *actor) Start(_ context.Context, name string, in component.RunInput) error {
	return a.Do("start execution "+name, func() error {
		a.w.executions.Send(in.Run)
		return nil
	})
}

// Stop stops an execution: that is a wish.
func (a *actor) Stop(_ context.Context, name, _ string) error {
	return a.Do("stop execution "+name, func() error { return nil })
}

// wake starts a component that has a ready item.
func (a *actor) wake(_ context.Context, name string) error {
	return a.Do("wake "+name, func() error {
		if !a.w.Calm || !a.w.s.deaf {
			a.w.wakes.Send(name)
		}
		return nil
	})
}

// woken is one invocation of what starts a component.
func (a *actor) woken(ctx context.Context) {
	if name, ok := a.w.wakes.Arrive(a.Rng); ok {
		a.Begin(relayTime)
		a.w.Log("  (%s wakes %s: %v)", a.Name, name, a.runner.Wake(ctx, name))
	}
}

// tick is the rule of each minute.
func (a *actor) tick(ctx context.Context) {
	until := a.Begin(relayTime)
	placed, err := a.log.Sweep(ctx, until)
	a.relayed(ctx, placed, err)
	err = a.run.Tick(ctx, until)
	a.w.Log("  (%s consumers' tick: %v)", a.Name, err)
	if !a.w.Calm && a.Rng.IntN(4) == 0 { // as somebody may wish; and the tick does it each hour
		a.reconcile(ctx, until)
	}
	if !a.w.mutant.unticked {
		a.ticks = true
		err = a.runner.Tick(ctx, until)
		a.ticks = false
		a.w.Log("  (%s components' tick, failed: %v)", a.Name, err != nil) // of several errors, either can be first
	}
}

// reconcile compares lines and items, and repairs what differs. That is nothing, if the list of items
// was never behind.
func (a *actor) reconcile(ctx context.Context, until time.Time) {
	for cursor := ""; ; {
		out, next, err := a.store.Reconcile(ctx, cursor, until)
		a.w.Log("  (%s reconciles: %+v: failed: %v)", a.Name, out, err != nil)
		if !a.w.s.lag && out.Places+out.Missing+out.Foreign+out.Counts+out.Damaged > 0 {
			a.w.check.fail("the reconciliation finds %v", out.Findings)
		}
		if err != nil || next == "" {
			return
		}
		cursor = next
	}
}

// execute is an execution of the state machine, or a part of it: it can end at any step.
func (a *actor) execute(ctx context.Context) {
	a.woken(ctx)
	if ref, ok := a.w.executions.Arrive(a.Rng); ok {
		a.drive(ctx, ref, 1+a.Rng.IntN(8))
	}
}

// drive makes the steps of an execution.
func (a *actor) drive(ctx context.Context, ref component.RunRef, most int) {
	for range most {
		a.Begin(relayTime)
		page, err := a.runner.Find(ctx, ref)
		a.w.Log("  (%s finds for %v: %s %v: %v)", a.Name, ref, page.Next, page.Lanes, err)
		if err != nil {
			if a.Dead() {
				return
			}
			continue // the machine tries again
		}
		switch page.Next {
		case component.NextNone:
			return
		case component.NextEnd:
			a.Begin(relayTime)
			err := a.runner.End(ctx, ref)
			a.w.Log("  (%s ends %v: %v)", a.Name, ref, err)
			if err == nil || a.Dead() {
				return
			}
		default:
			a.spread(ctx, page)
		}
	}
}

// spread has the lanes worked on, here or by workers. It does not always wait for these.
func (a *actor) spread(ctx context.Context, page component.Page) {
	for _, lane := range page.Lanes {
		l := lanes{page.Run, lane}
		switch {
		case page.Next == component.NextTask:
			a.takes(ctx, l)
		case a.w.Calm || a.Rng.IntN(3) == 0:
			a.workOn(ctx, l)
		default:
			a.w.lanes.Send(l)
		}
	}
	if !a.w.Calm && a.Rng.IntN(2) == 0 {
		_ = a.Sleep(time.Duration(a.Rng.Int64N(int64(3 * time.Minute))))
	}
}

// labour is one invocation of the function that works, or that records what a container answered.
func (a *actor) labour(ctx context.Context) {
	if a.Rng.IntN(3) == 0 {
		a.record(ctx)
	} else if l, ok := a.w.lanes.Arrive(a.Rng); ok {
		a.workOn(ctx, l)
	}
}

func (a *actor) workOn(ctx context.Context, l lanes) {
	if !a.starts(component.FunctionTime, l) {
		return
	}
	defer func() { a.labours = "" }()
	err := a.runner.WorkLane(ctx, l.run, l.lane)
	a.w.Log("  (%s worked on %v: %v)", a.Name, l, err)
	if err == nil {
		a.w.check.kept(a, a.begun)
	}
	for a.inside.Load() > 0 { // a function that did not return in time
		_ = a.Sleep(time.Second)
	}
}

// starts begins an invocation for a lane.
func (a *actor) starts(most time.Duration, l lanes) bool {
	if a.Dead() {
		return false
	}
	a.Begin(most)
	for _, id := range l.lane.Items {
		a.saw[id] = int64(len(a.w.check.subjects[subjectPK(id)]))
	}
	a.begun, a.labours = nil, l.run.Component
	return true
}

// answer is what a container has to say, if it says anything.
type answer struct {
	lanes
	taken component.Taken
	work  *work
}

// takes takes the claim on the item of a lane for a container.
func (a *actor) takes(ctx context.Context, l lanes) {
	if !a.starts(relayTime, l) {
		return
	}
	defer func() { a.labours = "" }()
	t, err := a.runner.Take(ctx, l.run, l.lane.Number, l.lane.Items[0])
	a.w.Log("  (%s took %v: %v, %v)", a.Name, l, t != nil, err)
	if err != nil || t == nil {
		return
	}
	wk := &work{Work: t.Work, a: a, task: true}
	a.w.check.begins(wk)
	a.w.answers.Send(answer{l, *t, wk})
	if a.w.Calm {
		a.record(ctx)
	}
}

// record is one invocation that records the answer of a container.
func (a *actor) record(ctx context.Context) {
	n, ok := a.w.answers.Arrive(a.Rng)
	if !ok || !a.starts(relayTime, n.lanes) {
		return
	}
	defer func() { a.labours = "" }()
	res, failed := a.decide(n.work.Work)
	n.work.ended, n.work.result = true, stored(res, failed)
	a.begun = n.work
	err := a.runner.Record(ctx, n.run, n.lane.Number, n.taken, res, failed)
	a.w.Log("  (%s recorded %v: %v)", a.Name, n.lanes, err)
	if err == nil {
		a.w.check.kept(a, n.work)
	}
}

// finish makes all steps that are under way.
func (a *actor) finish(ctx context.Context) {
	for range 20 {
		invoked, wakes, runs := a.w.consumers.Take(), a.w.wakes.Take(), a.w.executions.Take()
		if len(invoked)+len(wakes)+len(runs) == 0 {
			return
		}
		for _, u := range invoked {
			a.consumeOne(ctx, u)
		}
		for _, name := range wakes {
			a.w.Log("  (%s wakes %s: %v)", a.Name, name, a.runner.Wake(ctx, name))
		}
		for _, ref := range runs {
			a.drive(ctx, ref, 100)
		}
		a.Until = time.Time{}
	}
}

// slot is the lease of an instance of a component, as it is stored.
type slot struct {
	Component string `dynamo:"component_name"`
	Run       string `dynamo:"run_id"`
	Fence     int64  `dynamo:"fence"`
	Wanted    bool   `dynamo:"is_wanted"`
	Number    int    `dynamo:"slot_no"`
}

// laneRow is the row of a run's lane, as it is stored.
type laneRow struct {
	Closed bool  `dynamo:"is_closed"`
	Done   int64 `dynamo:"done_n"`
	Failed int64 `dynamo:"failed_n"`
}

// slotRow checks a change of a slot: it goes from a run that has ended to nobody, and from nobody to
// the next run.
func (c *checker) slotRow(ch tabletest.Change, sk string) {
	was, is := c.slots[sk], adversary.Read[slot](ch.After)
	switch {
	case ch.After == nil:
		c.fail("%s was removed", sk)
	case is.Fence < was.Fence || is.Run != "" && is.Run != was.Run && is.Fence != was.Fence+1:
		c.fail("%s: its fence went from %d to %d, from run %q to run %q", sk, was.Fence, is.Fence, was.Run, is.Run)
	case was.Run != "" && is.Run != "" && was.Run != is.Run:
		c.fail("%s went from run %s to run %s, which has not ended", sk, was.Run, is.Run)
	}
	c.slots[sk] = is
}

// runRow checks a change of a row of a run: nothing changes in a lane that is closed.
func (c *checker) runRow(ch tabletest.Change, run, sk string) {
	switch {
	case sk == "RUN":
		c.runs[run] = text(ch.After, "run_state")
		if c.runs[run] != "running" {
			c.w.Met("run " + c.runs[run])
		}
	case strings.HasPrefix(sk, "LANE#"):
		if c.lanes[run] == nil {
			c.lanes[run] = map[string]laneRow{}
		}
		was, is := c.lanes[run][sk], adversary.Read[laneRow](ch.After)
		if was.Closed && (!is.Closed || was != is) {
			c.fail("%s of run %s was closed, and went from %+v to %+v", sk, run, was, is)
		}
		c.lanes[run][sk] = is
	}
}

// closed fails if a run has ended, and one of its lanes is open.
func (c *checker) closed(run string) {
	for sk, l := range c.lanes[run] {
		if c.runs[run] != "running" && !l.Closed {
			c.fail("run %s is %s, and %s is open", run, c.runs[run], sk)
		}
	}
}

// passed fails if a run's lease has passed to another, or has ended.
func (c *checker) passed(run, what string) {
	for _, s := range c.slots {
		if s.Run == run && c.runs[run] == "running" {
			return
		}
	}
	c.fail("%s was stored by run %s, which had lost its slot", what, run)
}

// restOfRuns names a slot or run that is not at rest.
func (c *checker) restOfRuns() string {
	for _, sk := range slices.Sorted(maps.Keys(c.slots)) {
		if s := c.slots[sk]; s.Run != "" {
			return "slot " + sk + " has the run " + s.Run
		}
	}
	for _, run := range slices.Sorted(maps.Keys(c.runs)) {
		if c.runs[run] == "running" {
			return "run " + run + " has not ended"
		}
	}
	return ""
}
