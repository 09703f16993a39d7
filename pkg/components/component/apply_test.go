package component

import (
	"reflect"
	"slices"
	"testing"
	"time"

	"archivist/pkg/events/envelope"
	"archivist/pkg/events/event"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/table"
)

// checker is a component that works once on each item that was received.
func checker(name, event string) Definition {
	return Definition{Name: name, Event: event, PastSuccess: []string{"Received"}, Future: []string{event},
		Runnable: Runnable{Function: "x"}}
}

// TestDefinitions: a component is made, changed, paused, resumed and deleted once for each request, each
// time with its event.
func TestDefinitions(t *testing.T) {
	s, ctx := newStore(t), t.Context()
	s.Functions = []string{"x"}
	d := checker("check", "Checked")
	by := func(request string) By { return By{Actor: "ada", Reason: "because", Request: request} }
	for _, request := range []string{"1", "1", "", "2"} {
		c, err := s.Apply(ctx, d, by(request))
		if err != nil || c.Version != 1 || c.Backfill == nil || c.Backfill.Of != 16 {
			t.Fatalf("%+v, %v", c, err)
		}
	}
	d.MaxItems = 7
	c, err := s.Apply(ctx, d, by("3"))
	if err != nil || c.Version != 2 || c.MaxItems != 7 {
		t.Fatalf("%+v, %v", c, err)
	}
	for range 2 {
		if err := s.Pause(ctx, "check", by("4")); err != nil {
			t.Fatal(err)
		}
	}
	if c, err := s.Get(ctx, "check"); err != nil || !c.Paused {
		t.Errorf("%+v, %v", c, err)
	}
	if err := s.Pause(ctx, "check", by("")); err != nil { // it is paused
		t.Fatal(err)
	}
	if err := s.Resume(ctx, "check", by("5")); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := s.Delete(ctx, "check", by("6")); err != nil {
			t.Fatal(err)
		}
	}
	if list, err := s.List(ctx); err != nil || len(list) > 0 {
		t.Errorf("%v, %v", list, err)
	}
	if _, err := s.Apply(ctx, d, by("3")); !fault.Is(err, fault.Conflict) {
		t.Errorf("the request of a deleted component: %v", err)
	}
	if c, err := s.Apply(ctx, d, by("7")); err != nil || c.Version != 3 {
		t.Errorf("%+v, %v", c, err)
	}
	rows, _, err := event.Page(ctx, s.Table, event.Subject{Type: event.Component, ID: "check"}, "")
	got := ""
	for _, r := range rows {
		got += r.Type[len("component."):] + " "
	}
	if err != nil || got != "created changed paused resumed deleted created " {
		t.Errorf("events: %s, %v", got, err)
	}
}

