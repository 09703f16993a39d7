package component

import (
	"context"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"strings"

	"archivist/pkg/events/envelope"
	"archivist/pkg/events/event"
	"archivist/pkg/kernel/definition"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/registry"
)

// Limits of what people can ask for, each with its reason.
const (
	MaxPriority = 9

	// maxSummary is how much of the summary of a request an item's row keeps, in bytes, of each of
	// the last registry.MaxRequests.
	maxSummary = 500
)

// ActionResult is what an action on an item did. A repeated request has the answer of the first.
type ActionResult struct {
	Item *Item

	// Changed false: the item was already as the action wants it.
	Changed bool

	// Summary is what was done, in a sentence.
	Summary string
}

// byHand is the component of the events of actions.
const byHand = "items"

// control makes an action on an item. decide checks everything, changes the item, and says what it
// did, in a sentence; it is called again if another change was first. asked are the action and its
// arguments: the same request with others is refused with a Conflict. An Invalid means that the id
// or the reason cannot be read; other errors are those of decide and of change.
func (s *Store) control(ctx context.Context, id string, by By,
	decide func(c *change) (string, error),
	asked ...any) (out ActionResult, err error) {
	if err := by.Check(); err != nil {
		return out, err
	}

	kind, subject, err := ParseID(id)
	if err != nil {
		return out, err
	}

	sum, err := sumOf(asked)
	if err != nil {
		return out, err
	}

	out.Item, err = s.change(ctx, kind+":"+subject, func(c *change) error {
		if by.Request != "" {
			for _, r := range c.row.Requests {
				if r.ID != by.Request {
					continue
				}
				out.Changed, out.Summary = r.Changed, r.Summary
				return r.same(sum)
			}
		}

		summary, err := decide(c)
		if err != nil {
			return err
		}

		// An action that adds no event has changed nothing that anybody can see.
		out.Changed, out.Summary = c.events > 0, summary
		c.remember(request{
			ID:      by.Request,
			Sum:     sum,
			Changed: out.Changed,
			Summary: cut(summary, maxSummary),
		})

		return nil
	})
	return out, err
}

// sumOf is a number by which a request is compared with an earlier one: FNV-1a of the JSON of what
// is asked for.
func sumOf(asked []any) (uint64, error) {
	text, err := json.Marshal(asked)
	if err != nil {
		return 0, err
	}
	h := fnv.New64a()
	h.Write(text)
	return h.Sum64() >> 1, nil // it fits into an int64, too
}

// same refuses the id of a request that was used for another one.
func (r request) same(sum uint64) error {
	if r.Sum == sum {
		return nil
	}
	return fault.New(fault.Conflict,
		"the id of this request was used for another one before (%s); send a new id",
		r.Summary)
}

// remember keeps a request with the item, also if it changed nothing: its repetition must have the
// same answer, although the item was changed by others since.
func (c *change) remember(r request) {
	if r.ID == "" {
		return
	}
	kept := append(slices.Clone(c.row.Requests), r)
	c.row.Requests = kept[max(0, len(kept)-registry.MaxRequests):]
	c.remembers = true
}

// room refuses another name of events, if the item has too many. Names of components' events are
// always accepted. So are names that the item has, or had before they were revoked.
func (c *change) room(name string) error {
	ofComponent := func(d *compiled) bool { return d.Event == name }
	if len(c.named(ofComponent)) > 0 {
		return nil // there are few of these
	}

	names := map[string]bool{name: true}
	for n := range c.item().Marks {
		names[n] = true
	}

	for n := range c.item().Revoked {
		names[n] = true
	}

	if len(names) > MaxEventNames && c.item().isNew(name) {
		return fault.New(fault.Invalid,
			"event: %s would be a new name, and the events of %s have %d names; at most "+
				"%d are accepted", name, c.item().ID, len(names)-1, MaxEventNames)
	}
	return nil
}

// isNew reports whether no event of the item ever had a name.
func (it *Item) isNew(name string) bool {
	_, marked := it.Marks[name]
	_, revoked := it.Revoked[name]
	return !marked && !revoked
}

// Register records an event of a name by hand, with an outcome. If it is the event of a component,
// it is forced: the component's work counts as done, or as failed. That is refused while the
// component works on the item. An Invalid means that the name or the outcome is not one, or that
// the item has too many names of events.
func (s *Store) Register(ctx context.Context, id, name, outcome string, by By) (ActionResult, error) {
	if outcome == "" {
		outcome = event.Success
	}

	if name == Stopped {
		return ActionResult{}, fault.New(fault.Invalid,
			"event: %s stops the work on the item; use the action stop", Stopped)
	}

	if err := CheckEventName("event", name); err != nil {
		return ActionResult{}, err
	}

	if err := definition.Choice("outcome", outcome, event.Success, event.Failure); err != nil {
		return ActionResult{}, err
	}
	return s.control(ctx, id, by,
		func(c *change) (string, error) { return c.register(name, outcome, by) },
		"event", name, outcome)
}

