package component

import (
	"context"
	"encoding/json"
	"io"
	"slices"
	"strings"
	"time"

	"archivist/pkg/events/event"
	"archivist/pkg/formats/premis"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/table"
)

// ImportOptions say how a PREMIS document is imported.
type ImportOptions struct {
	// Zone is that of dates and times that state none; nil: events with such are refused.
	Zone *time.Location

	// Skip: events that are refused are left out; otherwise one of them refuses all.
	Skip bool

	// Try: nothing is recorded, and the result says what would be.
	Try bool
}

// Import is the result of an import: each event of the document is in one of the lists. Nothing is
// imported if an event is refused, unless Skip.
type Import struct {
	Item     string
	Imported []ImportedEvent // the oldest first; with Try, those that would be
	Present  []ImportedEvent // the item has them already
	Refused  []RefusedEvent
}

// ImportedEvent is an event of a document, by its identifier there.
type ImportedEvent struct {
	ID    premis.Identifier
	Event string // its name here
}

// importer is the component of imported events.
const importer = "import"

// importing is the reason of the event that stops the work on an item while only a part of a
// document is recorded. An import finds its own stop by it, so it stays as it is.
const importing = "a PREMIS document is being imported; if that was interrupted, import it again"

// maxAtOnce events, each of at most event.MaxDetail (64 KB), fit into one transaction of 4 MB.
const maxAtOnce = 40

// Import records the events of a PREMIS document as events of an item, the oldest first. The whole
// document is checked before anything is written. An event that the item has already, by its
// identifier, is not recorded again: so the same import, also one that was interrupted, can be
// repeated.
//
// Events that fit into one transaction are recorded at once. Otherwise the first transaction stops
// the work on the item, and the last lets it go on: no component works on an item with a part of
// its history.
//
// A document that cannot be read is an Invalid, an item that is not known a NotFound. A Conflict
// means that a component works on the item whose event is still to be recorded.
func (s *Store) Import(ctx context.Context, id string, doc io.Reader, o ImportOptions,
	by By) (Import, error) {
	if err := by.Check(); err != nil {
		return Import{}, err
	}

	kind, subject, err := ParseID(id)
	if err != nil {
		return Import{}, err
	}

	found, refused, err := readDocument(doc, o.Zone)
	if err != nil {
		return Import{}, err
	}

	w := &importWork{
		s:       s,
		o:       o,
		by:      by,
		found:   found,
		refused: refused,
		known:   map[premis.Identifier]recorded{},
		done:    map[premis.Identifier]bool{},
	}

	for w.more = true; w.more; {
		it, err := s.change(ctx, kind+":"+subject, func(c *change) error { return w.step(ctx, c) })
		if err != nil {
			return Import{}, err
		}
		w.item = it.ID
		for _, e := range w.batch {
			w.done[e.id] = true
		}
	}
	return w.result(), nil
}

// importWork is one call of Import: what it knows of the document and of the item. It can be more
// than one transaction.
type importWork struct {
	s       *Store
	o       ImportOptions
	by      By
	item    string
	found   []found        // the oldest first
	refused []RefusedEvent // by the document alone

	// What the item has, up to a version of its own events and of its subject's.
	known map[premis.Identifier]recorded
	upTo  SeenVersions

	// hold is the id of the newest event by which an import stopped the work. A stop by a person is
	// not one: it stays.
	hold string

	done map[premis.Identifier]bool // by this call

	// Of the newest step:
	batch  []found
	more   bool // events are left after it
	sorted sorted
}

// recorded is what is known of an event of the item: the same again is not recorded, another under
// the same identifier is refused. Without a name, it is known only that it is there.
type recorded struct {
	name, outcome string
	at            int64
}

// sorted are the events that were not recorded by this call: those that are left to be recorded,
// those that the item has, and those that it has otherwise.
type sorted struct {
	left, present []found
	differ        []RefusedEvent
}

// step records as many events as fit into one change. It is called again if another change was
// first, so it sorts the events anew each time, by what the item has then.
func (w *importWork) step(ctx context.Context, c *change) error {
	it := c.item()
	if err := c.known(); err != nil {
		return err
	}

	if err := w.learn(ctx, it); err != nil {
		return err
	}

	w.sorted, w.batch, w.more = w.sort(), nil, false
	if len(w.sorted.left) == 0 || w.refuses() {
		return nil
	}

	if err := w.fits(it); err != nil || w.o.Try {
		return err
	}

	if err := c.unclaimed(w.concerns); err != nil {
		return err
	}

	n := min(len(w.sorted.left), c.capacity())
	w.batch, w.more = w.sorted.left[:n], n < len(w.sorted.left)
	for _, e := range w.batch {
		if err := w.record(c, e); err != nil {
			return err
		}
	}
	return w.stop(c)
}

// refuses reports whether nothing is recorded because of events that are refused. It is asked again
// with each step: the item may have got another event with an identifier of the document since.
func (w *importWork) refuses() bool {
	return !w.o.Skip && len(w.refused)+len(w.sorted.differ) > 0
}

// capacity is how many events fit into a change: beside them are the item, the head of the
// registry, at most three rows of each component, and the event that stops the work.
func (c *change) capacity() int {
	return min(maxAtOnce, table.MaxActions-3*(1+len(c.defs.all)))
}