// TestDoor: a definition that cannot run, or not beside the others, is refused.
func TestDoor(t *testing.T) {
	s := newStore(t)
	s.Functions, s.Allowed = []string{"x"}, []string{"arn:aws:lambda:eu-central-1:000000000000:function:mine"}
	if _, err := s.Apply(t.Context(), checker("first", "First"), By{}); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		change func(d *Definition)
		want   fault.Kind
	}{
		"an unknown function": {func(d *Definition) { d.Runnable.Function = "y" }, fault.Invalid},
		"an ARN of others": {func(d *Definition) {
			d.Runnable = Runnable{Lambda: "arn:aws:lambda:eu-central-1:000000000000:function:theirs"}
		}, fault.Invalid},
		"another's event":    {func(d *Definition) { d.Event, d.Future = "First", []string{"First"} }, fault.Conflict},
		"no end":             {func(d *Definition) { d.Future = nil }, fault.Invalid},
		"no schedule":        {func(d *Definition) { d.Schedule = "sometimes" }, fault.Invalid},
		"a name in a filter": {func(d *Definition) { d.Items = &Items{Filter: "Objekt+All"} }, fault.Invalid},
		"a field of events": {func(d *Definition) { d.Items = &Items{Filter: "All+All{outcome=failure}"} },
			fault.Invalid},
	} {
		d := checker("second", "Second")
		c.change(&d)
		if _, err := s.Apply(t.Context(), d, By{}); !fault.Is(err, c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	d := checker("second", "Second")
	d.Runnable = Runnable{Lambda: s.Allowed[0]}
	if _, err := s.Apply(t.Context(), d, By{}); err != nil {
		t.Error(err)
	}
}

// TestMostComponents: an item can change its place in the lines of all in one transaction.
func TestMostComponents(t *testing.T) {
	s, ctx := newStore(t), t.Context()
	for i := range MaxComponents {
		name := string(rune('a'+i/26)) + string(rune('a'+i%26))
		define(t, s, checker("c"+name, "C"+name))
	}
	if _, err := s.Apply(ctx, checker("more", "More"), By{}); !fault.Is(err, fault.Conflict) {
		t.Error(err)
	}
	for i, e := range []Registered{{Event: "Received"}, {Event: Stopped}} {
		_, err := s.change(ctx, "item:d1", func(c *change) error {
			if i == 0 {
				if err := c.append("item.create", "", "items", By{}, Shape{}); err != nil {
					return err
				}
			}
			return c.append("item.event", "", "items", By{}, e)
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// TestEveryOwnEvent: an item can have each kind of own events.
func TestEveryOwnEvent(t *testing.T) {
	s := newStore(t)
	define(t, s, checker("check", "Checked"))
	by := By{Actor: "eva", Reason: "because"}
	parents := []envelope.Ref{{Type: "Collection", ID: "maps"}}
	for _, e := range []struct {
		name, outcome, component string
		detail                   any
	}{
		{"item.create", "", "items", Shape{Types: []string{"delivery"}, Parents: parents, Reason: "because"}},
		{"item.change", "", "items", Shape{Types: []string{"delivery", "box"}, Parents: parents, Reason: "because"}},
		{"item.event", "", "items", Registered{Event: "Received", Forced: true, Reason: "because"}},
		{"component.ran", event.Failure, "check", Ran{Component: "check", Definition: 1, Event: "Checked", Run: "r1",
			BasedOn: SeenVersions{Item: 3}, Started: 1_000_000, Duration: 12, Reason: "3 files are missing",
			Report: &Report{Total: 3, Entries: []Entry{{File: "a.tif", Type: "missing", Description: "not there"}}}}},
		{"item.revoke", "", "items", Revoked{Events: []string{"Checked"}, Reason: "because"}},
		{"item.prioritize", "", "items", Prioritized{Priority: 9, Reason: "because"}},
		{"item.release", "", "items", Released{Component: "check", Reason: "because"}},
		{"item.forget", "", "items", Forgot{Reason: "because"}},
	} {
		_, err := s.change(t.Context(), "item:d1", func(c *change) error {
			return c.append(e.name, e.outcome, e.component, by, e.detail)
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	var r itemRow
	if err := s.Table.Get(t.Context(), itemSubject("item:d1").Key(), &r); err != nil || len(r.Places) > 0 {
		t.Errorf("%+v, %v", r, err)
	}
	var rows []table.Head
	if _, err := s.Table.Page(t.Context(), table.Query{PK: linePK("check"), Prefix: Ready}, &rows); err != nil ||
		len(rows) > 0 {
		t.Errorf("%v, %v", rows, err)
	}
}

// TestConditions: a change of any field opens a back-fill, but of those that say how the work is done.
func TestConditions(t *testing.T) {
	not := []string{"Name", "Version", "Description", "Paused", "MaxItems", "Concurrency", "Instances", "Timeout",
		"MaxResults", "Schedule", "TimeZone", "Wake", "Runnable"}
	kind := reflect.TypeFor[Definition]()
	for i := range kind.NumField() {
		var d, none Definition
		field := reflect.ValueOf(&d).Elem().Field(i)
		switch field.Kind() {
		case reflect.String:
			field.SetString("x")
		case reflect.Int:
			field.SetInt(7)
		case reflect.Bool:
			field.SetBool(true)
		case reflect.Slice:
			field.Set(reflect.ValueOf([]string{"x"}))
		case reflect.Pointer:
			field.Set(reflect.New(field.Type().Elem()))
		case reflect.Struct:
			field.Set(reflect.ValueOf(Runnable{Function: "x"}))
		default:
			t.Fatalf("a field of the kind %s", field.Kind())
		}
		name := kind.Field(i).Name
		if fills := !same(d.conditions(), none.conditions()); fills == slices.Contains(not, name) {
			t.Errorf("%s: a change opens a back-fill: %v", name, fills)
		}
	}
}

// TestRepeatedSooner: components whose work is now repeated after some days find the items that are done.
func TestRepeatedSooner(t *testing.T) {
	p := newWorkshop(t)
	d := Definition{Name: "check", Event: "Checked", PastSuccess: []string{"Received"}, Old: []string{"Checked"},
		Runnable: Runnable{Function: "x"}, Wake: true}
	define(t, p.Store, d)
	p.receive(1, 0)
	p.settleAll()
	p.tick()
	d.EveryDays = 1
	define(t, p.Store, d)
	p.tick()
	p.now = p.now.Add(25 * time.Hour)
	p.tick()
	if len(p.worked) != 2 {
		t.Errorf("worked on %v; line %q", p.worked, p.line("check"))
	}
}
