package ingest

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"archivist/pkg/kernel/fault"
)

func TestCheckLocalID(t *testing.T) {
	for _, c := range []struct {
		id    string
		taken bool
	}{
		{"a", true},
		{"MS 1234/5 (ü)", true},
		{strings.Repeat("é", 250), true},
		{"", false},
		{" a", false}, // a depositor who asks for "a" would not find it
		{"a\u00a0", false},
		{"a;b", false},
		{"a\nb", false},
		{"a\u0085b", false},
		{"a\xffb", false},
		{"a\ufffdb", false}, // what an earlier program could not decode
		{strings.Repeat("é", 250) + "x", false},
	} {
		if err := CheckLocalID(c.id); (err == nil) != c.taken || err != nil && !fault.Is(err, fault.Invalid) {
			t.Errorf("%q: %v, want allowed %v", c.id, err, c.taken)
		}
	}
}

func TestCleanLocalIDs(t *testing.T) {
	got, err := CleanLocalIDs([]string{" b ", "a", "b", "c"})
	if want := []string{"b", "a", "c"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("got %q, %v, want %q", got, err, want)
	}
	var many []string
	for i := range MaxLocalIDs {
		many = append(many, fmt.Sprint(i), fmt.Sprint(" ", i))
	}
	if got, err := CleanLocalIDs(many); err != nil || len(got) != MaxLocalIDs {
		t.Errorf("%d ids, each twice: %d, %v", MaxLocalIDs, len(got), err)
	}
	if _, err := CleanLocalIDs(append(many, "one more")); !fault.Is(err, fault.Invalid) {
		t.Errorf("%d ids: %v", MaxLocalIDs+1, err)
	}
	if _, err := CleanLocalIDs([]string{"a", "b;c"}); !fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(),
		"b;c") {
		t.Errorf("a bad id: %v", err)
	}
}

func TestCut(t *testing.T) {
	for in, want := range map[string]string{"abcd": "abcd", "abcde": "abcd…", "abcé": "abc…"} {
		if got := Cut(in, 4); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}
