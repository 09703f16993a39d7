package component

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"archivist/pkg/events/event"
	"archivist/pkg/kernel/definition"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/registry"
	"archivist/pkg/kernel/table"
)

// DefinitionChange is the detail of the events of a component. It is stored for good, so names of
// fields stay.
type DefinitionChange struct {
	Reason     string      `json:"reason,omitempty"`
	Definition *Definition `json:"definition,omitempty"`
}

// component is the component of a row. f tells how far the back-fill is; a component whose
// conditions did not change since it was complete has none.
func (r *definitionRow) component(f *backfillRow) (Component, error) {
	d, err := r.definition()
	c := Component{Definition: d, Created: r.Created, Changed: r.Changed, born: r.Born}
	if r.BackfillEpoch > f.Done {
		c.Backfill = &BackfillProgress{
			Shard:  f.parts(),
			Of:     shards,
			Items:  f.Looked,
			Failed: f.Failed,
			Since:  f.Since,
		}
	}
	return c, err
}

// Get reads a component. A missing one is a NotFound. The back-fill is read first: then it cannot
// seem to be done by definitions that are newer than it.
func (s *Store) Get(ctx context.Context, name string) (Component, error) {
	f, err := s.backfillState(ctx)
	if err != nil {
		return Component{}, err
	}

	r, err := s.definitionRow(ctx, name)
	if err != nil {
		return Component{}, err
	}

	if r.State != active {
		return Component{}, missing(name)
	}
	return r.component(&f)
}

// List lists all components by name.
func (s *Store) List(ctx context.Context) ([]Component, error) {
	f, err := s.backfillState(ctx)
	if err != nil {
		return nil, err
	}

	rows, err := s.definitionRows(ctx)
	if err != nil {
		return nil, err
	}

	var list []Component
	for i := range rows {
		if rows[i].State != active {
			continue
		}
		c, err := rows[i].component(&f)
		if err != nil {
			return nil, err
		}
		list = append(list, c)
	}
	return list, nil
}

// Apply makes a component, or changes its definition; the same definition again changes nothing.
// What it accepts can run: the filter compiles, and the runnable is one of those that are
// permitted. A change of the conditions opens a back-fill. Paused holds for a new component only.
// The same request again returns the component as it is.
//
// An Invalid names the field that is not accepted. A Conflict means that another component records
// the same event, that there are too many, that the component is being deleted, or that the request
// was done before and the component deleted since. An Unavailable means that others keep changing
// it.
func (s *Store) Apply(ctx context.Context, d Definition, by By) (c Component, err error) {
	if err := s.check(&d); err != nil {
		return Component{}, err
	}
	err = s.redefine(ctx, d.Name, func(e *edit) error {
		c, err = e.apply(ctx, d, by)
		return err
	})
	return c, err
}

// edit is one change of a component, being composed, with the rows of the registry that are written
// with it. Their revisions are the fence: of two changes of any components at once, one is decided
// again.
type edit struct {
	s    *Store
	head head
	// before is the epoch that the head has before the change.
	before   int64
	backfill backfillRow
	row      definitionRow
	now      int64
}

// redefine lets f change a component, and does it again, with fresh rows, if another change was
// first.
func (s *Store) redefine(ctx context.Context, name string, f func(e *edit) error) error {
	return s.Table.Again(ctx, "component "+name, func() (err error) {
		e := edit{s: s, now: millis(s.Now())}
		if e.head, err = s.head(ctx); err != nil {
			return err
		}

		e.before = e.head.Epoch
		if e.backfill, err = s.backfillState(ctx); err != nil {
			return err
		}

		if e.row, err = s.definitionRow(ctx, name); err != nil {
			return err
		}
		return f(&e)
	})
}

// apply makes one try of Apply.
func (e *edit) apply(ctx context.Context, d Definition, by By) (Component, error) {
	r := &e.row
	repeated, err := r.Requests.Done(by)
	switch {
	case err != nil:
		return Component{}, err
	case repeated && r.State == active: // others may have changed it meanwhile
		return r.component(&e.backfill)
	case repeated:
		return Component{}, registry.Gone("component " + r.Name)
	case r.State == deleting:
		return Component{}, fault.New(fault.Conflict,
			"component %s is being deleted; try again in a moment", r.Name)
	}

	// Its own row may be among them, with the definition before.
	others, err := e.s.List(ctx)
	if err != nil {
		return Component{}, err
	}

	if err := d.checkAmong(others); err != nil {
		return Component{}, err
	}

	if r.State == active {
		return e.change(ctx, d, by)
	}
	return e.create(ctx, d, by)
}

