package component

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"archivist/pkg/definition"
	"archivist/pkg/event"
	"archivist/pkg/fault"
	"archivist/pkg/table"
)

// Component is a component with its state. Paused in its definition is the present state. Times are
// milliseconds since 1970.
type Component struct {
	Definition
	Created int64    `json:"created"`
	Changed int64    `json:"changed"`        // the definition, or whether it is paused
	Fill    *Filling `json:"fill,omitempty"` // nil: the places of all items are as the definition says
}

// Filling is how far a back-fill is, which decides the places of all items again.
type Filling struct {
	Shard  int   `json:"shard"` // of the list of items: how many are done
	Of     int   `json:"of"`
	Items  int64 `json:"items"`            // that were looked at
	Failed int64 `json:"failed,omitempty"` // that could not be decided, because their row or event is damaged
	Since  int64 `json:"since"`
}

// DefinitionChange is the detail of the events of a component.
type DefinitionChange struct {
	Reason     string      `json:"reason,omitempty"`
	Definition *Definition `json:"definition,omitempty"`
}

// maxRequests is how many requests a component's row remembers.
const maxRequests = 20

// maxReason is how long the reason of a change may be, in characters.
const maxReason = 500

// checkReason refuses a change without a reason.
func (b By) checkReason() error {
	switch n := utf8.RuneCountInString(strings.TrimSpace(b.Reason)); {
	case n == 0:
		return fault.New(fault.Invalid, "reason: empty; say why, others will read it")
	case n > maxReason:
		return fault.New(fault.Invalid, "reason: %d characters; at most %d are accepted", n, maxReason)
	}
	return nil
}

// component is the component of a row. f tells how far the back-fill is.
func (r *definitionRow) component(f *fillRow) (Component, error) {
	d, err := r.definition()
	c := Component{Definition: d, Created: r.Created, Changed: r.Changed}
	if r.Fill > f.Done {
		c.Fill = &Filling{Shard: f.parts(), Of: shards, Items: f.Looked, Failed: f.Failed, Since: f.Since}
	}
	return c, err
}

