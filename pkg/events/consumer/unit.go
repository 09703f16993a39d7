package consumer

// unit is what is handled, parked, or waits as one: an event, or several of one key. Its id is that
// of the item, its newest event; its place is that of the first.
type unit struct {
	key string

	// events are oldest first, and never empty but in a redrive whose events are not kept.
	events []seen
	item   Item
	tries  int

	// again: it was parked before: it stays parked, however many tries it had.
	again bool
}

func unitOf(key string, e seen) *unit {
	return &unit{key: key, events: []seen{e}, item: Item{Event: e.Event}}
}

func (u *unit) add(e seen) { u.events = append(u.events, e) }

func (u *unit) before() position { return u.events[0].ref.before() }

func (u *unit) id() string { return u.item.ID }

func (u *unit) first() string { return u.events[0].ref.ID }

// refs names the unit's events up to a position.
func (u *unit) refs(end position) (refs []ref) {
	for _, e := range u.events {
		if e.ref.before().before(end) {
			refs = append(refs, e.ref)
		}
	}
	return refs
}

// verdict is a unit that was not handled: it failed, or it comes behind one of its key that
// did.
type verdict struct {
	unit   *unit
	reason string
	stack  string
	behind string // the id of the event that failed; "": this one
}

// about is the reason, with what is presented if the event of the log is not the one that failed.
func (v verdict) about() string {
	if s := v.unit.events[0].ref.Shown; s != nil {
		return s.SubjectType + " " + s.SubjectID + ": " + v.reason
	}
	return v.reason
}

// outcome is what calls of a target came to. What is in neither list was handled.
type outcome struct {
	failed []verdict

	// undone were not handled, and are not to blame: there was no time, or the target is broken.
	// They come again.
	undone []*unit

	// broken is why the target cannot be called; nil: it can.
	broken error
}

// join adds what other calls came to. Of several reasons why the target cannot be called, the first
// is kept.
func (o *outcome) join(other outcome) {
	o.failed = append(o.failed, other.failed...)
	o.undone = append(o.undone, other.undone...)
	if o.broken == nil {
		o.broken = other.broken
	}
}