// checkAmong refuses, with a Conflict, a definition that does not go together with the other
// components. Since all changes write the head, two that are made at once cannot both pass.
func (d *Definition) checkAmong(others []Component) error {
	n := 0
	for _, other := range others {
		if other.Name == d.Name {
			continue
		}
		n++
		if other.Event == d.Event {
			return fault.New(fault.Conflict,
				"event: %s is what component %s records; each component records an event "+
					"of its own, so that it is known which has worked on an item", d.Event,
				other.Name)
		}
	}

	if n >= MaxComponents {
		return fault.New(fault.Conflict,
			"there are %d components, and can be no more; delete one first", n)
	}
	return nil
}

// create makes a new component, with its counts, which are all 0. The keys of the counts have the
// epoch in which it was made, so what is late for a deleted component of this name does not count
// for it.
func (e *edit) create(ctx context.Context, d Definition, by By) (Component, error) {
	r := &e.row
	d.Version = 1
	if r.Text != "" { // a deleted one of this name was before
		old, err := r.definition()
		if err != nil {
			return Component{}, err
		}
		d.Version = old.Version + 1
	}

	r.State, r.Created = active, e.now
	e.raise(true)
	r.Born = e.head.Epoch
	tx := e.s.Table.Begin(e.s.NewID())
	for i := range uint32(shards) {
		k := countKey(r.Name, r.Born, i)
		tx.Insert(&countRow{Head: table.Head{PK: k.PK, SK: k.SK}})
	}
	return e.save(ctx, tx, d, "component.created", by)
}

// change changes the definition of a component. Only other conditions open a back-fill; how the
// work is done may change without one. The same definition changes nothing.
func (e *edit) change(ctx context.Context, d Definition, by By) (Component, error) {
	old, err := e.row.definition()
	if err != nil {
		return Component{}, err
	}

	d.Version, d.Paused = old.Version, old.Paused
	if same(d, old) {
		err = registry.Note(ctx, e.s.Table, e.s.NewID(), &e.row, &e.row.Requests, by)
		if err != nil {
			return Component{}, err
		}
		return e.row.component(&e.backfill)
	}

	d.Version++
	e.raise(!same(d.conditions(), old.conditions()))
	return e.save(ctx, e.s.Table.Begin(e.s.NewID()), d, "component.changed", by)
}

// conditions are the parts of a definition by which the places of items are decided: all but those
// that say how the work is done.
func (d *Definition) conditions() Definition {
	c := *d
	c.Name, c.Version, c.Description, c.Paused = "", 0, "", false
	c.MaxItems, c.Concurrency, c.Instances, c.Timeout, c.MaxResults = 0, 0, 0, nil, 0
	c.Schedule, c.TimeZone, c.Wake, c.Runnable = "", "", false, Runnable{}
	return c
}

// same compares two definitions by what would be stored of them.
func same(a, b Definition) bool {
	x, _ := json.Marshal(a)
	y, _ := json.Marshal(b)
	return string(x) == string(y)
}

// raise begins the next epoch, so that nobody goes on with definitions that are kept in memory. If
// other items may be ready now, all are decided again: a back-fill that is at work begins anew, for
// both changes.
func (e *edit) raise(fill bool) {
	e.head.Epoch++
	if !fill {
		return
	}
	f := &e.backfill
	// A back-fill that begins anew keeps the time of the change that opened it first.
	if f.Done == f.Want {
		f.Since = e.now
	}
	f.Want, e.row.BackfillEpoch = e.head.Epoch, e.head.Epoch
	f.Cursors, f.Looked, f.Failed = make([]string, shards), 0, 0
}