// Get reads a component. A missing one is a NotFound.
func (s *Store) Get(ctx context.Context, name string) (Component, error) {
	f, err := s.filling(ctx)
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

// definitionRow reads the row of a component; that of one that never was has the rev 0.
func (s *Store) definitionRow(ctx context.Context, name string) (definitionRow, error) {
	k := definitionKey(name)
	r := definitionRow{Head: table.Head{PK: k.PK, SK: k.SK}, Name: name}
	if !definition.Names.MatchString(name) {
		return r, missing(name)
	}
	return r, optional(s.Table.Get(ctx, k, &r))
}

// List lists all components by name.
func (s *Store) List(ctx context.Context) ([]Component, error) {
	f, err := s.filling(ctx)
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

// Apply makes a component, or changes its definition; the same definition again changes nothing. What
// it accepts can run: the filter compiles, and the runnable is one of those that are permitted. A
// change of the conditions opens a back-fill. Paused holds for a new component only. The same request
// again returns the component as it is.
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

// edit is one change of a component, being composed.
type edit struct {
	s    *Store
	head head
	fill fillRow
	row  definitionRow
	now  int64
}

// redefine lets f change a component, and does it again if another change was first.
func (s *Store) redefine(ctx context.Context, name string, f func(e *edit) error) error {
	for range changeTries {
		e := edit{s: s, now: millis(s.Now())}
		var err error
		if e.head, err = s.head(ctx); err != nil {
			return err
		}
		if e.fill, err = s.filling(ctx); err != nil {
			return err
		}
		if e.row, err = s.definitionRow(ctx, name); err != nil {
			return err
		}
		if err := f(&e); !fault.Is(err, fault.Stale) {
			return err
		}
	}
	return fault.New(fault.Unavailable, "component %s keeps changing; try again in a moment", name)
}

// apply makes one try of Apply.
func (e *edit) apply(ctx context.Context, d Definition, by By) (Component, error) {
	r := &e.row
	repeated := by.Request != "" && slices.Contains(r.Requests, by.Request)
	switch {
	case repeated && r.State == active: // others may have changed it meanwhile
		return r.component(&e.fill)
	case repeated:
		return Component{}, fault.New(fault.Conflict, "this request was done before, and component %s was deleted "+
			"since; send a new request to create it again", r.Name)
	case r.State == deleting:
		return Component{}, fault.New(fault.Conflict, "component %s is being deleted; try again in a moment", r.Name)
	}
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

// checkAmong refuses a definition that does not go together with the other components.
func (d *Definition) checkAmong(others []Component) error {
	n := 0
	for _, other := range others {
		if other.Name == d.Name {
			continue
		}
		n++
		if other.Event == d.Event {
			return fault.New(fault.Conflict, "event: %s is what component %s records; each component records an event "+
				"of its own, so that it is known which has worked on an item", d.Event, other.Name)
		}
	}
	if n >= MaxComponents {
		return fault.New(fault.Conflict, "there are %d components, and can be no more; delete one first", n)
	}
	return nil
}

// create makes a new component, with its counts.
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

// change changes the definition of a component.
func (e *edit) change(ctx context.Context, d Definition, by By) (Component, error) {
	old, err := e.row.definition()
	if err != nil {
		return Component{}, err
	}
	d.Version, d.Paused = old.Version, old.Paused
	if same(d, old) {
		return e.row.component(&e.fill)
	}
	d.Version++
	e.raise(!same(d.conditions(), old.conditions()))
	return e.save(ctx, e.s.Table.Begin(e.s.NewID()), d, "component.changed", by)
}

// conditions are the parts of a definition by which the places of items are decided: all but those that
// say how the work is done.
func (d *Definition) conditions() Definition {
	c := *d
	c.Name, c.Version, c.Description, c.Paused = "", 0, "", false
	c.MaxItems, c.Concurrency, c.Instances, c.Timeout, c.MaxResults = 0, 0, 0, nil, 0
	c.Schedule, c.TimeZone, c.Wake, c.Runnable = "", "", false, Runnable{}
	return c
}

func same(a, b Definition) bool {
	x, _ := json.Marshal(a)
	y, _ := json.Marshal(b)
	return string(x) == string(y)
}

// raise begins the next epoch. If other items may be ready now, all are decided again: a back-fill
// that is at work begins anew, for both changes.
func (e *edit) raise(fill bool) {
	e.head.Epoch++
	if !fill {
		return
	}
	f := &e.fill
	if f.Done == f.Want {
		f.Since = e.now
	}
	f.Want, e.row.Fill = e.head.Epoch, e.head.Epoch
	f.Cursors, f.Looked, f.Failed = make([]string, shards), 0, 0
}

// save writes a component's row with its definition, the rows of the registry, and the event.
func (e *edit) save(ctx context.Context, tx *table.Tx, d Definition, eventType string, by By) (Component, error) {
	r := &e.row
	text, err := json.Marshal(d)
	if err != nil {
		return Component{}, err
	}
	r.Text, r.Changed = string(text), e.now
	r.Number++
	if by.Request != "" {
		r.Requests = append(slices.Clone(r.Requests), by.Request)
		r.Requests = r.Requests[max(0, len(r.Requests)-maxRequests):]
	}
	put(tx, &e.head, e.head.Rev)
	put(tx, &e.fill, e.fill.Rev)
	put(tx, r, r.Rev)
	detail := DefinitionChange{Reason: strings.TrimSpace(by.Reason), Definition: &d}
	err = event.Append(tx, event.Subject{Type: event.Component, ID: r.Name}, r.Number, event.New{Type: eventType,
		Time: e.now, Actor: by.Actor, Component: "components", Detail: detail, Identifiers: []string{r.Name}})
	if err != nil {
		return Component{}, err
	}
	if err := tx.Commit(ctx); err != nil {
		return Component{}, err
	}
	return r.component(&e.fill)
}

// put puts a row that was read into tx; one that was not there has the rev 0.
func put(tx *table.Tx, row table.Row, rev int64) {
	if rev == 0 {
		tx.Insert(row)
	} else {
		tx.Save(row)
	}
}

// Pause stops a component from the next item on: it is not started, and a run that is at work takes no
// more items.
func (s *Store) Pause(ctx context.Context, name string, by By) error {
	return s.setPaused(ctx, name, true, "component.paused", by)
}

// Resume lets a paused component go on.
func (s *Store) Resume(ctx context.Context, name string, by By) error {
	return s.setPaused(ctx, name, false, "component.resumed", by)
}

func (s *Store) setPaused(ctx context.Context, name string, paused bool, eventType string, by By) error {
	return s.act(ctx, name, by, func(e *edit) error {
		d, err := e.row.definition()
		if err != nil || d.Paused == paused {
			return err
		}
		d.Paused = paused
		e.raise(false)
		_, err = e.save(ctx, s.Table.Begin(s.NewID()), d, eventType, by)
		return err
	})
}

// act makes a change of a component for a person. The same request again changes nothing.
func (s *Store) act(ctx context.Context, name string, by By, f func(e *edit) error) error {
	if err := by.checkReason(); err != nil {
		return err
	}
	return s.redefine(ctx, name, func(e *edit) error {
		switch {
		case by.Request != "" && slices.Contains(e.row.Requests, by.Request):
			return nil
		case e.row.State != active:
			return missing(name)
		}
		return f(e)
	})
}

// Delete removes a component with its line. The events that it recorded stay, and count for others.
func (s *Store) Delete(ctx context.Context, name string, by By) error {
	err := s.act(ctx, name, by, func(e *edit) error {
		d, err := e.row.definition()
		if err != nil {
			return err
		}
		e.row.State = deleting
		e.raise(false)
		_, err = e.save(ctx, s.Table.Begin(s.NewID()), d, "component.deleted", by)
		return err
	})
	if err != nil {
		return err
	}
	_, err = s.finishDelete(ctx, name, s.Now().Add(deleteTime))
	return err
}

// deleteTime is how long a call of Delete removes rows; a back-fill goes on with it.
const deleteTime = 10 * time.Second

// check is all that is checked of a definition by itself before it is accepted.
func (s *Store) check(d *Definition) error {
	if err := d.Check(); err != nil {
		return err
	}
	text, err := json.Marshal(d)
	if err != nil {
		return err
	}
	if len(text) > MaxDefinition { // each event of the component has it, with a reason
		return fault.New(fault.Invalid, "the definition has %d bytes; at most %d are accepted. Select items by a "+
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

func (s *Store) checkAllowed(field, arn, setting string) error {
	if slices.Contains(s.Allowed, arn) {
		return nil
	}
	return fault.New(fault.Invalid, "runnable.%s: %q is not among the %s of this deployment; add it there and "+
		"deploy, so that the permission to call it is granted", field, definition.Clip(arn, 200), setting)
}
