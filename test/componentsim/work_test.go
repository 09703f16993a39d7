package componentsim

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"archivist/pkg/components/component"
	"archivist/pkg/events/event"
	"archivist/pkg/kernel/fault"
)

// work is one call of a component's function.
type work struct {
	component.Work
	a      *actor
	ended  bool
	task   bool // it is done by a container, which does not die with the actor
	result bool // it ended with a result that has to be stored
	stored bool
}

// function is the function of all components, in one process.
type function struct{ a *actor }

var errThrown = errors.New("sim: the function fails")

// Run works on one item: that takes its time, changes the item, fails, or is not yet possible.
func (f function) Run(ctx context.Context, in component.Work) (component.Result, error) {
	a := f.a
	a.inside.Add(1)
	defer a.inside.Add(-1)
	wk := &work{Work: in, a: a}
	a.w.check.kept(a, a.begun) // of the item before, in the same lane
	a.begun = wk
	name := in.Component + " " + in.Item
	err := a.Do("begin "+name, func() error {
		a.w.check.begins(wk)
		return nil
	})
	if err == nil {
		err = a.toil(ctx, in)
	}
	if err != nil {
		wk.ended = true
		return component.Result{}, fault.New(fault.Unavailable, "sim: %w", err)
	}
	res, err := a.decide(in)
	wk.ended, wk.result = true, stored(res, err)
	return res, err
}

// stored reports whether a result is one that has to be stored.
func stored(res component.Result, err error) bool {
	return !res.NotYet && !res.Again && !fault.Is(err, fault.Unavailable)
}

// toil takes the time of the work, sometimes longer than the lease, and makes its change.
func (a *actor) toil(ctx context.Context, in component.Work) error {
	if !a.w.Calm {
		longest := []time.Duration{0, 0, 0, 0, itemTime / 2, 2 * itemTime}[a.Rng.IntN(6)]
		if longest > 0 {
			if err := a.Wait(ctx, time.Duration(a.Rng.Int64N(int64(longest)))); err != nil {
				return err
			}
		}
	}
	s, is := strings.CutPrefix(in.Item, "object:")
	if !is || in.Component != index || a.Rng.IntN(2) == 0 {
		return nil
	}
	tx := a.table.Begin(a.newID())
	if err := a.touch(ctx, tx, event.Subject{Type: event.Object, ID: s}); err != nil {
		return err
	}
	return tx.Commit(ctx) // the context has the cause
}

// decide draws the result.
func (a *actor) decide(in component.Work) (res component.Result, err error) {
	res.Changed = slices.Contains(changes, in.Component)
	if a.w.Calm {
		return res, nil
	}
	switch n := a.Rng.IntN(100); {
	case in.Component == patient && n < 50:
		a.w.Met("work: not yet")
		return component.Result{NotYet: true, Reason: "sim: not yet"}, nil
	case n < a.w.s.fails:
		a.w.Met("work: failure")
		return component.Result{Outcome: event.Failure, Changed: res.Changed, Reason: "sim: a failure"}, nil
	case n > 97:
		a.w.Met("work: again")
		return component.Result{Again: true}, nil
	case n > 94:
		a.w.Met("work: error")
		return res, errThrown
	case n > 92:
		a.w.Met("work: unavailable")
		return res, fault.New(fault.Unavailable, "sim: something else is down")
	}
	return res, nil
}

// live reports whether a worker is at work, and its lease is not over by any clock: by two clocks it ends at times that
// differ by twice the skew at most. What a worker has done that believes longer in its lease is not stored: see stores.
func (wk *work) live(c *checker) bool {
	claim := c.claims[wk.Claim]
	latest := wk.a.Now().Add(2 * c.w.s.skew).UnixMilli()
	return !wk.ended && (wk.task || !wk.a.Dead()) && !claim.gone && latest < claim.until
}

// claimed is a claim, by its id.
type claimed struct {
	until int64
	gone  bool // it was given back, or released by hand
}

// begins is called when a worker begins with an item.
func (c *checker) begins(wk *work) {
	if c.item(wk.Item).is.Claims[wk.Component].ID != wk.Claim {
		c.w.Met("work begun after the end of the claim") // it will not be stored
		return
	}
	for other := range c.working {
		if other.Item == wk.Item && other.Component == wk.Component && other.live(c) {
			c.fail("%s: %s began with it in run %s, while run %s was working on it", wk.Item, wk.Component, wk.Run,
				other.Run)
		}
		if other.ended || other.a.Dead() && !other.task {
			delete(c.working, other)
		}
	}
	c.working[wk] = true
	c.w.Met("work of " + wk.Component)
}