// save writes a component's row with its definition, the rows of the registry, and the event, in
// one transaction. A Stale means that another change was first.
func (e *edit) save(ctx context.Context, tx *table.Tx, d Definition, eventType string,
	by By) (Component, error) {
	r := &e.row
	text, err := json.Marshal(d)
	if err != nil {
		return Component{}, err
	}

	r.Text, r.Changed = string(text), e.now
	r.Number++
	r.Requests = r.Requests.With(by)
	if e.head.Epoch != e.before || !e.head.Spread {
		if err := e.s.spread(ctx, tx, &e.head); err != nil {
			return Component{}, err
		}
	}

	put(tx, &e.head, e.head.Rev)
	put(tx, &e.backfill, e.backfill.Rev)
	put(tx, r, r.Rev)
	detail := DefinitionChange{Reason: strings.TrimSpace(by.Reason), Definition: &d}
	err = event.Append(tx, event.Subject{Type: event.Component, ID: r.Name}, r.Number, event.New{
		Type:        eventType,
		Time:        e.now,
		Actor:       by.Actor,
		Component:   "components",
		Detail:      detail,
		Identifiers: []string{r.Name},
	})
	if err != nil {
		return Component{}, err
	}

	if err := tx.Commit(ctx); err != nil {
		return Component{}, err
	}
	return r.component(&e.backfill)
}

// Pause stops a component from the next item on: it is not started, and a run that is at work takes
// no more items. Its line goes on being kept, so it continues at once when it is resumed.
func (s *Store) Pause(ctx context.Context, name string, by By) error {
	return s.setPaused(ctx, name, true, "component.paused", by)
}

// Resume lets a paused component go on. It starts no run: the scheduler's tick, or the next item,
// does.
func (s *Store) Resume(ctx context.Context, name string, by By) error {
	return s.setPaused(ctx, name, false, "component.resumed", by)
}

func (s *Store) setPaused(ctx context.Context, name string, paused bool, eventType string,
	by By) error {
	return s.act(ctx, name, by, func(e *edit) error {
		d, err := e.row.definition()
		if err != nil {
			return err
		}
		if d.Paused == paused {
			return registry.Note(ctx, s.Table, s.NewID(), &e.row, &e.row.Requests, by)
		}
		d.Paused = paused
		e.raise(false)
		_, err = e.save(ctx, s.Table.Begin(s.NewID()), d, eventType, by)
		return err
	})
}

// act makes a change of a component for a person. The same request again changes nothing. An
// Invalid means that there is no reason, a NotFound that there is no such component.
func (s *Store) act(ctx context.Context, name string, by By, f func(e *edit) error) error {
	if err := by.Check(); err != nil {
		return err
	}
	return s.redefine(ctx, name, func(e *edit) error {
		done, err := e.row.Requests.Done(by)
		switch {
		case err != nil || done:
			return err
		case e.row.State != active:
			return missing(name)
		}
		return f(e)
	})
}

// check is all that is checked of a definition by itself before it is accepted, with its defaults
// set. What the runnable names must be one of the deployment's, where the permission to call it is
// granted.
func (s *Store) check(d *Definition) error {
	if err := d.Check(); err != nil {
		return err
	}

	text, err := json.Marshal(d)
	if err != nil {
		return err
	}

	if len(text) > MaxDefinition { // each event of the component has it, with a reason
		return fault.New(fault.Invalid,
			"the definition has %d bytes; at most %d are accepted. Select items by a "+
				"filter in place of ids", len(text), MaxDefinition)
	}

	switch r := d.Runnable; {
	case r.Function != "" && !slices.Contains(s.Functions, r.Function):
		return fault.New(fault.Invalid, "runnable.function: there is no function %q; there are: %s",
			definition.Clip(r.Function, 60), strings.Join(s.Functions, ", "))
	case r.Lambda != "":
		return s.checkAllowed("lambda", r.Lambda, "consumerTargets")
	case r.Task != nil:
		return s.checkAllowed("task.taskDefinition", r.Task.Definition, "componentTasks")
	}
	return nil
}

// checkAllowed refuses a function or task definition that the deployment does not name in that
// setting.
func (s *Store) checkAllowed(field, arn, setting string) error {
	if slices.Contains(s.Allowed, arn) {
		return nil
	}
	return fault.New(fault.Invalid,
		"runnable.%s: %q is not among the %s of this deployment; add it there and "+
			"deploy, so that the permission to call it is granted", field,
		definition.Clip(arn, 200), setting)
}
