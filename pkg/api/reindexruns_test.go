package api_test

import (
	"strings"
	"testing"

	v1 "archivist/pkg/api/v1"
	"archivist/pkg/kernel/fault"
)

// TestReindexRuns: what is reported of a reindex is shown to viewers, with its failures; what cannot be is refused.
func TestReindexRuns(t *testing.T) {
	c, _ := guarded(t)
	in := v1.ReindexReport{Done: 5, Total: 10, Objects: 3, Failed: 1,
		Failures: []v1.NotReindexed{{Stored: "0a1/o", Why: strings.Repeat("x", 3000)}}}
	const id = "ABCDEFGH234567"
	if _, err := c.ReportReindex(t.Context(), id, in); err != nil {
		t.Fatal(err)
	}
	in.Done = 11
	if _, err := c.ReportReindex(t.Context(), id, in); !fault.Is(err, fault.Invalid) ||
		!strings.Contains(err.Error(), "done: found 11") {
		t.Errorf("more than all: %v", err)
	}
	in.Done = 6
	for _, bad := range []string{"has-a-hyphen", strings.Repeat("A", 65)} {
		if _, err := c.ReportReindex(t.Context(), bad, in); !fault.Is(err, fault.Invalid) {
			t.Errorf("%s: %v", bad, err)
		}
	}

	c.Bearer = as("viewer")
	if _, err := c.ReportReindex(t.Context(), id, in); !fault.Is(err, fault.Denied) {
		t.Errorf("a viewer reports: %v", err)
	}
	runs, err := c.ReindexRuns(t.Context())
	if err != nil || len(runs) != 1 || runs[0].State != v1.ReindexRunning || runs[0].Done != 5 ||
		len(runs[0].Failures) != 1 || runs[0].Failures[0].Stored != "0a1/o" || len(runs[0].Failures[0].Why) > 1000 {
		t.Errorf("%+v, %v", runs, err)
	}
}
