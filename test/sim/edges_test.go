package sim

import (
	"fmt"
	"testing"

	"archivist/pkg/ingest"
)

// edges lists the transitions that the tables of package ingest allow.
func edges() (out []string) {
	jobs := append([]ingest.State{"", ingest.Held, ingest.Failed, ingest.Deleted}, ingest.Order...)
	for _, from := range jobs {
		for _, to := range jobs {
			if ingest.CheckJob(from, to) == nil {
				out = append(out, fmt.Sprintf("job %s→%s", from, to))
			}
		}
	}
	batches := []ingest.BatchState{"", ingest.BatchPending, ingest.BatchHeld, ingest.BatchProcessing,
		ingest.BatchReporting, ingest.BatchUpdateReporting, ingest.BatchCompleted, ingest.BatchFailed,
		ingest.BatchDeleted}
	for _, from := range batches {
		for _, to := range batches {
			if ingest.CheckBatch(from, to) == nil {
				out = append(out, fmt.Sprintf("batch %s→%s", from, to))
			}
		}
	}
	return out
}

// checkEdges fails if the seeds have not taken each transition that the tables allow.
func checkEdges(t *testing.T, taken map[string]int) {
	t.Helper()
	for _, edge := range edges() {
		t.Logf("%-34s %d", edge, taken[edge])
		if taken[edge] == 0 {
			t.Errorf("no seed took the transition %s", edge)
		}
	}
}
