package componentsim

import (
	"context"
	"slices"
	"strings"

	"archivist/pkg/components/component"
	"archivist/pkg/events/event"
)

// by is who acts, and why.
func (a *actor) by() component.By { return component.By{Actor: a.Name, Reason: "the simulation"} }

// found makes the consumer and the components; the last ones come later, so that a back-fill finds
// items.
func (a *actor) found(ctx context.Context) {
	if _, err := a.run.Store.Apply(ctx, component.FollowerDefinition, a.consumerBy()); err != nil {
		a.w.check.fail("the consumer was refused: %v", err)
	}
	for i, id := range a.w.s.freeItems() {
		_, err := a.store.Create(ctx, id, component.CustomItem{Types: []string{"delivery"}}, a.by())
		if err == nil && i > 0 {
			_, err = a.store.Register(ctx, id, "Received", event.Success, a.by())
		}
		if err != nil {
			a.w.check.fail("the item %s was refused: %v", id, err)
		}
	}
	for _, d := range a.w.s.definitions()[1:] {
		if _, err := a.store.Apply(ctx, d, a.by()); err != nil {
			a.w.check.fail("the component %s was refused: %v", d.Name, err)
		}
	}
}

// did counts an action that was accepted.
func (a *actor) did(what, id string, err error) {
	a.w.Log("  (%s: %s %s: %v)", a.Name, what, id, err)
	if err == nil {
		a.w.Met("person: " + what)
	}
}

// act makes one action of a person: on an item, or on a component.
func (a *actor) act(ctx context.Context) {
	if a.Rng.IntN(3) == 0 {
		a.govern(ctx)
		return
	}
	items := a.w.s.items()
	id := items[a.Rng.IntN(len(items))]
	free := strings.HasPrefix(id, "item:")
	switch n := a.Rng.IntN(20); {
	case free && (n < 6 || a.w.check.items[id] == nil):
		a.shapes(ctx, id)
	case n < 10:
		outcome := event.Success
		if a.Rng.IntN(5) == 0 {
			outcome = event.Failure
		}
		_, err := a.store.Register(ctx, id, "Received", outcome, a.by())
		a.did("register", id, err)
	case n < 12:
		names := []string{"Received", "Shape_checked", "Facts_checked", "Counted", "Indexed", "Pinged"}
		_, err := a.store.Register(ctx, id, names[a.Rng.IntN(len(names))], event.Success, a.by())
		a.did("force", id, err)
	default:
		a.corrects(ctx, id, n)
	}
}

// shapes makes, changes or forgets a custom item.
func (a *actor) shapes(ctx context.Context, id string) {
	f := component.CustomItem{Types: []string{[]string{"delivery", "shipment"}[a.Rng.IntN(2)]}}
	if a.Rng.IntN(12) == 0 {
		_, err := a.store.Forget(ctx, id, a.by())
		a.did("forget", id, err)
		return
	}
	if it := a.w.check.items[id]; it != nil && it.is.Version > 0 && !it.is.Forgotten {
		_, err := a.store.Change(ctx, id, f, a.by())
		a.did("change", id, err)
		return
	}
	_, err := a.store.Create(ctx, id, f, a.by())
	a.did("create", id, err)
}

// corrects stops an item, undoes that, or lets the components work on it in another way.
func (a *actor) corrects(ctx context.Context, id string, n int) {
	var err error
	what := ""
	switch n {
	case 12:
		what = "stop"
		_, err = a.store.Stop(ctx, id, a.by())
	case 13, 14:
		what = "revoke"
		names := []string{"Facts_checked", component.Stopped, "Received", "Pinged"}
		_, err = a.store.Revoke(ctx, id, []string{names[a.Rng.IntN(len(names))]}, a.by())
	case 15, 16:
		what = "restart"
		from := []string{"", "", "Shape_checked"}[a.Rng.IntN(3)]
		_, err = a.store.Restart(ctx, id, from, a.by())
	case 17:
		what = "prioritize"
		_, err = a.store.Prioritize(ctx, id, 1+a.Rng.IntN(9), a.by())
	default:
		what = "release"
		_, err = a.store.Release(ctx, id, a.name(), a.by())
	}
	a.did(what, id, err)
}

// name draws a component.
func (a *actor) name() string {
	all := a.w.s.definitions()
	return all[a.Rng.IntN(len(all))].Name
}

// govern makes one action on a component.
func (a *actor) govern(ctx context.Context) {
	all := a.w.s.definitions()
	d := all[a.Rng.IntN(len(all))]
	switch n := a.Rng.IntN(11); {
	case n == 10:
		_, err := a.runner.Start(ctx, d.Name, a.by())
		a.did("start", d.Name, err)
	case n < 2:
		a.did("pause", d.Name, a.store.Pause(ctx, d.Name, a.by()))
	case n < 4:
		a.did("resume", d.Name, a.store.Resume(ctx, d.Name, a.by()))
	case n < 5:
		a.did("delete", d.Name, a.store.Delete(ctx, d.Name, a.by()))
	case n < 6:
		_, err := a.runner.Interrupt(ctx, d.Name, a.by())
		a.did("interrupt", d.Name, err)
	case n < 8: // with other conditions
		if d.Name == index {
			d.EveryDays++
		} else {
			d.Future = append(slices.Clone(d.Future), "Closed")
		}
		_, err := a.store.Apply(ctx, d, a.by())
		a.did("redefine", d.Name, err)
	default:
		_, err := a.store.Apply(ctx, d, a.by())
		a.did("apply", d.Name, err)
	}
}

// restore makes the components that there should be, and ends all pauses but one.
func (a *actor) restore(ctx context.Context, days int) {
	for _, d := range a.w.s.definitions() {
		r := a.w.check.registry[d.Name]
		paused := a.w.s.paused && d.Name == patient
		if d.Name == index {
			d.EveryDays = days
		}
		if r.State == "active" && r.definition.Paused == paused && r.definition.EveryDays == d.EveryDays {
			continue
		}
		_, err := a.store.Apply(ctx, d, a.by())
		a.w.Log("  (apply %s: %v)", d.Name, err)
		change := a.store.Resume
		if paused {
			change = a.store.Pause
		}
		a.w.Log("  (%s is paused: %v: %v)", d.Name, paused, change(ctx, d.Name, a.by()))
	}
}