// checkClaims checks who has taken or lost a claim by a change of the item, and what was stored.
func (c *checker) checkClaims(it *item, h history) {
	if !it.written {
		return
	}
	it.written = false
	a := c.w.acting()
	for _, d := range c.epochs[it.after.Epoch] {
		was, is := it.was.Claims[d.Name], it.is.Claims[d.Name]
		if was.ID != "" && was.ID != is.ID {
			c.loses(it, &d, was, a)
		}
		if is.ID != "" && was.ID != is.ID {
			c.takes(it, &d, h, a)
		}
	}
	for _, f := range c.ran {
		if f.Subject.ID == it.id {
			c.stores(it, f, a)
		}
	}
}

// takes checks a new claim: the item was free, and its condition held by all that was known.
func (c *checker) takes(it *item, d *component.Definition, h history, a *actor) {
	was, is := it.was.Claims[d.Name], it.is.Claims[d.Name]
	now := a.Now().UnixMilli()
	v := h.judge(d)
	switch {
	case was.Live(now):
		c.fail("%s: %s claimed it in run %s, while run %s had a claim until %d; it is %d", it.id, d.Name, is.Run,
			was.Run, was.Until, now)
	case !v.ready || v.from > now || it.was.Waits[d.Name].Until > now:
		c.fail("%s: %s claimed it, and its condition does not hold: %+v, %+v", it.id, d.Name, v, it.was.Waits[d.Name])
	case it.is.Applied < a.saw[it.id]:
		c.fail("%s: %s claimed it when it knew %d events of its subject, which had %d before", it.id, d.Name,
			it.is.Applied, a.saw[it.id])
	case is.BasedOn != component.SeenVersions{Subject: it.is.Applied, Item: it.is.Version}:
		c.fail("%s: %s claimed it at the versions %d and %d, and its claim says %+v", it.id, d.Name, it.is.Applied,
			it.is.Version, is.BasedOn)
	}
	c.claims[is.ID] = claimed{until: is.Until}
	c.w.Met("claim")
	if was.ID != "" {
		c.w.Met("claim taken from a dead or slow worker")
	}
}

// loses checks why a claim is gone: it was released by hand, it is over, or the worker gave it back.
func (c *checker) loses(it *item, d *component.Definition, was component.Claim, a *actor) {
	if it.is.Claims[d.Name].ID == "" {
		c.claims[was.ID] = claimed{until: was.Until, gone: true}
	}
	var newest fact // nothing, if the change has no event
	if it.is.Version > it.was.Version {
		newest = c.subjects[itemPrefix+it.id][it.is.Version-1]
	}
	switch {
	case newest.Type == "item.release" && newest.detail.Component == d.Name:
		c.w.Met("claim released by hand")
	case newest.Type == "component.ran" && newest.detail.Component == d.Name:
	case a.begun != nil && a.begun.Claim == was.ID, a.made[was.ID]: // it may not have begun: its component was not read
		c.w.Met("claim given back")
	case was.Live(a.Now().UnixMilli()):
		c.fail("%s: the claim of %s until %d is gone at %d", it.id, d.Name, was.Until, a.Now().UnixMilli())
	}
}

// stores checks an event that a worker stored: it had the claim, and its run had its slot.
func (c *checker) stores(it *item, f fact, a *actor) {
	was := it.was.Claims[f.detail.Component]
	wk := a.begun
	if was.Takes >= 3 && !was.Live(a.Now().UnixMilli()) && f.Outcome == event.Failure {
		c.w.Met("failure of an item whose workers died, again and again")
		return
	}
	switch {
	case wk == nil || wk.Item != it.id || wk.Component != f.detail.Component || wk.Claim != was.ID:
		c.fail("%s: an event of %s was stored by a worker of run %s that does not have the claim %+v", it.id,
			f.detail.Component, f.detail.Run, was)
		return
	case f.detail.Run != was.Run || f.detail.BasedOn != was.BasedOn:
		c.fail("%s: an event of %s is based on %+v in run %s, and the claim was %+v", it.id, f.detail.Component,
			f.detail.BasedOn, f.detail.Run, was)
	case f.Cause.Depth > c.registry[f.detail.Component].definition.MaxDepth:
		c.fail("%s: an event of %s is change %d in a chain of causes", it.id, f.detail.Component, f.Cause.Depth)
	case wk.stored:
		c.fail("%s: a result of %s was stored twice", it.id, f.detail.Component)
	}
	wk.stored = true
	c.passed(was.Run, fmt.Sprintf("an event of %s about %s", f.detail.Component, it.id))
}

// kept fails if a was told that a result is stored, and it is not, although nobody took the claim or ended
// the run.
func (c *checker) kept(a *actor, wk *work) {
	if wk == nil || !wk.result || wk.stored || a.Dead() {
		return
	}
	claim := c.item(wk.Item).is.Claims[wk.Component]
	if claim.ID == wk.Claim && claim.Live(a.Now().UnixMilli()) && c.runs[wk.Run] == "running" {
		c.fail("%s: the result of %s in run %s is lost: nothing is stored", wk.Item, wk.Component, wk.Run)
	}
}