// record adds the event to the change. Its time is that of the import, as the order of registration
// decides what is newest; that of the document is kept beside it.
func (w *importWork) record(c *change, e found) error {
	it := c.item()
	if e.revokes != nil {
		return c.append("item.revoke", event.Success, importer, w.by,
			Revoked{Events: e.revokes, Reason: w.by.Reason, Imported: &e.imported})
	}
	return c.append("item.event", e.outcome, importer, w.by, Registered{
		Event:    e.name,
		BasedOn:  SeenVersions{Subject: it.Applied, Item: it.Version},
		Reason:   w.by.Reason,
		Imported: &e.imported,
	})
}

// stop stops the work on the item if events are left, and lets it go on after the last of them, if
// it was an import that stopped it. A person's stop, before or meanwhile, stays.
func (w *importWork) stop(c *change) error {
	it := c.item()
	mark, stopped := it.Marks[Stopped]
	switch {
	case w.more && !stopped:
		return c.append("item.event", event.Success, importer, w.by, Registered{
			Event:   Stopped,
			BasedOn: SeenVersions{Subject: it.Applied, Item: it.Version},
			Reason:  importing,
		})
	case !w.more && stopped && mark.ID == w.hold:
		return c.append("item.revoke", event.Success, importer, w.by,
			Revoked{Events: []string{Stopped},
				Reason: "the PREMIS document is imported"})
	}
	return nil
}

// sort finds out which events the item has, and which it has otherwise.
func (w *importWork) sort() (s sorted) {
	for _, e := range w.found {
		if w.done[e.id] {
			continue
		}

		has, is := w.has(e.id)
		same := recorded{e.name, e.outcome, e.imported.At}
		switch {
		case !is:
			s.left = append(s.left, e)
		case has.name == "" || has == same:
			s.present = append(s.present, e)
		default:
			s.differ = append(s.differ,
				RefusedEvent{e.id, "the item has another event with this identifier: " +
					has.name + ", " + has.outcome})
		}
	}
	return s
}

// fits refuses, with an Invalid, events with which the item has too many names of events. It looks
// at the whole document, so that an import does not end in the middle.
func (w *importWork) fits(it *Item) error {
	names := map[string]bool{}
	for _, e := range w.sorted.left {
		if e.revokes == nil {
			names[e.name] = true
		}
	}

	for name := range it.Marks {
		names[name] = true
	}

	for name := range it.Revoked {
		names[name] = true
	}

	if len(names) > MaxEventNames {
		return fault.New(fault.Invalid,
			"the events of item %s would have %d names; at most %d are accepted", it.ID,
			len(names), MaxEventNames)
	}
	return nil
}

// concerns reports whether an event that is left is one of a component: it must not work on the
// item while it is recorded.
func (w *importWork) concerns(d *compiled) bool {
	return slices.ContainsFunc(w.sorted.left, func(e found) bool {
		return d.Event == e.name || slices.Contains(e.revokes, d.Event)
	})
}

// learn reads which events the item has, of those that are not known yet: those of earlier steps
// are not read again.
func (w *importWork) learn(ctx context.Context, it *Item) error {
	err := w.s.events(ctx, itemSubject(it.ID), w.upTo.Item, it.Version, w.own)
	if err != nil {
		return err
	}

	w.upTo.Item = it.Version
	subject, ok := subjectOf(it.ID)
	if !ok {
		return nil
	}

	err = w.s.events(ctx, subject, w.upTo.Subject, it.Applied, func(row *event.Row) error {
		w.known[native(row)] = recorded{}
		return nil
	})
	if err != nil {
		return err
	}

	w.upTo.Subject = it.Applied
	return nil
}

// own adds an own event of the item to what is known, by the identifier that it has in PREMIS: an
// imported one by that of its document.
func (w *importWork) own(row *event.Row) error {
	var d struct {
		Event    string    `json:"event"`
		Reason   string    `json:"reason"`
		Imported *Imported `json:"imported"`
	}

	if err := json.Unmarshal([]byte(row.Detail), &d); err != nil {
		return fault.New(fault.Invalid, "the detail of event %s: %w", row.ID, err)
	}

	if d.Event == Stopped && d.Imported == nil && row.Component == importer &&
		d.Reason == importing {
		w.hold = row.ID
	}

	id, r := native(row), recorded{d.Event, row.Outcome, row.Time}
	if d.Imported != nil {
		id, r.at = premis.Identifier{Type: d.Imported.IDType, Value: d.Imported.ID}, d.Imported.At
	}

	w.known[id] = r
	return nil
}

// native is the identifier, in PREMIS, of an event that was not imported.
func native(row *event.Row) premis.Identifier {
	return premis.Identifier{Type: IDType,
		Value: row.ID}
}

// has finds an event of the item. Of one event of this archive, PREMIS can have several: "id",
// "id#2". So a document that this archive has exported adds nothing.
func (w *importWork) has(id premis.Identifier) (r recorded, is bool) {
	r, is = w.known[id]
	if is || id.Type != IDType {
		return r, is
	}
	id.Value, _, _ = strings.Cut(id.Value, "#")
	r, is = w.known[id]
	return r, is && r.name == ""
}

// result says what became of each event: each is in one of the lists. With Try, what would be
// recorded counts as imported.
func (w *importWork) result() (out Import) {
	out.Item = w.item
	for _, e := range w.found {
		if w.done[e.id] {
			out.Imported = append(out.Imported, ImportedEvent{e.id, e.name})
		}
	}

	if w.o.Try && !w.refuses() {
		for _, e := range w.sorted.left {
			out.Imported = append(out.Imported, ImportedEvent{e.id, e.name})
		}
	}

	for _, e := range w.sorted.present {
		out.Present = append(out.Present, ImportedEvent{e.id, e.name})
	}

	out.Refused = slices.Concat(w.refused, w.sorted.differ)
	return out
}
