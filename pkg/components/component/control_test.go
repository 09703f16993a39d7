package component

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"archivist/pkg/events/envelope"
	"archivist/pkg/events/event"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/registry"
	"archivist/pkg/kernel/table"
)

// chain are the components of a small assembly line.
func chain() []Definition {
	of := func(name, event string, after ...string) Definition {
		return Definition{Name: name, Event: event, PastSuccess: after, Future: []string{event},
			Runnable: Runnable{Function: "x"}}
	}
	return []Definition{of("structure", "Structure", "Received"), of("metadata", "Metadata", "Structure"),
		of("ingest", "Ingested", "Metadata")}
}

func by(request string) By { return By{Actor: "eva", Reason: "a test", Request: request} }

const roll17 = "item:roll-17"

// lined is a store with an assembly line and a delivery that was received.
func lined(t *testing.T) *Store {
	t.Helper()
	s := newStore(t)
	define(t, s, chain()...)
	do(t)(s.Create(t.Context(), roll17, CustomItem{Types: []string{"delivery"}}, by("")))
	do(t)(s.Register(t.Context(), roll17, "Received", "", by("")))
	return s
}

// do fails the test for an action that was refused.
func do(t *testing.T) func(a ActionResult, err error) ActionResult {
	return func(a ActionResult, err error) ActionResult {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
}

// ran adds what a component did.
func ran(t *testing.T, s *Store, component, name, outcome string) {
	t.Helper()
	_, err := s.change(t.Context(), roll17, func(c *change) error {
		return c.append("component.ran", outcome, component, By{}, Ran{Component: component, Event: name,
			BasedOn: SeenVersions{Item: c.item().Version}})
	})
	if err != nil {
		t.Fatal(err)
	}
}

// claim gives a component a lease on the delivery.
func claim(t *testing.T, s *Store, component string, until int64) {
	t.Helper()
	_, err := s.change(t.Context(), roll17, func(c *change) error {
		c.item().Claims = map[string]Claim{component: {Run: "r1", ID: "c1", Until: until}}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// classes are where the delivery is, e.g. "ingest ready, metadata done".
func classes(t *testing.T, s *Store) string {
	t.Helper()
	st, err := s.Show(t.Context(), roll17)
	if err != nil {
		t.Fatal(err)
	}
	all := []string{}
	for name, class := range st.Classes {
		all = append(all, name+" "+class)
	}
	slices.Sort(all)
	return strings.Join(all, ", ")
}

// TestFreeItem: an item is created, changed, forgotten and created again; the same again changes nothing.
func TestFreeItem(t *testing.T) {
	s := newStore(t)
	define(t, s, chain()...)
	is := CustomItem{Types: []string{"roll", "delivery", "roll"}, Identifiers: []string{"D17"},
		Parents: []envelope.Ref{{Type: "Collection", ID: "maps"}}}
	a := do(t)(s.Create(t.Context(), roll17, is, by("")))
	if !a.Changed || !slices.Equal(a.Item.Types, []string{"delivery", "roll"}) || a.Item.Identifiers[1] != "D17" {
		t.Errorf("%+v %+v", a, a.Item)
	}
	rows, _, err := event.Page(t.Context(), s.Table, itemSubject(roll17), "")
	if err != nil || len(rows) != 1 || rows[0].Parents[0].ID != "maps" ||
		!slices.Equal(rows[0].Identifiers, []string{roll17, "D17"}) {
		t.Errorf("%+v, %v", rows, err)
	}
	if a := do(t)(s.Create(t.Context(), roll17, is, by(""))); a.Changed || a.Item.Version != 1 {
		t.Errorf("%+v %+v", a, a.Item)
	}
	_, err = s.Create(t.Context(), roll17, CustomItem{}, by(""))
	if !fault.Is(err, fault.Conflict) {
		t.Errorf("another item of the same id: %v", err)
	}
	if a := do(t)(s.Change(t.Context(), roll17, is, by(""))); a.Changed {
		t.Error("a change to what it is is one")
	}
	is.Types = []string{"shipment"}
	a = do(t)(s.Change(t.Context(), roll17, is, by("")))
	if a.Item.Version != 2 || a.Item.Own[0].Version != 2 || a.Item.Types[0] != "shipment" {
		t.Errorf("%+v", a.Item)
	}
	for _, changed := range []bool{true, false} {
		if a := do(t)(s.Forget(t.Context(), roll17, by(""))); a.Changed != changed || !a.Item.Forgotten {
			t.Errorf("%+v %+v", a, a.Item)
		}
	}
	if _, err := s.Stop(t.Context(), roll17, by("")); !fault.Is(err, fault.NotFound) {
		t.Errorf("a forgotten item is stopped: %v", err)
	}
	if a := do(t)(s.Create(t.Context(), roll17, CustomItem{}, by(""))); a.Item.Version != 4 || a.Item.Forgotten {
		t.Errorf("%+v", a.Item)
	}
}

// TestControl: each action has its effect in the lines, and nothing of another one.
func TestControl(t *testing.T) {
	s := lined(t)
	expect := func(want string) {
		t.Helper()
		if got := classes(t, s); got != want {
			t.Errorf("%q, not %q", got, want)
		}
	}
	expect("structure ready")
	do(t)(s.Stop(t.Context(), roll17, by("")))
	expect("")
	if a := do(t)(s.Stop(t.Context(), roll17, by(""))); a.Changed {
		t.Error("stopped twice")
	}
	do(t)(s.Revoke(t.Context(), roll17, []string{Stopped}, by("")))
	expect("structure ready")
	a := do(t)(s.Register(t.Context(), roll17, "Structure", event.Success, by("")))
	if !strings.Contains(a.Summary, "component structure") {
		t.Error(a.Summary)
	}
	expect("metadata ready, structure done")
	ran(t, s, "metadata", "Metadata", event.Failure)
	expect("metadata failed, structure done")
	do(t)(s.Register(t.Context(), roll17, "Measured", event.Failure, by("")))
	do(t)(s.Stop(t.Context(), roll17, by("")))
	a = do(t)(s.Restart(t.Context(), roll17, "", by("")))
	if !strings.Contains(a.Summary, "Metadata, Measured, Manually_stopped of") {
		t.Error(a.Summary)
	}
	expect("metadata ready, structure done")
	do(t)(s.Restart(t.Context(), roll17, "Structure", by("")))
	expect("structure ready")
	a = do(t)(s.Revoke(t.Context(), roll17, []string{"Received", "Structure", "Nothing"}, by("")))
	if !strings.HasSuffix(a.Summary, "there was no event Nothing, Structure that counts") {
		t.Error(a.Summary)
	}
	expect("")
	if a := do(t)(s.Revoke(t.Context(), roll17, []string{"Received"}, by(""))); a.Changed {
		t.Error("revoked twice")
	}
}

// TestPriority: a priority moves an item to the head of the line.
func TestPriority(t *testing.T) {
	s := lined(t)
	do(t)(s.Prioritize(t.Context(), roll17, 9, by("")))
	row, err := s.row(t.Context(), roll17)
	if err != nil || !strings.HasPrefix(row.Places["structure"], "ready#0#") || row.it.Priority != 9 {
		t.Errorf("%v, %v", row.Places, err)
	}
	if a := do(t)(s.Prioritize(t.Context(), roll17, 9, by(""))); a.Changed || a.Item.Version != 3 {
		t.Errorf("%+v", a)
	}
}

// TestClaimed: what concerns a component is refused while it works on the item, and a lease that has
// ended is taken away, so that a worker that comes late has none.
func TestClaimed(t *testing.T) {
	actions := map[string]func(s *Store) (ActionResult, error){
		"event": func(s *Store) (ActionResult, error) {
			return s.Register(t.Context(), roll17, "Structure", "", by(""))
		},
		"revoke": func(s *Store) (ActionResult, error) {
			return s.Revoke(t.Context(), roll17, []string{"Received"}, by(""))
		},
		"restart": func(s *Store) (ActionResult, error) { return s.Restart(t.Context(), roll17, "Received", by("")) },
		"forget":  func(s *Store) (ActionResult, error) { return s.Forget(t.Context(), roll17, by("")) },
	}
	for name, act := range actions {
		s := lined(t)
		now := millis(s.Now())
		claim(t, s, "structure", now+60_000)
		_, err := act(s)
		if !fault.Is(err, fault.Conflict) || !strings.Contains(err.Error(), "component structure is working on") ||
			!strings.Contains(err.Error(), "1970-01-01T00:17:40Z") {
			t.Errorf("%s: %v", name, err)
		}
		if st, err := s.Show(t.Context(), roll17); err != nil || st.Version != 2 {
			t.Errorf("%s: refused, but the item is changed: %+v, %v", name, st, err)
		}
		do(t)(s.Register(t.Context(), roll17, "Metadata", "", by(""))) // of another component
		claim(t, s, "structure", now)
		if a := do(t)(act(s)); len(a.Item.Claims) > 0 {
			t.Errorf("%s: the lease that has ended is still there", name)
		}
	}
	s := lined(t)
	claim(t, s, "structure", millis(s.Now())+60_000)
	if a := do(t)(s.Stop(t.Context(), roll17, by(""))); !strings.Contains(a.Summary, "structure is still working") ||
		len(a.Item.Claims) != 1 {
		t.Error(a.Summary)
	}
	if a := do(t)(s.Release(t.Context(), roll17, "structure", by(""))); len(a.Item.Claims) > 0 || !a.Changed {
		t.Errorf("%+v", a)
	}
	if a := do(t)(s.Release(t.Context(), roll17, "structure", by(""))); a.Changed {
		t.Errorf("released twice: %+v", a)
	}
	if _, err := s.Release(t.Context(), roll17, "nobody", by("")); !fault.Is(err, fault.NotFound) {
		t.Error(err)
	}
}

// TestRevokeOfAwaitedFailure: a failure is not revoked while a component works because of it: the result would be
// based on what does not count. When the component is done, the failure can be revoked.
func TestRevokeOfAwaitedFailure(t *testing.T) {
	s := lined(t)
	define(t, s, Definition{Name: "repair", Event: "Repaired", PastFailure: []string{"Structure"},
		Future: []string{"Repaired"}, Runnable: Runnable{Function: "x"}})
	ran(t, s, "structure", "Structure", event.Failure)
	claim(t, s, "repair", millis(s.Now())+60_000)
	before := classes(t, s)
	if before != "repair running, structure failed" {
		t.Fatalf("before it is revoked: %s", before)
	}
	_, err := s.Revoke(t.Context(), roll17, []string{"Structure"}, by(""))
	if !fault.Is(err, fault.Conflict) || !strings.Contains(err.Error(), "component repair is working on") {
		t.Errorf("revoked while a component works because of it: %v", err)
	}
	_, err = s.Restart(t.Context(), roll17, "", by(""))
	if !fault.Is(err, fault.Conflict) {
		t.Errorf("restarted while a component works because of the failure: %v", err)
	}
	if got := classes(t, s); got != before {
		t.Errorf("it was refused, but the item is changed: %s", got)
	}
	ran(t, s, "repair", "Repaired", event.Success)
	do(t)(s.Revoke(t.Context(), roll17, []string{"Structure"}, by("")))
	if got := classes(t, s); got != "repair done, structure ready" {
		t.Errorf("after it was revoked: %s", got)
	}
}

// TestRefused: what cannot be done is refused with the field, and changes nothing.
func TestRefused(t *testing.T) {
	s := lined(t)
	ctx := t.Context()
	long := strings.Repeat("x", 501)
	for want, act := range map[string]func() (ActionResult, error){
		"reason: empty":            func() (ActionResult, error) { return s.Stop(ctx, roll17, By{}) },
		"reason: 501 characters":   func() (ActionResult, error) { return s.Stop(ctx, roll17, By{Reason: long}) },
		"reason: it has a control": func() (ActionResult, error) { return s.Stop(ctx, roll17, By{Reason: "a\nb"}) },
		"there is no item item:x":  func() (ActionResult, error) { return s.Stop(ctx, "item:x", by("")) },
		`there is no object "ark:/1/a"`: func() (ActionResult, error) {
			return s.Stop(ctx, "ark:/1/a", by(""))
		},
		`"thing:x": expected object:ARK`: func() (ActionResult, error) { return s.Stop(ctx, "thing:x", by("")) },
		`event: "two words"`: func() (ActionResult, error) {
			return s.Register(ctx, roll17, "two words", "", by(""))
		},
		"use the action stop": func() (ActionResult, error) {
			return s.Register(ctx, roll17, Stopped, "", by(""))
		},
		`outcome: "perhaps"`: func() (ActionResult, error) { return s.Register(ctx, roll17, "A", "perhaps", by("")) },
		"object.create is an event of the system": func() (ActionResult, error) {
			return s.Revoke(ctx, roll17, []string{"object.create"}, by(""))
		},
		"events: expected":     func() (ActionResult, error) { return s.Revoke(ctx, roll17, nil, by("")) },
		"is a failure; name":   func() (ActionResult, error) { return s.Restart(ctx, roll17, "", by("")) },
		"has no event Other":   func() (ActionResult, error) { return s.Restart(ctx, roll17, "Other", by("")) },
		"priority: 10":         func() (ActionResult, error) { return s.Prioritize(ctx, roll17, 10, by("")) },
		"priority: 0":          func() (ActionResult, error) { return s.Prioritize(ctx, roll17, 0, by("")) },
		"so it has no action ": func() (ActionResult, error) { return s.Forget(ctx, "batch:1", by("")) },
		"types: \"9\"": func() (ActionResult, error) {
			return s.Create(ctx, "item:y", CustomItem{Types: []string{"9"}}, by(""))
		},
		"parents: \"Shelf\"": func() (ActionResult, error) {
			return s.Create(ctx, "item:y", CustomItem{Parents: []envelope.Ref{{Type: "Shelf", ID: "1"}}}, by(""))
		},
		"not the name of a collection": func() (ActionResult, error) {
			return s.Create(ctx, "item:y", CustomItem{Parents: []envelope.Ref{{Type: "Collection", ID: "a b"}}}, by(""))
		},
		"more than one collection": func() (ActionResult, error) {
			return s.Create(ctx, "item:y", CustomItem{Parents: []envelope.Ref{{Type: "Collection", ID: "a"},
				{Type: "Collection", ID: "b"}}}, by(""))
		},
		"parents: 21": func() (ActionResult, error) {
			return s.Create(ctx, "item:y", CustomItem{Parents: make([]envelope.Ref, 21)}, by(""))
		},
		"identifiers:": func() (ActionResult, error) {
			return s.Create(ctx, "item:y", CustomItem{Identifiers: []string{long}}, by(""))
		},
	} {
		if _, err := act(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
	if st, err := s.Show(ctx, roll17); err != nil || st.Version != 2 {
		t.Errorf("%+v, %v", st, err)
	}
}

// TestEventNames: the names of events of an item are bounded; those that it has can be used again.
func TestEventNames(t *testing.T) {
	s := lined(t)
	for i := range MaxEventNames - 1 {
		do(t)(s.Register(t.Context(), roll17, fmt.Sprintf("Name%d", i), "", by("")))
	}
	do(t)(s.Revoke(t.Context(), roll17, []string{"Name7"}, by("")))
	_, err := s.Register(t.Context(), roll17, "Another", "", by(""))
	if !fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), "have 100 names; at most 100") {
		t.Error(err)
	}
	do(t)(s.Register(t.Context(), roll17, "Name7", "", by("")))
	row, err := s.row(t.Context(), roll17)
	if err != nil || table.Size(row) > 200<<10 {
		t.Errorf("%d bytes, %v", table.Size(row), err)
	}
}

// TestRequest: the same request again has the same answer and changes nothing, whatever happened since;
// its id for something else is refused.
func TestRequest(t *testing.T) {
	s := lined(t)
	first := do(t)(s.Stop(t.Context(), roll17, by("one")))
	again := do(t)(s.Stop(t.Context(), roll17, by("two")))
	do(t)(s.Revoke(t.Context(), roll17, []string{Stopped}, by("three")))
	for request, want := range map[string]ActionResult{"one": first, "two": again} {
		got := do(t)(s.Stop(t.Context(), roll17, by(request)))
		if got.Summary != want.Summary || got.Changed != want.Changed || got.Item.Version != 4 {
			t.Errorf("%+v, not %+v", got, want)
		}
	}
	if _, err := s.Forget(t.Context(), roll17, by("one")); !fault.Is(err, fault.Conflict) {
		t.Error(err)
	}
	for i := range 2 * registry.MaxRequests {
		do(t)(s.Prioritize(t.Context(), roll17, 1+i%9, by(fmt.Sprint(i))))
	}
	if row, err := s.row(t.Context(), roll17); err != nil || len(row.Requests) != registry.MaxRequests {
		t.Errorf("%d requests, %v", len(row.Requests), err)
	}
}
