package component

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"archivist/pkg/kernel/explain"
	"archivist/pkg/kernel/fault"
)

// ExplainItem says of an item what the components that wait for it, or have worked on it, wait for: the one that needs
// a person first, and all of them as facts. With a component, it is that alone. An Invalid means that the id is not
// one, a NotFound that there is no such item or component.
func (s *Store) ExplainItem(ctx context.Context, item, component string) (explain.Explanation, error) {
	if component != "" {
		x, err := s.Standing(ctx, component, item)
		if err != nil {
			return explain.Explanation{}, err
		}
		return explain.Only(x.part(component, millis(s.Now()))), nil
	}

	kind, subject, err := ParseID(item)
	if err != nil {
		return explain.Explanation{}, err
	}

	it, row, err := s.look(ctx, kind+":"+subject)
	if err != nil {
		return explain.Explanation{}, err
	}

	defs, err := s.load(ctx)
	if err != nil {
		return explain.Explanation{}, err
	}

	return explain.Only(defs.part(it, row.Epoch, millis(s.Now()))), nil
}

// part explains where an item stands in the lines of all components. epoch is that by which its row was placed.
func (d *definitions) part(it *Item, epoch, now int64) explain.Part {
	first := explain.Part{Link: explain.Link{Kind: explain.Item, ID: it.ID, Waits: explain.Nothing,
		Why: "No component works on it, or has worked on it."}}
	var facts []explain.Fact
	for i := range d.all {
		c := &d.all[i]
		x := c.standing(it, epoch)
		if x.Class == "" && x.Condition != maxDepth { // that needs a person, although it is in no line
			continue
		}

		p := x.part(c.Name, now)
		if len(facts) == 0 || urgency(p.Waits) < urgency(first.Waits) {
			first = p
		}
		facts = append(facts, explain.Fact{Name: c.Name, Value: cmp.Or(x.Class, x.Condition)})
	}

	if _, stopped := it.Marks[Stopped]; stopped {
		first = explain.Part{Link: explain.Link{Kind: explain.Item, ID: it.ID, State: "stopped", Waits: explain.Person,
			Why: "A person has stopped it: components whose future has Manually_stopped do not work on it."},
			Do: []explain.Step{restart(it.ID)}}
	}
	first.Facts = facts // those of the one component are in what it says
	return first
}

// urgency orders what components wait for: a person first, then what runs and what is next.
func urgency(w explain.Wait) int {
	return slices.Index([]explain.Wait{explain.Person, explain.Hold, explain.Worker, explain.Turn, explain.Retry,
		explain.Event, explain.Nothing}, w)
}

// part explains the standing of an item in the line of a component.
func (x *Standing) part(component string, now int64) explain.Part {
	p := explain.Part{Link: explain.Link{Kind: explain.Item, ID: x.Item, State: x.Class,
		Why: fmt.Sprintf("%s: %s.", component, x.Reason)}, Until: x.NotBefore}
	switch {
	case x.Run != "":
		x.claimed(&p, component, now)
	case x.Paused && x.Ready:
		p.Waits = explain.Hold
		p.Why = fmt.Sprintf("It could be worked on, but the component %s is paused.", component)
		p.Do = []explain.Step{resume(component)}
	case x.Filling:
		p.Waits = explain.Turn
		p.Why = fmt.Sprintf("The definition of %s was changed; the item is looked at again within minutes.", component)
	case x.Ready && x.NotBefore > now:
		p.Waits = explain.Retry
		if x.Waits != nil {
			p.Why = fmt.Sprintf("%s asks to wait: %s.", component, strings.TrimSuffix(x.Waits.Reason, "."))
		}
	case x.Ready:
		p.Waits = explain.Turn
		p.Why = fmt.Sprintf("All conditions of %s hold: one of its next runs works on it.", component)
		p.Do = []explain.Step{runNow(component)}
	case x.Class == Failed || x.Condition == maxDepth:
		p.Waits, p.Do = explain.Person, []explain.Step{restart(x.Item)}
	case x.Class == Done:
		p.Waits = explain.Nothing
	default:
		p.Waits = explain.Event
	}

	p.Add("component", component)
	p.Add("condition that does not hold", x.Condition)
	return p
}

// claimed explains an item that a run has taken.
func (x *Standing) claimed(p *explain.Part, component string, now int64) {
	if x.Until <= now {
		p.Waits, p.Since, p.Until = explain.Turn, x.Until, 0
		p.Why = fmt.Sprintf("The run %s of %s had it, and has not ended its work in time; the next run takes it.",
			x.Run, component)
		return
	}

	p.Waits, p.Until = explain.Worker, x.Until
	p.Why = fmt.Sprintf("The run %s of %s works on it.", x.Run, component)
	p.Do = []explain.Step{{What: "If its worker has died, end its lease",
		Command: fmt.Sprintf("archivist component item release %s %s --reason TEXT", x.Item, component)}}
}

