package component

import (
	"context"
	"fmt"
	"testing"
	"time"

	"archivist/pkg/events/event"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/table/tabletest"
)

// newStore is a store on an empty table, with a clock that the test sets.
func newStore(t testing.TB) *Store {
	n := 0
	return &Store{Table: tabletest.Open(t), Now: func() time.Time { return time.UnixMilli(1_000_000) },
		NewID: func() string { n++; return fmt.Sprintf("tx%04d", n) },
		Wake:  func(context.Context, string) error { return nil }}
}

// define applies definitions. Their functions are known.
func define(t testing.TB, s *Store, all ...Definition) {
	t.Helper()
	for _, d := range all {
		s.Functions = append(s.Functions, d.Runnable.Function)
		if _, err := s.Apply(t.Context(), d, By{Actor: "ada"}); err != nil {
			t.Fatal(err)
		}
	}
}

// TestItemMovesThroughLines: an own event, the item and its places change together.
func TestItemMovesThroughLines(t *testing.T) {
	s := newStore(t)
	define(t, s,
		Definition{Name: "first", Event: "First", PastSuccess: []string{"Received"}, Future: []string{"First"},
			Runnable: Runnable{Function: "x"}},
		Definition{Name: "second", Event: "Second", PastSuccess: []string{"First"}, Old: []string{"Second"},
			Runnable: Runnable{Function: "x"}})
	add := func(c *change) error {
		err := c.append("item.create", "", "items", By{Actor: "eva"}, Shape{Types: []string{"delivery"}})
		if err != nil {
			return err
		}
		return c.append("item.event", event.Success, "items", By{Actor: "eva"}, Registered{Event: "Received"})
	}
	it, err := s.change(t.Context(), "item:d1", add)
	if err != nil || it.Version != 2 || it.Marks["Received"].ID != "tx0003.1" {
		t.Fatalf("%+v, %v", it, err)
	}
	places := func() map[string]string {
		r, err := s.row(t.Context(), "item:d1")
		if err != nil {
			t.Fatal(err)
		}
		return r.Places
	}
	if p := places(); classOf(p["first"]) != Ready || p["second"] != "" {
		t.Errorf("places: %v", p)
	}
	_, err = s.change(t.Context(), "item:d1", func(c *change) error {
		return c.append("component.ran", event.Success, "first", By{}, Ran{Component: "first", Event: "First"})
	})
	if err != nil {
		t.Fatal(err)
	}
	if p := places(); p["first"] != Done || classOf(p["second"]) != Ready {
		t.Errorf("places: %v", p)
	}
	rows, _, err := event.Page(t.Context(), s.Table, itemSubject("item:d1"), "")
	if err != nil || len(rows) != 3 || rows[1].ID != "tx0003.1" {
		t.Errorf("%d events, %v: %+v", len(rows), err, rows)
	}
}

// TestParseID: ids of items have their kind; that of an item that was made by hand can be left out, and so can that of
// an ARK.
func TestParseID(t *testing.T) {
	for id, want := range map[string]string{"item:delivery-3": "item delivery-3", "delivery-3": "item delivery-3",
		"object:ark:/99999/x": "object ark:/99999/x", "ark:/99999/x": "object ark:/99999/x",
		"version:ark:/99999/x/v2": "version ark:/99999/x/v2", "batch:B1": "batch B1",
		"": "", "thing:x": "", "item:": "", " x": "", "item:-": "", "object:": ""} {
		kind, subject, err := ParseID(id)
		if want == "" && fault.Is(err, fault.Invalid) {
			continue
		}
		if err != nil || kind+" "+subject != want {
			t.Errorf("%q is %s %s, %v; want %q", id, kind, subject, err, want)
		}
	}
}
