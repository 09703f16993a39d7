package queue_test

import (
	"fmt"
	"strings"
	"testing"

	"archivist/pkg/ingest"
	"archivist/pkg/ingest/queue"
)

// TestCausesOfFailedBatch: the explanation of a failed batch groups its failed jobs by their causes, whatever
// addresses, names and numbers these contain; the most frequent cause comes first.
func TestCausesOfFailedBatch(t *testing.T) {
	b := newTwinBench(t)
	batch := b.submit(120, "")
	for n := range 120 {
		cause := fmt.Sprintf("http://x.org/%d answered 404 Not Found. Correct the source, then requeue the job", n)
		switch {
		case n == 3:
			continue
		case n == 0:
			cause = `the file "a b.txt" is larger than 5 bytes`
		case n == 118:
			cause = "its digest is wrong"
		case n == 119:
			cause = "its manifest is missing"
		}
		b.edit(ingest.JobID(batch, n+1), func(row *queue.Job) {
			row.Job = b.q.Rules.Failed(row.Job, cause, true, b.now)
		})
	}
	b.editBatch(batch, func(row *queue.Batch) { row.State = ingest.BatchFailed })
	first := ingest.JobID(batch, 2)
	b.count(first, map[string]int64{"n_processing": -120, "n_failed": 119, "n_completed": 1})
	x, err := b.q.ExplainBatch(t.Context(), batch)
	want := []string{
		"cause: 116 × http://x.org/1 answered 404",
		"requeue the job (first: " + first + ")\ncause: 1 × the file",
		"\ncause: 1 × its digest is wrong (first: " + ingest.JobID(batch, 119) + ")\n",
		"archivist job requeue --batch " + batch + " --all-failed",
	}
	for _, text := range want {
		if err != nil || !strings.Contains(said(x), text) {
			t.Errorf("%q is not in %q, %v", text, said(x), err)
		}
	}
}
