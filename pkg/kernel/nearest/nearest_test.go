package nearest_test

import (
	"testing"

	"archivist/pkg/kernel/nearest"
)

// TestTo: a slip is found, another word is not.
func TestTo(t *testing.T) {
	names := []string{"depends", "revisionQueue", "share", "tags"}
	for text, want := range map[string]string{"dependz": "depends", "revisionqueue": "revisionQueue", "Shares": "share",
		"tag": "tags", "x": "", "": "", "researchProjects": ""} {
		if got := nearest.To(text, names); got != want {
			t.Errorf("%q is taken for %q, expected %q", text, got, want)
		}
	}
}
