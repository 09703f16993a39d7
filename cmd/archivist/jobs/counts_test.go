package jobs

import (
	"strings"
	"testing"

	v1 "archivist/pkg/api/v1"
	"archivist/pkg/kernel/terminal"
)

// TestBatchCounts: each batch has a row for each place that has jobs, with their number and space.
func TestBatchCounts(t *testing.T) {
	var out strings.Builder
	showBatchCounts(terminal.Page{Writer: &out}, v1.JobCounts{Cut: []string{"failed"}, Batches: []v1.BatchJobs{
		{Batch: "B", Collection: "maps", Places: []v1.PlaceJobs{{Place: "pending", Jobs: 3, Bytes: 5}, {Place: "held"},
			{Place: "failed", Jobs: 1}}}}})
	if got := out.String(); got != "B\tmaps\tpending\t3\t5\nB\tmaps\tfailed\t1\t0\n" {
		t.Errorf("%q", got)
	}
}

// TestCountsThatEnd: where only the first jobs are counted, that is said also if none of them is here.
func TestCountsThatEnd(t *testing.T) {
	var out strings.Builder
	showCounts(terminal.Page{Writer: &out, Width: 200}, v1.JobCounts{Cut: []string{"pending", "held"}})
	if got := out.String(); !strings.Contains(got, "that are pending or held, not all") {
		t.Errorf("%q", got)
	}
}
