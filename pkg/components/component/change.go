package component

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"archivist/pkg/events/consumer"
	"archivist/pkg/events/envelope"
	"archivist/pkg/events/event"
	"archivist/pkg/kernel/definition"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/table"
)

// change is one change of an item, being composed.
type change struct {
	// ctx is that of the commit: its origin is that of the events. It can be replaced before
	// append.
	ctx  context.Context
	s    *Store
	tx   *table.Tx
	row  *itemRow
	defs *definitions
	now  int64

	// Results of the change, for save and tell.
	events int      // own events that are in tx
	woken  []string // components for which the item became ready

	// quiet: none is woken; the scheduler's tick starts them.
	quiet bool

	// deep counts components that do not work on it any more: its chain of causes is too long.
	deep      int
	remembers bool // a request is remembered
}

// item is what is known of the item. What is changed in it is saved, if the change is.
func (c *change) item() *Item { return &c.row.it }

// change brings an item up to date with its subject, lets f change it, and saves it with its events
// and its places in the lines, in one transaction. If another change was first, all is done again.
// A change that leaves everything as it was writes nothing. f can be nil; if it returns an error,
// nothing is written.
//
// The errors are an Invalid for an item whose row or event is damaged, a NotFound for one that is
// not there, an Unavailable after too many tries, and those of f. Beside an error the item is not
// to be used.
func (s *Store) change(ctx context.Context, id string, f func(c *change) error) (it *Item, err error) {
	// If it is the same row each time that has changed, the rows do not go together: Reconcile repairs that.
	err = s.Table.Again(ctx, "item "+definition.Clip(id, 100), func() error {
		it, err = s.tryChange(ctx, id, f)
		return err
	})
	return it, err
}

// tryChange makes one try of change.
func (s *Store) tryChange(ctx context.Context, id string, f func(c *change) error) (*Item, error) {
	row, err := s.row(ctx, id)
	if err != nil {
		return nil, err
	}

	if err := s.follow(ctx, row); err != nil {
		return nil, err
	}

	// The definitions are read after the row, so they are not older than those by which it was
	// decided.
	defs, err := s.load(ctx)
	if err != nil {
		return nil, err
	}

	c := &change{
		ctx:  ctx,
		s:    s,
		tx:   s.Table.Begin(s.NewID()),
		row:  row,
		defs: defs,
		now:  millis(s.Now()),
	}

	if f != nil {
		if err := f(c); err != nil {
			return nil, err
		}
	}

	// f may have made the item by its first event; then there is one.
	if row.it.Version == 0 && row.it.Applied == 0 {
		return nil, fault.New(fault.NotFound, "there is no item %s", definition.Clip(id, 100))
	}
	return &row.it, c.save()
}

// follow adds the events of the item's subject that are not yet known to the item, in memory. So
// every change sees the subject as it is, whether or not the consumer has come to its newest
// events.
func (s *Store) follow(ctx context.Context, row *itemRow) error {
	subject, ok := subjectOf(row.it.ID)
	if !ok {
		return nil
	}

	row.it.Types = []string{subject.Type.String()}
	return s.events(ctx, subject, row.it.Applied, maxVersion, func(r *event.Row) error {
		e, err := r.Envelope()
		if err != nil {
			return err
		}
		return row.it.apply(e)
	})
}

// events reads the events of a subject after one version, up to another, and ends with the first
// error of f.
func (s *Store) events(ctx context.Context, of event.Subject, after, upTo int64,
	f func(*event.Row) error) error {
	if after >= upTo {
		return nil
	}

	q := table.Query{PK: of.Key().PK, From: event.Key(of, after+1).SK, To: event.Key(of, upTo).SK}
	for {
		var page []event.Row
		next, err := s.Table.Page(ctx, q, &page)
		if err != nil {
			return err
		}

		for i := range page {
			if err := f(&page[i]); err != nil {
				return err
			}
		}

		if next == "" {
			return nil
		}

		q.Cursor = next
	}
}

// maxVersion is the largest number that the key of an event can have: twelve digits.
const maxVersion = 999_999_999_999

// append adds an own event to the change. What is known of the item follows from it at once, by the
// same function as when the event is read later: so the row cannot differ from what its events say.
// Several events can be in one change.
func (c *change) append(eventType, outcome, component string, by By, detail any) error {
	it := c.item()
	e := event.New{
		Type:        eventType,
		Time:        c.now,
		Outcome:     outcome,
		Detail:      detail,
		Actor:       by.Actor,
		Component:   component,
		Parents:     it.containers(),
		Identifiers: it.names(),
	}

	if err := event.Append(c.tx, itemSubject(it.ID), it.Version+1, e); err != nil {
		return err
	}

	data, err := json.Marshal(detail)
	if err != nil {
		return err
	}

	id := fmt.Sprintf("%s.%d", c.tx.ID(), c.events) // as event.Append makes it
	c.events++
	return it.apply(envelope.Event{
		ID:          id,
		Subject:     envelope.Ref{Type: event.Item.String(), ID: it.ID},
		Version:     it.Version + 1,
		Type:        eventType,
		Time:        c.now,
		Outcome:     cmp.Or(outcome, event.Success),
		Detail:      data,
		Identifiers: e.Identifiers,
		Context:     envelope.Context{Actor: by.Actor, Component: component},
		Cause:       event.OriginOf(c.ctx).Cause,
	})
}

