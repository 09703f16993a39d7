package collection_test

import (
	"fmt"
	"testing"

	"archivist/pkg/events/event"
	"archivist/pkg/ingest/collection"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/table/tabletest"
)

func TestPut(t *testing.T) {
	n := 0
	tb := tabletest.Open(t)
	s := collection.Store{Table: tb, NewID: func() string { n++; return fmt.Sprint("id", n) }}
	if p, known, err := s.Profile(t.Context(), "maps"); err != nil || known || p.Callback.URL != "" {
		t.Errorf("of a collection without a profile: %+v, %v, %v", p, known, err)
	}
	two := 2
	want := collection.Profile{Title: "Maps", Priority: &two, Notify: []string{"b@example.org"},
		Callback: collection.Callback{URL: "https://example.org/x", Secret: "archivist/maps"}}
	for range 2 { // the second time nothing changes
		if err := s.Put(t.Context(), "maps", want, "me", 1); err != nil {
			t.Fatal(err)
		}
	}
	got, known, err := s.Profile(t.Context(), "maps")
	if err != nil || !known || got.Title != "Maps" || *got.Priority != 2 || got.Callback.Mode != collection.Required {
		t.Errorf("%+v, %v, %v", got, known, err)
	}
	want.Title = "Old maps"
	if err := s.Put(t.Context(), "maps", want, "me", 2); err != nil {
		t.Fatal(err)
	}
	events, _, err := event.Page(t.Context(), tb, event.Subject{Type: event.Collection, ID: "maps"}, "")
	if err != nil || len(events) != 2 || events[1].Version != 2 {
		t.Errorf("the history has %d events, %v", len(events), err)
	}
	if all := got.Recipients([]string{"a@example.org",
		"b@example.org"}); fmt.Sprint(all) != "[a@example.org b@example.org]" {
		t.Errorf("mail goes to %v", all)
	}
}

func TestRefuses(t *testing.T) {
	s := collection.Store{Table: tabletest.Open(t), NewID: func() string { return "id" }}
	bad := -1
	for name, p := range map[string]collection.Profile{
		"a/b":      {},
		"priority": {Priority: &bad},
		"shoulder": {Shoulder: "FK4"},
		"suppress": {Suppress: "never"},
		"mode":     {Callback: collection.Callback{Mode: "sometimes"}},
		"mail":     {Notify: []string{"nobody"}},
		"named":    {Notify: []string{"Me <me@example.org>"}},
		"url":      {Callback: collection.Callback{URL: "ftp://example.org", Secret: "archivist/x"}},
		"plain":    {Callback: collection.Callback{URL: "http://example.org", Secret: "archivist/x"}},
		"secret":   {Callback: collection.Callback{URL: "https://example.org", Secret: "other"}},
	} {
		if err := s.Put(t.Context(), name, p, "me", 1); !fault.Is(err, fault.Invalid) {
			t.Errorf("%s: %v", name, err)
		}
		if _, known, _ := s.Profile(t.Context(), name); known {
			t.Errorf("%s: the refused profile was stored", name)
		}
	}
}
