package registry_test

import (
	"fmt"
	"strings"
	"testing"

	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/registry"
)

// TestReason: a reason has 1 to 500 characters, whatever their bytes, in one line.
func TestReason(t *testing.T) {
	for reason, says := range map[string]string{
		"The store moves.":             "",
		strings.Repeat("ü", 500):       "",
		" " + strings.Repeat("ü", 500): "",
		strings.Repeat("ü", 501):       "501 characters; at most 500",
		"":                             "empty",
		" \t\n":                        "empty",
		"two\nlines":                   "line break",
		"two" + "\u2028" + "lines":     "line break",
		"\xff\xfe is no UTF-8":         "control character",
	} {
		err := registry.By{Reason: reason}.Check()
		accepted := says == "" && err == nil
		if !accepted && (!fault.Is(err, fault.Invalid) || says == "" || !strings.Contains(err.Error(), says)) {
			t.Errorf("%.20q: %v; expected %q", reason, err, says)
		}
	}
}

// TestRequests: a request is known by its id, as long as it is among the last ones; the same id for another request is
// refused. What earlier versions have kept says nothing of what was asked.
func TestRequests(t *testing.T) {
	r := registry.Requests{"old"}.With(registry.By{Request: "a", Asks: "pause"}).With(registry.By{})
	for _, c := range []struct {
		id, asks string
		done     bool
		conflict bool
	}{
		{"a", "pause", true, false},
		{"a", "resume", false, true},
		{"a", "", true, false},
		{"old", "pause", true, false},
		{"b", "pause", false, false},
		{"", "pause", false, false},
	} {
		done, err := r.Done(registry.By{Request: c.id, Asks: c.asks})
		if done != c.done || fault.Is(err, fault.Conflict) != c.conflict || !c.conflict && err != nil {
			t.Errorf("%s %s: %v, %v", c.id, c.asks, done, err)
		}
	}

	before := r
	for i := range registry.MaxRequests {
		r = r.With(registry.By{Request: fmt.Sprint("n", i)})
	}
	done, _ := r.Done(registry.By{Request: "a", Asks: "pause"})
	if done || len(r) != registry.MaxRequests || len(before) != 2 {
		t.Errorf("%d are kept, %d before", len(r), len(before))
	}
}