// save commits the change, if there is one: a row that would be the same is not written, which
// makes a repeated Sync cost reads only. A Stale means that the item, or one of its rows in the
// lines, was changed by another.
func (c *change) save() error {
	r := c.row
	text, err := json.Marshal(r.it)
	if err != nil {
		return err
	}

	// The places follow from the item as it is now, after its text is known: deciding them changes
	// nothing of it.
	moved := c.place()
	if r.Rev > 0 && r.Text == string(text) && r.Epoch == c.defs.epoch && !moved && !c.remembers {
		return nil
	}

	r.Number, r.Text, r.Epoch = r.it.Version, string(text), c.defs.epoch
	if r.Rev > 0 {
		c.tx.Save(r)
	} else {
		c.insert()
	}

	if err := c.tx.Commit(c.ctx); err != nil {
		return err
	}

	c.tell()
	return nil
}

// tell wakes the components that can work on the item now, and counts those that do not any more.
// It comes after the commit; a wake-up that fails is not an error, since the scheduler's tick
// starts what has something to do.
func (c *change) tell() {
	if c.deep > 0 && c.s.Metric != nil {
		c.s.Metric(consumer.MetricDepth, float64(c.deep))
	}

	if c.s.Wake == nil || c.quiet {
		return
	}

	for _, name := range c.woken {
		err := c.s.Wake(c.ctx, name)
		if err != nil && c.ctx.Err() != nil {
			return // the tick starts them
		}
	}
}

// insert puts a new item into the change. Back-fills do not see it, if they have looked at its part
// of the list already: so it must be decided by the newest definitions.
func (c *change) insert() {
	c.tx.Insert(c.row)
	k := table.Key{PK: rowPK, SK: headSK}
	if c.defs.spread {
		k = epochKey(shard(c.row.it.ID))
	}

	if c.defs.epoch == 0 {
		c.tx.Require(k, "attribute_not_exists(pk)")
		return
	}
	c.tx.Require(k, "line_epoch = ?", c.defs.epoch)
}

// place puts the item's places in the lines of all components into the change, and reports whether
// one is another. All follow from the item and the definitions alone, so a repetition puts nothing.
func (c *change) place() (moved bool) {
	places := map[string]string{}
	for i := range c.defs.all {
		d := &c.defs.all[i]
		from, to := c.row.placeIn(d), d.place(c.item())
		d.move(c.tx, c.row.it.ID, from, to)
		if to != "" {
			places[d.Name] = to
		}

		moved = moved || from != to
		c.deep += d.stops(c.row.Text, c.item())
		if d.Wake && from != to && classOf(to) == Ready {
			c.woken = append(c.woken, d.Name)
		}
	}

	moved = moved || len(places) != len(c.row.Places) // a component was deleted
	c.row.Places = places
	return moved
}

// containers are the parents of the events of an item: its own, and its subject. A collection among
// them decides the log of the events.
func (it *Item) containers() []envelope.Ref {
	parents := slices.Clone(it.Parents)
	if s, ok := subjectOf(it.ID); ok {
		parents = append(parents, envelope.Ref{Type: s.Type.String(), ID: s.ID})
	}
	return parents
}

// names are the identifiers of the events of an item: its id is always one.
func (it *Item) names() []string {
	if slices.Contains(it.Identifiers, it.ID) {
		return it.Identifiers
	}
	return append([]string{it.ID}, it.Identifiers...)
}

// Sync brings an item up to date with its subject, and makes it if it is new. It is what the
// consumer does because of an event of the subject, and what a back-fill does. A NotFound means
// that neither the item nor an event of its subject is there.
func (s *Store) Sync(ctx context.Context,
	id string) (*Item, error) {
	return s.change(ctx, id, nil)
}

// quietly lets a change wake no components. A back-fill would wake them for each item.
func quietly(c *change) error { c.quiet = true; return nil }

// known refuses, with a NotFound, an item that does not exist, or that was forgotten.
func (c *change) known() error {
	it := c.item()
	kind, subject, _ := strings.Cut(it.ID, ":")
	switch {
	case it.Forgotten:
		return fault.New(fault.NotFound,
			"the item %s was forgotten; create it again to go on", it.ID)
	case it.Version > 0 || it.Applied > 0:
		return nil
	case kind == KindCustom:
		return fault.New(fault.NotFound, "there is no item %s; create it first", it.ID)
	}
	return fault.New(fault.NotFound, "there is no %s %q", kind, definition.Clip(subject, 100))
}

// unclaimed refuses an action while a component that it concerns works on the item. It ends leases
// of these components that have expired, so that a worker that comes late records nothing. A lease
// that is live is a Conflict.
func (c *change) unclaimed(concerned func(*compiled) bool) error {
	it := c.item()
	for _, name := range slices.Sorted(maps.Keys(it.Claims)) {
		d, err := c.defs.of(name)
		if fault.Is(err, fault.NotFound) {
			d = &compiled{Definition: Definition{Name: name}} // it was deleted
		} else if err != nil {
			return err
		}

		if !concerned(d) {
			continue
		}

		if claim := it.Claims[name]; claim.Live(c.now) {
			return fault.New(fault.Conflict,
				"component %s is working on %s (run %s; its lease ends at %s); wait "+
					"until it is done, or release its lease", name, it.ID, claim.Run,
				clock(claim.Until))
		}

		delete(it.Claims, name)
	}
	return nil
}
