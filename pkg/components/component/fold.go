package component

import (
	"encoding/json"
	"slices"

	"archivist/pkg/events/consumer"
	"archivist/pkg/events/envelope"
	"archivist/pkg/events/event"
	"archivist/pkg/kernel/fault"
)

// Details of the events of items, as JSON. They are stored for good, so names of fields stay.
type (
	// Shape is the detail of item.create and item.change.
	Shape struct {
		Types   []string       `json:"types,omitempty"`
		Parents []envelope.Ref `json:"parents,omitempty"`
		Reason  string         `json:"reason,omitempty"`
	}

	// Forgot is the detail of item.forget.
	Forgot struct {
		Reason string `json:"reason,omitempty"`
	}

	// Ran is the detail of component.ran.
	Ran struct {
		Component  string       `json:"component"`
		Definition int          `json:"definition"` // its version
		Event      string       `json:"event"`      // the name of the event
		Run        string       `json:"run"`
		BasedOn    SeenVersions `json:"basedOn"`
		Started    int64        `json:"started"`  // milliseconds since 1970
		Duration   int64        `json:"duration"` // milliseconds
		Changed    bool         `json:"changed,omitempty"`
		Reason     string       `json:"reason,omitempty"`
		Report     *Report      `json:"report,omitempty"`
	}

	// Registered is the detail of item.event: an event that a person recorded, or that was
	// imported.
	Registered struct {
		Event    string       `json:"event"`
		BasedOn  SeenVersions `json:"basedOn"`
		Forced   bool         `json:"forced,omitempty"`
		Reason   string       `json:"reason,omitempty"`
		Imported *Imported    `json:"imported,omitempty"`
	}

	// Imported is what the document from which an event was imported says of it.
	Imported struct {
		IDType string `json:"identifierType"`
		ID     string `json:"identifier"`
		Type   string `json:"type"`
		Time   string `json:"time"` // as it is in the document
		At     int64  `json:"at"`   // the same, in milliseconds since 1970

		// Warned: the outcome is a warning, which counts as success.
		Warned bool    `json:"warned,omitempty"`
		Agents []Agent `json:"agents,omitempty"`
		Detail string  `json:"detail,omitempty"`
		Note   string  `json:"note,omitempty"`
	}

	// Agent is who took part in an imported event, as its document says.
	Agent struct {
		IDType  string `json:"identifierType"`
		ID      string `json:"identifier"`
		Role    string `json:"role,omitempty"`
		Name    string `json:"name,omitempty"`
		Type    string `json:"type,omitempty"` // e.g. "software"
		Version string `json:"version,omitempty"`
	}

	// Revoked is the detail of item.revoke: events of these names, up to this one, count no longer.
	Revoked struct {
		Events   []string  `json:"events"`
		Reason   string    `json:"reason,omitempty"`
		Imported *Imported `json:"imported,omitempty"`
	}

	// Prioritized is the detail of item.prioritize.
	Prioritized struct {
		Priority int    `json:"priority"`
		Reason   string `json:"reason,omitempty"`
	}

	// Released is the detail of item.release: a component's lease on the item was taken away.
	Released struct {
		Component string `json:"component"`
		Reason    string `json:"reason,omitempty"`
	}
)

// apply adds the next event of the item's own, or of its subject, to what is known of it. An event
// that is known already changes nothing. It is a pure function of the item and the event, and
// events of the two sequences can come in any interleaving. An Invalid means that an own event is
// missing or damaged; then the item is not to be used.
func (it *Item) apply(e envelope.Event) error {
	if e.Subject.Type == event.Item.String() {
		return it.applyOwn(e)
	}

	if e.Version <= it.Applied {
		return nil
	}

	it.Applied = e.Version
	it.seen(e)
	if len(e.Parents) > 0 {
		it.Parents = e.Parents
	}

	if len(e.Identifiers) > 0 {
		it.Identifiers = e.Identifiers
	}

	it.mark(e, e.Type, SeenVersions{}) // it is based on nothing: only events of components can be old
	it.Subject = changed(it.Subject, e)
	return nil
}

// applyOwn adds an own event. These are read in order and without gaps, since each is written with
// the item's row.
func (it *Item) applyOwn(e envelope.Event) error {
	if e.Version <= it.Version {
		return nil
	}

	if e.Version != it.Version+1 {
		return fault.New(fault.Invalid,
			"item %s: event %d follows event %d; those in between are missing", it.ID,
			e.Version, it.Version)
	}

	it.Version = e.Version
	it.seen(e)
	f, known := folds[e.Type]
	if !known {
		return fault.New(fault.Invalid,
			"item %s: event %d is of the type %q, which items do not have", it.ID,
			e.Version, e.Type)
	}
	return f(it, e)
}

