package access

import (
	"slices"
	"testing"

	"archivist/pkg/kernel/fault"
)

// TestParse: a grant is read as it is written; what is not one is refused.
func TestParse(t *testing.T) {
	for _, g := range []Grant{{Role: Administrator}, {Role: Operator}, {Role: Viewer}, {Depositor,
		"maps"},
		{Depositor, "Maps.1_b-c"}, {Researcher, "jingles"}, {Notifier, "songs"}} {
		if got, err := Parse(g.String()); err != nil || got != g {
			t.Errorf("%s: %+v, %v", g, got, err)
		}
	}
	for _, text := range []string{"", "admin", "Administrator", "administrator:",
		"administrator:maps", "viewer:maps",
		"operator:", "depositor", "depositor:", "depositor:.maps", "depositor:a b", "depositor:a,b",
		"depositor:a:b",
		"researcher", "researcher:", "researcher:A", "researcher:a,b", "notifier:A", ":maps",
		" viewer"} {
		if got, err := Parse(text); !fault.Is(err, fault.Invalid) || got != (Grant{}) {
			t.Errorf("%q: %+v, %v", text, got, err)
		}
	}
}

// TestIs: an administrator is an operator, and both are viewers; the others are none of them.
func TestIs(t *testing.T) {
	for text, want := range map[string][3]bool{"administrator": {true, true, true},
		"operator": {false, true, true},
		"viewer":   {false, false, true}, "depositor:maps": {}, "researcher:jingles": {},
		"notifier:maps": {}} {
		g, err := Parse(text)
		x := Identity{Grants: []Grant{g}}
		if got := [3]bool{x.Is(Administrator), x.Is(Operator), x.Is(Viewer)}; err != nil ||
			got != want {
			t.Errorf("%s: %v, %v", text, got, err)
		}
		if x.Is(Depositor) || x.Is("") || (Identity{}).Is(Viewer) {
			t.Errorf("%s is what it is not", text)
		}
	}
	x := Identity{Grants: []Grant{{Depositor, "b"}, {Depositor, "a"}, {Researcher, "c"}, {Depositor,
		"b"},
		{Role: Depositor}}}
	if got := x.Of(Depositor); !slices.Equal(got, []string{"a", "b"}) {
		t.Error(got)
	}
}
