package consumer

import (
	"encoding/json"
	"slices"

	"archivist/pkg/events/envelope"
)

// maxCoalesced is how many events are coalesced into one, at most: a row names all of them, and one
// transaction writes many such rows.
const maxCoalesced = 100

// coalesced makes one item of the events of each unit, and keeps the order of units. Units whose
// events cancel out are left out, if the consumer wants that: they count as handled.
func coalesced(c Consumer, all []*unit) []*unit {
	kept := all[:0:0]
	for _, u := range all {
		if c.Coalesce.Cancel {
			u.events = withoutCancelled(u.events)
		}
		if len(u.events) == 0 {
			continue
		}
		u.item = itemOf(u.events)
		kept = append(kept, u)
	}
	return kept
}

// itemOf is one item for events of a key, oldest first: the newest of them, with what changed from
// the first to the last: of each property the first value before, and the last after. Its cause is
// the longest chain of theirs, so that coalescing does not hide a cycle from the depth limit.
func itemOf(events []seen) Item {
	it := Item{Event: events[len(events)-1].Event}
	if len(events) == 1 {
		return it
	}

	it.Count, it.FirstSeq, it.LastSeq = len(events), events[0].Seq, it.Seq
	before, after := map[string]json.RawMessage{}, map[string]json.RawMessage{}
	for _, e := range events {
		it.IDs = append(it.IDs, e.ID)
		it.Types = append(it.Types, e.Type)
		it.Properties = append(slices.Clip(it.Properties), e.Properties...)
		if e.Cause.Depth > it.Cause.Depth {
			it.Cause = e.Cause
		}

		for name, v := range fields(e.Before) {
			if _, known := before[name]; !known && after[name] == nil {
				before[name] = v
			}
		}

		for name, v := range fields(e.After) {
			after[name] = v
		}
	}

	it.Types, it.Properties = distinct(it.Types), distinct(it.Properties)
	it.Before, it.After = object(before), object(after)
	return it
}

// fields are the fields of a JSON object; none of other values.
func fields(b json.RawMessage) (m map[string]json.RawMessage) {
	if json.Unmarshal(b, &m) != nil {
		return nil
	}
	return m
}

// object is a map as a JSON object; nil for an empty one, so that the field is left out.
func object(m map[string]json.RawMessage) json.RawMessage {
	if len(m) == 0 {
		return nil
	}
	b, _ := json.Marshal(m) // its values are JSON
	return b
}

// distinct sorts the texts, in place, and leaves out repetitions.
func distinct(all []string) []string {
	slices.Sort(all)
	return slices.Compact(all)
}

// withoutCancelled leaves out the events of subjects that were created first and deleted last: with
// what happened in between, they leave nothing behind. A subject that was there before its first
// event here is kept.
func withoutCancelled(events []seen) (kept []seen) {
	type ends struct{ first, last string }
	of := map[envelope.Ref]ends{}
	name := func(e seen) envelope.Ref {
		return envelope.Ref{Type: e.Subject.Type,
			ID: e.Subject.ID}
	}

	for _, e := range events {
		x, seen := of[name(e)]
		if !seen {
			x.first = e.Action
		}
		x.last = e.Action
		of[name(e)] = x
	}

	for _, e := range events {
		if x := of[name(e)]; x.first != envelope.Create || x.last != envelope.Delete {
			kept = append(kept, e)
		}
	}
	return kept
}
