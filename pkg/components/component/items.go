package component

import (
	"context"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"archivist/pkg/events/envelope"
	"archivist/pkg/events/event"
	"archivist/pkg/kernel/definition"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/registry"
)

// Limits of a custom item: all of it is in each of its events.
const (
	MaxTypes       = 20
	MaxParents     = 20
	MaxIdentifiers = 20
	// MaxIdentifier is in bytes.
	MaxIdentifier = 200
)

// CustomItem is what people say of a custom item: one without a subject, such as a delivery or a box
// of newspapers.
type CustomItem struct {
	Types       []string       `json:"types"`
	Parents     []envelope.Ref `json:"parents"`
	Identifiers []string       `json:"identifiers"`
}

// collections are names of collections, which decide the log of an item's events.
var collections = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$`)

// ofSubjects are the types of items that follow from what is ingested. An item without a subject cannot be one.
var ofSubjects = []event.Type{event.Object, event.Version, event.File, event.Batch, event.Job, event.Collection}

// check puts what a custom item is into its normal form (sorted, nothing twice), and refuses, with an
// Invalid, what is too much of it or not text in a line.
func (f *CustomItem) check() error {
	for _, l := range []struct {
		field   string
		n, most int
	}{{"types", len(f.Types), MaxTypes}, {"parents", len(f.Parents), MaxParents},
		{"identifiers", len(f.Identifiers), MaxIdentifiers}} {
		if l.n > l.most {
			return fault.New(fault.Invalid, "%s: %d; at most %d are accepted", l.field, l.n, l.most)
		}
	}

	for _, t := range f.Types {
		if err := CheckType(t); err != nil {
			return err
		}
		if slices.ContainsFunc(ofSubjects, func(of event.Type) bool { return of.String() == t }) {
			return fault.New(fault.Invalid, "types: %q is the type of items that come from what is ingested, and "+
				"components for it expect content; take a name of your own, e.g. Delivery", t)
		}
	}

	for _, name := range f.Identifiers {
		if name == "" || len(name) > MaxIdentifier || !utf8.ValidString(name) ||
			strings.ContainsFunc(name, registry.IsBreak) {
			return fault.New(fault.Invalid,
				"identifiers: %q: expected 1 to %d bytes, of text in one line",
				definition.Clip(name, 60), MaxIdentifier)
		}
	}

	f.Types = slices.Compact(slices.Sorted(slices.Values(f.Types)))
	f.Identifiers = slices.Compact(slices.Sorted(slices.Values(f.Identifiers)))
	return f.checkParents()
}

// checkParents refuses parents that are there twice, and more than one collection: the events of an
// item are in one log.
func (f *CustomItem) checkParents() error {
	seen := map[envelope.Ref]bool{}
	inCollection := false
	for _, p := range f.Parents {
		if err := checkParent(p); err != nil {
			return err
		}

		isCollection := p.Type == event.Collection.String()
		switch {
		case seen[p]:
			return fault.New(fault.Invalid, "parents: %s:%s is there twice", p.Type, p.ID)
		case isCollection && inCollection:
			return fault.New(fault.Invalid,
				"parents: more than one collection; an item belongs to at most one")
		}

		seen[p] = true
		inCollection = inCollection || isCollection
	}
	return nil
}

// checkParent refuses a parent that cannot be one. That it exists is not checked: it can come
// later.
func checkParent(p envelope.Ref) error {
	known := func(t event.Type) bool { return t.String() == p.Type }
	switch {
	case p.Role != "":
		return fault.New(fault.Invalid, "parents: %s has a role; expected a type and an id",
			definition.Clip(p.ID, 60))
	case !slices.ContainsFunc(parents, known):
		return fault.New(fault.Invalid, "parents: %q: expected one of the types %s",
			definition.Clip(p.Type, 60),
			joined(parents))
	case p.Type == event.Collection.String() && !collections.MatchString(p.ID):
		return fault.New(fault.Invalid, "parents: %q is not the name of a collection",
			definition.Clip(p.ID, 110))
	case p.ID == "" || len(p.ID) > maxID || !utf8.ValidString(p.ID) ||
		strings.ContainsFunc(p.ID, isControl):
		return fault.New(fault.Invalid,
			"parents: %q: expected an id of 1 to %d bytes, without spaces",
			definition.Clip(p.ID, 60), maxID)
	}
	return nil
}

// joined is a list of types for a message.
func joined(types []event.Type) string {
	names := make([]string, len(types))
	for i, t := range types {
		names[i] = t.String()
	}
	return strings.Join(names, ", ")
}

// customOf is what a custom item is, in normal form, as it can be compared with what a person wants.
// Its id, which its events add to the identifiers, is left out.
func (it *Item) customOf() CustomItem {
	f := CustomItem{Types: slices.Clone(it.Types), Parents: it.Parents}
	for _, name := range it.Identifiers {
		if name != it.ID {
			f.Identifiers = append(f.Identifiers, name)
		}
	}
	return f
}

func (f CustomItem) same(g CustomItem) bool {
	return slices.Equal(f.Types, g.Types) && slices.Equal(f.Parents, g.Parents) &&
		slices.Equal(f.Identifiers, g.Identifiers)
}

// Create makes a custom item. One that is there already as it is wanted stays as it is; another of
// the same id is a Conflict. A forgotten one begins anew.
func (s *Store) Create(ctx context.Context, id string, f CustomItem, by By) (ActionResult, error) {
	return s.shape(ctx, id, "create", f, by, func(c *change, f CustomItem) (string, error) {
		it := c.item()
		is := it.Version > 0 && !it.Forgotten
		switch {
		case is && it.customOf().same(f):
			return "the item " + it.ID + " is there already, as it is wanted", nil
		case is:
			return "", fault.New(fault.Conflict,
				"the item %s is there already, with other types, parents or "+
					"identifiers; change it, or take another id", it.ID)
		}
		return "the item " + it.ID + " is created", c.setCustom("item.create", f, by)
	})
}

// Change replaces the types, parents and identifiers of a custom item. It is a change of its content.
// One that changes nothing has no event, so components do not work on the item again. A NotFound
// means that there is no such item.
func (s *Store) Change(ctx context.Context, id string, f CustomItem, by By) (ActionResult, error) {
	return s.shape(ctx, id, "change", f, by, func(c *change, f CustomItem) (string, error) {
		if err := c.known(); err != nil {
			return "", err
		}
		it := c.item()
		if it.customOf().same(f) {
			return it.ID + " is as it is wanted", nil
		}
		return it.ID + " is changed", c.setCustom("item.change", f, by)
	})
}

// shape makes an action that says what a custom item is, in normal form: the same request with
// another order of types is the same.
func (s *Store) shape(ctx context.Context, id, action string, f CustomItem, by By,
	decide func(c *change, f CustomItem) (string, error)) (ActionResult, error) {
	if err := customOnly(id, action); err != nil {
		return ActionResult{}, err
	}
	if err := f.check(); err != nil {
		return ActionResult{}, err
	}
	return s.control(ctx, id, by, func(c *change) (string, error) { return decide(c, f) }, action, f)
}

// setCustom adds the event that says what a custom item is.
func (c *change) setCustom(eventType string, f CustomItem, by By) error {
	it := c.item()
	it.Parents, it.Identifiers = f.Parents, f.Identifiers // the event has them, too
	return c.append(eventType, "", byHand, by, Shape{
		Types:   f.Types,
		Parents: f.Parents,
		Reason:  by.Reason,
	})
}

// customOnly refuses, with an Invalid, what people can only do with custom items: others are as their
// subject is.
func customOnly(id, action string) error {
	kind, subject, err := ParseID(id)
	if err != nil {
		return err
	}

	if kind != KindCustom {
		return fault.New(fault.Invalid,
			"item: %s follows the %s %s, so it has no action %s; only items of the form "+
				"item:ID have", definition.Clip(id, 100), kind, definition.Clip(subject, 100), action)
	}
	return nil
}

// Forget removes a custom item from all lines. Its history stays, and another one of its id goes on
// with the number of its next event. It is refused while a component works on the item.
func (s *Store) Forget(ctx context.Context, id string, by By) (ActionResult, error) {
	if err := customOnly(id, "forget"); err != nil {
		return ActionResult{}, err
	}
	return s.control(ctx, id, by, func(c *change) (string, error) {
		it := c.item()
		if it.Forgotten {
			return it.ID + " was forgotten before", nil
		}

		if err := c.known(); err != nil {
			return "", err
		}

		if err := c.unclaimed(func(*compiled) bool { return true }); err != nil {
			return "", err
		}
		return it.ID + " is forgotten; its history stays", c.append("item.forget", "", byHand, by,
			Forgot{Reason: by.Reason})
	}, "forget")
}

// Show reads an item, as it is now, with the newest events of its subject. It writes nothing. A
// NotFound means that there is none.
func (s *Store) Show(ctx context.Context, id string) (State, error) {
	it, err := s.find(ctx, id)
	if err != nil {
		return State{}, err
	}
	defs, err := s.load(ctx)
	if err != nil {
		return State{}, err
	}
	return defs.state(it), nil
}

// find reads an item, by any form of its id.
func (s *Store) find(ctx context.Context, id string) (*Item, error) {
	kind, subject, err := ParseID(id)
	if err != nil {
		return nil, err
	}
	it, _, err := s.look(ctx, kind+":"+subject)
	return it, err
}

// state is an item, and where it is in the lines.
func (d *definitions) state(it *Item) State {
	out := State{Item: *it, Classes: map[string]string{}}
	for i := range d.all {
		if class := classOf(d.all[i].place(it)); class != "" {
			out.Classes[d.all[i].Name] = class
		}
	}
	return out
}

// itemsPage is how many items a page of the list has, at most.
const itemsPage = 50

// Items lists a page of all items, in no order that has a meaning: those of a kind, e.g. KindCustom,
// and of a type, unless these are "". A page can be empty before the end, which has no next cursor.
// An item that was just made may not be there yet. A call looks at about MaxDryRun items, so that
// it ends in time where few are of the type.
func (s *Store) Items(ctx context.Context, kind, itemType,
	cursor string) (page []State, next string, err error) {
	at, err := parseWalk(cursor)
	if err != nil {
		return nil, "", err
	}

	defs, err := s.load(ctx)
	if err != nil {
		return nil, "", err
	}

	for looked := 0; looked < MaxDryRun && len(page) < itemsPage && at.Shard < shards; {
		ids, after, err := s.items(ctx, uint32(at.Shard), at.Cursor, itemsPage-len(page))
		if err != nil {
			return nil, "", err
		}

		rows, err := s.rows(ctx, ids)
		if err != nil {
			return nil, "", err
		}

		for i := range rows {
			if it := &rows[i].it; it.is(kind, itemType) {
				page = append(page, defs.state(it))
			}
		}

		looked += max(1, len(ids))
		at.advance(after)
	}
	return page, at.String(), nil
}

// is reports whether the item is there, and of a kind and a type.
func (it *Item) is(kind, itemType string) bool {
	return !it.Forgotten && (kind == "" || strings.HasPrefix(it.ID, kind+":")) &&
		(itemType == "" || slices.Contains(it.Types, itemType))
}
