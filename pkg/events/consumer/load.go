package consumer

import (
	"context"
	"slices"

	"archivist/pkg/events/envelope"
)

// read reads events with their payload, in the order of refs. Several refs can be of one event of
// the log, which is read once: those of a version and of its files stand together. An event that is
// not kept any more is a NotFound.
func (n *run) read(ctx context.Context, refs []ref) (all []seen, err error) {
	var facts []envelope.Event
	for _, f := range refs {
		if len(facts) == 0 || facts[len(facts)-1].Seq != f.Seq {
			facts = append(facts, f.facts(n.part.Name))
		}
	}

	events, err := n.r.Store.Log.Events(ctx, facts)
	if err != nil {
		return nil, err
	}

	for _, f := range refs {
		i := slices.IndexFunc(events, func(e envelope.Event) bool { return e.Seq == f.Seq })
		s, err := n.r.Store.showOne(ctx, events[i], f)
		if err != nil {
			return nil, err
		}
		all = append(all, s)
	}
	return all, nil
}

// load reads the events of a unit that waits or is parked, oldest first. An event that is not kept
// any more is a NotFound: such a unit can never be handled.
func (n *run) load(ctx context.Context, key string, refs []ref) (*unit, error) {
	events, err := n.read(ctx, refs)
	if err != nil {
		return nil, err
	}
	return &unit{key: key, events: events, item: itemOf(events)}, nil
}

// units are events as they are handled: each alone, or those of a key as one. They are in the order
// of their first events.
func (n *run) units(events []seen) []*unit {
	var all []*unit
	byKey := map[string]*unit{}
	for _, e := range events {
		k := key(n.c, e.Event)
		if n.c.Coalesce == nil {
			all = append(all, unitOf(k, e))
			continue
		}

		if u := byKey[k]; u != nil {
			u.add(e)
			continue
		}

		byKey[k] = unitOf(k, e)
		all = append(all, byKey[k])
	}

	if n.c.Coalesce == nil {
		return all
	}
	return coalesced(n.c, all)
}