// folds are what each type of own events changes. A type is never removed: its events stay.
var folds = map[string]func(*Item, envelope.Event) error{
	"item.create": (*Item).applyShape,
	"item.change": (*Item).applyShape,
	"item.forget": func(it *Item, _ envelope.Event) error {
		*it = Item{
			ID:        it.ID,
			Version:   it.Version,
			Applied:   it.Applied,
			Forgotten: true,
			Cleared:   it.Version,
		}
		return nil
	},
	"component.ran": func(it *Item, e envelope.Event) error {
		d, err := detail[Ran](it, e)
		if err != nil {
			return err
		}
		it.mark(e, d.Event, d.BasedOn)
		if d.Changed {
			it.Own = changed(it.Own, e)
		}
		delete(it.Claims, d.Component)
		delete(it.Waits, d.Component)
		return nil
	},
	"item.event": func(it *Item, e envelope.Event) error {
		d, err := detail[Registered](it, e)
		if err != nil {
			return err
		}
		it.mark(e, d.Event, d.BasedOn)
		return nil
	},
	"item.revoke": func(it *Item, e envelope.Event) error {
		d, err := detail[Revoked](it, e)
		if err != nil {
			return err
		}
		for _, name := range d.Events {
			delete(it.Marks, name)
			if it.Revoked == nil {
				it.Revoked = map[string]int64{}
			}
			it.Revoked[name] = e.Version
		}
		return nil
	},
	"item.prioritize": func(it *Item, e envelope.Event) error {
		d, err := detail[Prioritized](it, e)
		if err != nil {
			return err
		}
		it.Priority = d.Priority
		return nil
	},
	"item.release": func(it *Item, e envelope.Event) error {
		d, err := detail[Released](it, e)
		if err != nil {
			return err
		}
		delete(it.Claims, d.Component)
		return nil
	},
}

// applyShape adds that a custom item was made, or changed.
func (it *Item) applyShape(e envelope.Event) error {
	d, err := detail[Shape](it, e)
	if err != nil {
		return err
	}
	it.Forgotten = false
	it.Types, it.Parents, it.Identifiers = slices.Clone(d.Types), d.Parents, e.Identifiers
	slices.Sort(it.Types)
	it.Own = changed(it.Own, e)
	return nil
}

// detail reads the detail of an own event. One that cannot be read is an Invalid.
func detail[D any](it *Item, e envelope.Event) (d D, err error) {
	if err := json.Unmarshal(e.Detail, &d); err != nil {
		return d, fault.New(fault.Invalid, "item %s: the detail of event %s: %w", it.ID, e.ID, err)
	}
	return d, nil
}

// seen keeps the time of the oldest event.
func (it *Item) seen(e envelope.Event) {
	if it.First == 0 || e.Time < it.First {
		it.First = e.Time
	}
}

// mark makes an event the newest of its name. based is what its component knew of the item. A
// success ends a row of failures.
func (it *Item) mark(e envelope.Event, name string, based SeenVersions) {
	if it.Marks == nil {
		it.Marks = map[string]Mark{}
	}

	m := Mark{
		ID:      e.ID,
		Version: e.Version,
		Outcome: e.Outcome,
		At:      e.Time,
		BasedOn: based,
		Cause:   consumer.CauseOf(e),
	}

	if e.Outcome == event.Failure {
		m.Failures = it.Marks[name].Failures + 1
	}

	it.Marks[name] = m
}

// changed adds a change of the content to the two that are kept of a sequence: the newest, and the
// newest that another component made. Two are enough to know, for any component, the newest change
// that it did not make itself.
func changed(kept [2]Change, e envelope.Event) [2]Change {
	c := Change{Version: e.Version, Component: maker(e), Cause: consumer.CauseOf(e)}
	if kept[0].Version > 0 && kept[0].Component != c.Component {
		return [2]Change{c, kept[0]}
	}
	return [2]Change{c, kept[1]}
}

// maker is the component that changed the content, "" for people and parts of the system, whose
// names a component may have. A subject is changed by a part of the system: its maker is the
// component that asked for it, which is the last in the chain of causes (see Work.Cause).
func maker(e envelope.Event) string {
	switch {
	case e.Type == "component.ran":
		return e.Context.Component
	case e.Subject.Type != event.Item.String():
		return e.Cause.AskedBy()
	}
	return ""
}

// foreign is the newest change that a component did not make itself. (Source: the note on
// lastModified in the autonomous-components text: a component is not triggered by what it did
// itself.) Version 0: there is none.
func foreign(kept [2]Change, component string) Change {
	if kept[0].Component == component {
		return kept[1]
	}
	return kept[0]
}
