package inventory

import (
	"testing"

	"archivist/pkg/ingest"
)

// TestMostIDs: an event lists all local ids that a submission can name.
func TestMostIDs(t *testing.T) {
	if want := ingest.MaxLocalIDs * ingest.MaxLocalIDBytes; mostIDs != want {
		t.Errorf("an event lists local ids of %d bytes, a submission can name %d", mostIDs, want)
	}
}