// register adds an event by hand.
func (c *change) register(name, outcome string, by By) (string, error) {
	if err := c.known(); err != nil {
		return "", err
	}

	if err := c.room(name); err != nil {
		return "", err
	}

	of := func(d *compiled) bool { return d.Event == name }
	if err := c.unclaimed(of); err != nil {
		return "", err
	}

	owners := c.named(of)
	it := c.item()
	summary := fmt.Sprintf("%s has the event %s with the outcome %s", it.ID, name, outcome)
	if len(owners) > 0 {
		summary += ", as if it were of the component " + strings.Join(owners, ", ")
	}
	return summary, c.append("item.event", outcome, byHand, by, Registered{
		Event:   name,
		Forced:  len(owners) > 0,
		BasedOn: SeenVersions{Subject: it.Applied, Item: it.Version},
		Reason:  by.Reason,
	})
}

// named are the names of the components for which a condition holds.
func (c *change) named(of func(*compiled) bool) (names []string) {
	for i := range c.defs.all {
		if of(&c.defs.all[i]) {
			names = append(names, c.defs.all[i].Name)
		}
	}
	return names
}

// Revoke makes events of these names count no longer: for every component it is as if they had
// never happened. They stay in the history. Names that no event has are named in the summary. It is
// refused, with a Conflict, while a component works on the item that records one of them or works
// because of one: its result would be based on what does not count.
func (s *Store) Revoke(ctx context.Context, id string, names []string, by By) (ActionResult, error) {
	names = slices.Compact(slices.Sorted(slices.Values(names)))
	if len(names) == 0 {
		return ActionResult{}, fault.New(fault.Invalid, "events: expected the name of at least one event")
	}

	if len(names) > MaxEventNames {
		return ActionResult{}, fault.New(fault.Invalid,
			"events: %d names; at most %d are accepted, and no item has more",
			len(names), MaxEventNames)
	}

	for _, name := range names {
		if _, core := envelope.KindOf(name); core {
			return ActionResult{}, fault.New(fault.Invalid,
				"events: %s is an event of the system itself; only events of "+
					"components and of people can be revoked", name)
		}
		if err := CheckEventName("events", name); err != nil {
			return ActionResult{}, err
		}
	}
	return s.control(ctx, id, by, func(c *change) (string, error) {
		if err := c.known(); err != nil {
			return "", err
		}
		return c.revoke(names, by)
	}, "revoke", names)
}

// revoke revokes the events of those names that count. If none does, nothing is changed, and the
// summary says so.
func (c *change) revoke(names []string, by By) (string, error) {
	there, missing := []string{}, []string{}
	for _, name := range names {
		if _, ok := c.item().Marks[name]; ok {
			there = append(there, name)
		} else {
			missing = append(missing, name)
		}
	}

	if len(there) == 0 {
		return fmt.Sprintf("no event %s of %s counts; nothing is changed",
			strings.Join(missing, ", "),
			c.item().ID), nil
	}

	if err := c.unclaimed(func(d *compiled) bool { return d.regards(there) }); err != nil {
		return "", err
	}

	for _, name := range c.named(func(d *compiled) bool {
		return slices.Contains(there, d.Event)
	}) {
		delete(c.item().Waits, name) // it begins anew
	}

	summary := fmt.Sprintf("%s of %s counts no longer", strings.Join(there, ", "), c.item().ID)
	if len(missing) > 0 {
		summary += "; there was no event " + strings.Join(missing, ", ") + " that counts"
	}
	return summary, c.append("item.revoke", "", byHand, by,
		Revoked{Events: there, Reason: by.Reason})
}

// regards reports whether the component records one of these events, or works because of one.
func (c *compiled) regards(names []string) bool {
	return slices.ContainsFunc(names, func(name string) bool {
		return name == c.Event || slices.Contains(c.PastSuccess, name) ||
			slices.Contains(c.PastFailure, name)
	})
}

