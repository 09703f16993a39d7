package event

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"archivist/pkg/events/envelope"
	"archivist/pkg/kernel/fault"
)

// Envelope is the event in the form that everybody sees. A row that an earlier release wrote is
// brought to the newest schema of its type first. It returns an Invalid for a row that a newer
// release wrote, and for one that is damaged: the caller can only wait for the newer release, or
// tell a person.
func (r Row) Envelope() (envelope.Event, error) {
	kind, known := envelope.KindOf(r.Type)
	if !known {
		return envelope.Event{}, r.unreadable("this release knows no events of type %q", r.Type)
	}

	if r.Schema > kind.Schema {
		return envelope.Event{},
			r.unreadable("its schema %d is newer than %d, the newest that this release reads",
				r.Schema, kind.Schema)
	}

	e := envelope.Event{
		ID:          r.ID,
		Subject:     envelope.Ref{Type: r.SubjectType, ID: r.SubjectID},
		Version:     r.Version,
		Type:        r.Type,
		Time:        r.Time,
		Outcome:     r.Outcome,
		Objects:     r.Objects,
		Parents:     r.Parents,
		Identifiers: r.Identifiers,
		Context: envelope.Context{
			Actor:       r.Actor,
			Component:   r.Component,
			Version:     r.Software,
			Modules:     r.Modules,
			Request:     r.Request,
			Transaction: envelope.Transaction{ID: r.Tx, Index: r.TxIndex, Count: r.TxCount},
		},
		Cause:     r.Cause,
		Detail:    payload(r.Detail),
		Before:    payload(r.Before),
		After:     payload(r.After),
		Schema:    max(r.Schema, 1),
		Partition: r.Partition,
		Seq:       r.Seq,
	}

	for ; e.Schema < kind.Schema; e.Schema++ {
		if err := upcast(&e); err != nil {
			return envelope.Event{}, r.unreadable("schema %d: %w", e.Schema, err)
		}
	}

	var err error
	e.Properties, err = properties(e.Before, e.After)
	if err != nil {
		return envelope.Event{}, r.unreadable("before and after: %w", err)
	}

	e.Action = kind.ActionOf(e.Version, state(e.After))
	return e, nil
}

// unreadable is the error about a row that has no envelope.
func (r Row) unreadable(format string, args ...any) error {
	return fault.New(fault.Invalid, "event: %s: %w", r.Key(), fmt.Errorf(format, args...))
}

// properties are the names in before and after, each once, sorted.
func properties(before, after json.RawMessage) ([]string, error) {
	names := map[string]json.RawMessage{}
	for _, side := range []json.RawMessage{before, after} {
		if side == nil {
			continue
		}
		if err := json.Unmarshal(side, &names); err != nil {
			return nil, err
		}
	}
	return slices.Sorted(maps.Keys(names)), nil
}

// state is the state that an event left its subject in, "" if it names none. It decides the action:
// a subject that is Deleted after it was deleted by it.
func state(after json.RawMessage) string {
	var named struct {
		State string `json:"state"`
	}
	_ = json.Unmarshal(after, &named) // other values have no state
	return named.State
}
