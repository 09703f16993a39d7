package notify

import (
	"encoding/json"
	"slices"
	"testing"
)

// TestEarlierWarnings: old reports, which have the number of warnings, can still be read.
func TestEarlierWarnings(t *testing.T) {
	for text, want := range map[string][]string{
		`{"job": "j"}`:                        nil,
		`{"job": "j", "warnings": null}`:      nil,
		`{"job": "j", "warnings": ["a", ""]}`: {"a", ""},
		`{"job": "j", "warnings": 4}`: {
			"the digest of 4 files matched, and their size differed; the receipt names them"},
	} {
		var j Job
		if err := json.Unmarshal([]byte(text), &j); err != nil || !slices.Equal(j.Warnings, want) {
			t.Errorf("%s: got %q, %v", text, j.Warnings, err)
		}
	}

	if err := json.Unmarshal([]byte(`{"warnings": {}}`), &Job{}); err == nil {
		t.Error("an object was read as warnings")
	}
}