// Restart lets the components work on an item again: from the event of a name on, or if it is "",
// from the first failure on. The names of all events from that one on are revoked, with their
// earlier events too: an earlier success would otherwise count again. A stop ends. A Conflict means
// that there is no such event that counts.
func (s *Store) Restart(ctx context.Context, id, from string, by By) (ActionResult, error) {
	if from != "" {
		if err := CheckEventName("from", from); err != nil {
			return ActionResult{}, err
		}
	}
	return s.control(ctx, id, by, func(c *change) (string, error) {
		if err := c.known(); err != nil {
			return "", err
		}
		names, err := c.item().after(from)
		if err != nil {
			return "", err
		}
		summary, err := c.revoke(names, by)
		return "restarted: " + summary, err
	}, "restart", from)
}

// after are the names of the events that count from an event on, the oldest first, and Stopped.
// Events of the system are left out: what happened to the subject cannot be taken back.
func (it *Item) after(from string) (names []string, err error) {
	for name := range it.Marks {
		if _, core := envelope.KindOf(name); !core {
			names = append(names, name)
		}
	}

	slices.SortFunc(names,
		func(a, b string) int { return int(it.Marks[a].Version - it.Marks[b].Version) })
	// Numbers are of the item's own sequence: all of these events are its own.
	first := slices.Index(names, from)
	if from == "" {
		first = slices.IndexFunc(names,
			func(name string) bool { return it.Marks[name].Outcome == event.Failure })
	}

	switch {
	case first < 0 && from == "":
		return nil, fault.New(fault.Conflict,
			"no event of %s that counts is a failure; name the event from which to "+
				"restart", it.ID)
	case first < 0:
		return nil, fault.New(fault.Conflict,
			"%s has no event %s that counts; its events that count: %s", it.ID, from,
			strings.Join(names, ", "))
	case slices.Contains(names[:first], Stopped):
		return append(names[first:], Stopped), nil
	}
	return names[first:], nil
}

// Stop lets no component begin work on an item any more, until the event Stopped is revoked. Those
// that work on it end their work; the summary names them.
func (s *Store) Stop(ctx context.Context, id string, by By) (ActionResult, error) {
	return s.control(ctx, id, by, func(c *change) (string, error) {
		if err := c.known(); err != nil {
			return "", err
		}

		it := c.item()
		if _, ok := it.Marks[Stopped]; ok {
			return it.ID + " was stopped before", nil
		}

		summary := it.ID + " is stopped"
		for _, name := range slices.Sorted(maps.Keys(it.Claims)) {
			if claim := it.Claims[name]; claim.Live(c.now) {
				summary += fmt.Sprintf("; component %s is still working on it, until %s at the latest", name,
					clock(claim.Until))
			}
		}
		return summary, c.append("item.event", event.Success, byHand, by, Registered{
			Event:   Stopped,
			BasedOn: SeenVersions{Subject: it.Applied, Item: it.Version},
			Reason:  by.Reason,
		})
	}, "stop")
}

// Prioritize gives an item another priority, 1 to 9. Components work on items of priority 9 first.
func (s *Store) Prioritize(ctx context.Context, id string, priority int, by By) (ActionResult, error) {
	if err := definition.Within("priority", priority, 1, MaxPriority); err != nil {
		return ActionResult{}, err
	}
	return s.control(ctx, id, by, func(c *change) (string, error) {
		if err := c.known(); err != nil {
			return "", err
		}
		summary := fmt.Sprintf("%s has the priority %d of 1 to %d", c.item().ID, priority,
			MaxPriority)
		if c.item().Rank() == priority {
			return summary, nil
		}
		return summary, c.append("item.prioritize", "", byHand, by,
			Prioritized{Priority: priority, Reason: by.Reason})
	}, "prioritize", priority)
}

// Release takes a component's lease on an item away: what the worker that had it does, is not
// recorded, and the component can begin again. It is for a worker that is known to be dead; a lease
// that has ended needs no release. A NotFound means that there is no such item or component.
func (s *Store) Release(ctx context.Context, id, component string, by By) (ActionResult, error) {
	if !definition.Names.MatchString(component) {
		return ActionResult{}, missing(component)
	}
	return s.control(ctx, id, by, func(c *change) (string, error) {
		if err := c.known(); err != nil {
			return "", err
		}

		it := c.item()
		if _, ok := it.Claims[component]; !ok {
			_, err := c.defs.of(component)
			return fmt.Sprintf("component %s has no lease on %s; nothing is changed", component,
				it.ID), err
		}
		return fmt.Sprintf("the lease of component %s on %s is released; what its worker does is not recorded",
				component, it.ID), c.append("item.release", "", byHand, by,
				Released{Component: component, Reason: by.Reason})
	}, "release", component)
}
