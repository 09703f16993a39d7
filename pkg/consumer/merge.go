package consumer

import (
	"encoding/json"
	"slices"

	"archivist/pkg/envelope"
)

// maxMerged is how many events are coalesced into one, at most: a row names all of them.
const maxMerged = 100

// merged makes one item of the events of each unit. Units whose events cancel out are left
// out, if the consumer wants that.
func merged(c Consumer, all []*unit) []*unit {
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

// itemOf is one item for events of a key, oldest first: the newest of them, with what
// changed from the first to the last. Its cause is the longest chain of theirs.
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

func object(m map[string]json.RawMessage) json.RawMessage {
	if len(m) == 0 {
		return nil
	}
	b, _ := json.Marshal(m) // its values are JSON
	return b
}

func distinct(all []string) []string {
	slices.Sort(all)
	return slices.Compact(all)
}

// withoutCancelled leaves out the events of subjects that were created first and deleted last.
func withoutCancelled(events []seen) (kept []seen) {
	type ends struct{ first, last string }
	of := map[envelope.Ref]ends{}
	name := func(e seen) envelope.Ref { return envelope.Ref{Type: e.Subject.Type, ID: e.Subject.ID} }
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
