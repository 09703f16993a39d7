package revision

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"archivist/pkg/revisions/workflow"
)

// TestBackfillForgets: what a back-fill remembers of tasks stays within the row of its archive, however many tasks have
// other names in each revision; those of the last revisions are kept.
func TestBackfillForgets(t *testing.T) {
	b := &backfill{Next: 1, To: 1000}
	for n := range int64(100) {
		done := map[string]workflow.State{}
		for i := range workflow.MaxTasks {
			done[fmt.Sprintf("%s-%d-%d", strings.Repeat("x", 45), n, i)] = workflow.Blocked
		}
		b = b.after(n+1, done)
	}
	text, err := json.Marshal(b)
	if err != nil || len(text) > 200_000 || len(b.Latest) != latestMost {
		t.Errorf("%d tasks in %d bytes, %v", len(b.Latest), len(text), err)
	}
	if b.Latest[workflow.Commit] != 100 {
		t.Errorf("the last revision is %d", b.Latest[workflow.Commit])
	}
	for name, n := range b.Latest {
		if n < 91 {
			t.Fatalf("%s of revision %d is kept", name, n)
		}
	}
}
