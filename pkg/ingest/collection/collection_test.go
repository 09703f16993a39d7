package collection_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"archivist/pkg/events/event"
	"archivist/pkg/formats/container"
	"archivist/pkg/ingest/collection"
	"archivist/pkg/ingest/policy"
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
		if err := s.Put(t.Context(), "maps", want, collection.By{Actor: "me"}, 1); err != nil {
			t.Fatal(err)
		}
	}
	got, known, err := s.Profile(t.Context(), "maps")
	if err != nil || !known || got.Title != "Maps" || *got.Priority != 2 || got.Callback.Mode != collection.Required {
		t.Errorf("%+v, %v, %v", got, known, err)
	}
	want.Title = "Old maps"
	if err := s.Put(t.Context(), "maps", want, collection.By{Actor: "me"}, 2); err != nil {
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
		"of tasks": {Callback: collection.Callback{URL: "https://example.org", Secret: "archivist/tasks/maps/x"}},
		"secret":   {Callback: collection.Callback{URL: "https://example.org", Secret: "other"}},
		"unsigned": {Callback: collection.Callback{URL: "https://example.org", Hosts: []string{"example.org"}}},
		"nothing":  {Callback: collection.Callback{Secret: "archivist/x"}},
		"mode of":  {Callback: collection.Callback{Mode: collection.BestEffort}},
		"other":    {Callback: collection.Callback{Hosts: []string{"example.org"}, Secret: "archivist/ezid"}},
		"wildcard": {Callback: collection.Callback{Hosts: []string{"*.example.org"}}},
		"a URL":    {Callback: collection.Callback{Hosts: []string{"https://example.org"}}},
		"blank":    {Callback: collection.Callback{Hosts: []string{""}}},
		"too many": {Callback: collection.Callback{Hosts: slices.Repeat([]string{"example.org"},
			collection.MaxCallbackHosts+1)}},
	} {
		if err := s.Put(t.Context(), name, p, collection.By{Actor: "me"}, 1); !fault.Is(err, fault.Invalid) {
			t.Errorf("%s: %v", name, err)
		}
		if _, known, _ := s.Profile(t.Context(), name); known {
			t.Errorf("%s: the refused profile was stored", name)
		}
	}
}

// TestKept: a legal hold is lifted only by saying so, and replaced by no other; a retention is made later, and goes
// only once its day has ended. What is refused changes nothing.
func TestKept(t *testing.T) {
	n := 0
	s := collection.Store{Table: tabletest.Open(t), NewID: func() string { n++; return fmt.Sprint("id", n) }}
	text := func(s string) *string { return &s }
	days := func(n int) int64 { return time.Date(2026, 11, 27, 23, 0, 0, 0, time.UTC).AddDate(0, 0, n).UnixMilli() }
	long := strings.Repeat("x", 3000)
	for i, c := range []struct {
		day         int
		hold        *string
		until       string
		refused     fault.Kind
		says        string
		held, keeps string // afterwards
	}{
		{0, nil, "31.12.2026", fault.Invalid, "retainUntil: found", "", ""},
		{0, nil, "2026-11-26", fault.Invalid, "in the past", "", ""},
		{0, text(" "), "", fault.Invalid, "legalHold: found only blanks", "", ""},
		{0, text("a\nb"), "", fault.Invalid, "legalHold has a control", "", ""},
		{0, &long, "", fault.Invalid, "legalHold has 3000 bytes", "", ""},
		{0, text(" case 17"), "2026-11-27", "", "", "case 17", "2026-11-27"},
		{0, nil, "2026-11-27", fault.Conflict, `lift it with "legalHold": ""`, "case 17", "2026-11-27"},
		{0, text("case 18"), "2026-11-27", fault.Conflict, "already: case 17", "case 17", "2026-11-27"},
		{0, text("case 17"), "2026-11-29", "", "", "case 17", "2026-11-29"},
		{1, text("case 17"), "2026-11-28", fault.Conflict, "until 2026-11-29. A retention", "case 17", "2026-11-29"},
		{1, text("case 17"), "", fault.Conflict, "retained until 2026-11-29", "case 17", "2026-11-29"},
		{2, text(""), "2026-11-29", "", "", "", "2026-11-29"},
		{3, nil, "2026-11-29", "", "", "", "2026-11-29"}, // repeated after its end
		{3, nil, "", "", "", "", ""},
	} {
		p := collection.Profile{LegalHold: c.hold, RetainUntil: c.until}
		err := s.Put(t.Context(), "maps", p, collection.By{Actor: "me"}, days(c.day))
		if fault.Of(err) != c.refused || err != nil && !strings.Contains(err.Error(), c.says) {
			t.Errorf("%d: %v", i, err)
		}
		all, err := s.Policies(t.Context(), "maps", "none", "maps")
		want := policy.Collection{LegalHold: c.held, RetainUntil: c.keeps}
		if err != nil || all["maps"] != want || all["none"] != (policy.Collection{}) {
			t.Errorf("%d: it says %+v, %v", i, all, err)
		}
	}
}

// TestContainerLimits: a limit that no container could be unpacked by is refused; 0 is the default.
func TestContainerLimits(t *testing.T) {
	for _, row := range []struct {
		given  collection.Containers
		wrong  string
		limits container.Limits
	}{
		{given: collection.Containers{}, limits: container.DefaultLimits},
		{given: collection.Containers{Keep: true, MaxFiles: 500_000, MaxBytes: 1 << 50, MaxRatio: 1100},
			limits: container.Limits{Files: 500_000, Bytes: 1 << 50, Ratio: 1100}},
		{given: collection.Containers{MaxRatio: 5}, limits: container.Limits{Files: container.DefaultLimits.Files,
			Bytes: container.DefaultLimits.Bytes, Ratio: 5}},
		{given: collection.Containers{MaxFiles: 500_001}, wrong: "containers.maxFiles: 500001"},
		{given: collection.Containers{MaxBytes: -1}, wrong: "containers.maxBytes: -1"},
		{given: collection.Containers{MaxRatio: 1101}, wrong: "containers.maxRatio: 1101"},
	} {
		s := collection.Store{Table: tabletest.Table(tabletest.New()), NewID: func() string { return "ID1" }}
		p := collection.Profile{Containers: &row.given}
		err := s.Put(t.Context(), "maps", p, collection.By{Actor: "me"}, 1)
		if row.wrong != "" {
			if !fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), row.wrong) {
				t.Errorf("%+v: %v; expected %q", row.given, err, row.wrong)
			}
			continue
		}
		got, _, readErr := s.Profile(t.Context(), "maps")
		if err != nil || readErr != nil || got.Limits() != row.limits || got.KeepsContainers() != row.given.Keep {
			t.Errorf("%+v: %+v, %v, %v", row.given, got.Limits(), err, readErr)
		}
	}
}
