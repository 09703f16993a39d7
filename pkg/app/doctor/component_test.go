package doctor_test

import (
	"context"
	"testing"

	"archivist/pkg/components/component"
	"archivist/pkg/events/event"
	"archivist/pkg/kernel/table"
)

// checked is the component of the tests.
var checked = component.Definition{Name: "check", Event: "Checked", Types: []string{"Box"},
	Future: []string{"Checked"}, Runnable: component.Runnable{Function: "x"}}

// lined is a settled world with a component and two items: its object, and a custom one.
func lined(t *testing.T) *world {
	w := settled(t)
	s := w.components()
	if _, err := s.Apply(t.Context(), checked, component.By{Actor: "ada"}); err != nil {
		t.Fatal(err)
	}
	if more, err := s.Backfill(t.Context(), w.doctor().Queue.Now()); more || err != nil {
		t.Fatal(more, err)
	}
	if _, err := s.Sync(t.Context(), "object:"+w.object); err != nil {
		t.Fatal(err)
	}
	by := component.By{Actor: "ada", Reason: "a delivery"}
	if _, err := s.Create(t.Context(), "item:box", component.CustomItem{Types: []string{"Box"}}, by); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Register(t.Context(), "item:box", "Checked", event.Failure, by); err != nil {
		t.Fatal(err)
	}
	w.sweep()
	return w
}

func (w *world) components() *component.Store {
	q := w.doctor().Queue
	return &component.Store{Table: q.Table, Now: q.Now, NewID: q.NewID, Functions: []string{"x"},
		Wake: func(context.Context, string) error { return nil }}
}

// TestItemsOfObjects: an object whose item is lost, or is behind, is found, and its item made again: else no component
// would check it. What the consumer has not passed yet is no finding.
func TestItemsOfObjects(t *testing.T) {
	w := settled(t)
	item := key("COMPONENTITEM#object:"+w.object, "COMPONENTITEM")
	w.consumed(component.FollowerDefinition, component.Follower{Store: w.components()})
	w.finds(false)
	want := "item-object " + w.object
	for _, damage := range []func(){
		func() { w.drop(item) },
		func() { w.set(item, "item_json", str(`{"id": "object:`+w.object+`", "applied": 1}`)) },
	} {
		damage()
		w.finds(false, want)
		w.repairs([]string{want})
		w.finds(false)
	}
	w.drop(item)
	w.behind(component.FollowerName)
	w.finds(false)
}

func boxKey() table.Key { return key("COMPONENTITEM#item:box", "COMPONENTITEM") }

// ofComponents are the damages of a world with a component.
var ofComponents = []damage{
	{"an item without its row in the line", func(w *world) { w.drop(key("LINE#check", "failed#item:box")) },
		one("item-place", func(*world) string { return "item:box" }), true},
	{"a row of a line without its item", func(w *world) {
		w.insert(key("LINE#check", "failed#item:none"), "item_id", str("item:none"), "owned_by", str("item:none"))
	}, one("line-row", row("LINE#check", "failed#item:none")), true},
	{"a row of a line of no component", func(w *world) {
		w.insert(key("LINE#gone", "failed#item:box"), "item_id", str("item:box"), "owned_by", str("item:box"))
	}, one("line-row", row("LINE#gone", "failed#item:box")), true},
	{"a copy of the epoch that is lost", func(w *world) { w.drop(key("COMPONENTEPOCH#3", "EPOCH")) },
		one("component-epoch", row("COMPONENTS", "#HEAD")), true},
	{"a copy of an earlier epoch", func(w *world) { w.set(key("COMPONENTEPOCH#15", "EPOCH"), "line_epoch", num(0)) },
		one("component-epoch", row("COMPONENTS", "#HEAD")), true},
	{"an item without its newest event", func(w *world) { w.set(boxKey(), "version", num(9)) },
		one("event-last", func(*world) string { return "item:box" }), false},
	{"an item that cannot be read", func(w *world) { w.set(boxKey(), "item_json", str("{")) },
		func(*world) []string {
			return []string{"unreadable COMPONENTITEM#item:box/COMPONENTITEM", "unreadable LINE#check/failed#item:box"}
		}, false},
}