func restart(item string) explain.Step {
	return explain.Step{What: "When the cause is corrected, begin again at the first failure",
		Command: "archivist component item restart " + item + " --reason TEXT"}
}

func resume(component string) explain.Step {
	return explain.Step{What: "Resume the component",
		Command: "archivist component resume " + component + " --reason TEXT"}
}

func runNow(component string) explain.Step {
	return explain.Step{What: "Run it now", Command: "archivist component run " + component + " --reason TEXT"}
}

// Explain says what a component waits for: the end of its pause, what runs, or its next run. A NotFound means that
// there is no such component.
func (r *Runner) Explain(ctx context.Context, name string) (explain.Explanation, error) {
	c, err := r.component(ctx, name)
	if err != nil {
		return explain.Explanation{}, err
	}

	n, err := r.Store.Counts(ctx, name)
	if err != nil {
		return explain.Explanation{}, err
	}

	slots, err := r.slots(ctx, name)
	if err != nil {
		return explain.Explanation{}, err
	}

	p := c.part(n, slots, r.now())
	if n.Failed > 0 {
		p.Why += fmt.Sprintf(" %d items have failed and wait for a person, or for a change.", n.Failed)
		p.Do = append(p.Do, explain.Step{What: "See what failed",
			Command: "archivist component line " + name + " failed"})
	}
	return explain.Chain(p, func(run string) (explain.Part, error) { return r.explainRun(ctx, run) })
}

// part explains a component by the counts of its line and by its slots.
func (c *compiled) part(n Counts, slots []*slotRow, now int64) explain.Part {
	free, going := choose(c, slots)
	p := explain.Part{Link: explain.Link{Kind: explain.Component, ID: c.Name, State: "idle", Waits: explain.Nothing,
		Why: "No item is ready."}, Since: n.Oldest}
	switch {
	case c.Paused:
		p.State, p.Waits, p.Do = "paused", explain.Hold, []explain.Step{resume(c.Name)}
		p.Why = fmt.Sprintf("It is paused; %d items are ready.", n.Ready)
	case len(going) > 0:
		p.State, p.Waits, p.Until, p.On = "running", explain.Worker, going[0].Due, going[0].Run
		p.Why = fmt.Sprintf("It works on %d items; %d more are ready.", n.Running, n.Ready)
	case n.Ready == 0:
	case free != nil && now < free.Rest:
		p.Waits, p.Until, p.Do = explain.Retry, free.Rest, []explain.Step{runNow(c.Name)}
		p.Why = fmt.Sprintf("%d items are ready. Its last runs could do nothing, so the next one waits.", n.Ready)
	case !c.Wake:
		p.Waits, p.Do = explain.Time, []explain.Step{runNow(c.Name)}
		p.Why = fmt.Sprintf("%d items are ready. It runs by its schedule: %s.", n.Ready,
			cmp.Or(strings.TrimSpace(c.Schedule+" "+c.TimeZone), "none; a person runs it"))
	default:
		p.Waits = explain.Turn
		p.Why = fmt.Sprintf("%d items are ready; its next run begins within a minute.", n.Ready)
	}
	return p
}

// ExplainRun says how far a run of a component is, and until when it is waited for. A NotFound means that there is no
// such run.
func (r *Runner) ExplainRun(ctx context.Context, run string) (explain.Explanation, error) {
	p, err := r.explainRun(ctx, run)
	return explain.Only(p), err
}

func (r *Runner) explainRun(ctx context.Context, run string) (p explain.Part, err error) {
	row := &runRow{}
	err = r.Store.Table.Get(ctx, runKey(run), row)
	if fault.Is(err, fault.NotFound) {
		return p, fault.New(fault.NotFound, "there is no run %s", run)
	}
	if err != nil {
		return p, err
	}

	lanes, err := r.lanes(ctx, run)
	if err != nil {
		return p, err
	}

	done := sum(lanes)
	p.Kind, p.ID, p.State, p.Since = explain.Run, run, string(row.State), row.Started
	p.Waits = explain.Nothing
	p.Why = fmt.Sprintf("It has worked on %d items of %s, of which %d failed.", done.taken(), row.Component,
		done.Failed)
	p.Add("component", row.Component)
	p.Add("why it ended", row.Why)
	if row.State != RunGoing {
		return p, nil
	}

	slot := newSlot(row.Component, row.Slot)
	err = optional(r.Store.Table.Get(ctx, slot.Key(), slot))
	p.Waits, p.Until = explain.Worker, slot.Due
	p.Why += " It is given up if it does not go on in time."
	p.Add("execution", RunRef{Run: run, Exec: row.Exec}.execution())
	p.Do = []explain.Step{{What: "If it hangs, end it",
		Command: "archivist component interrupt " + row.Component + " --reason TEXT"}}
	return p, err
}
