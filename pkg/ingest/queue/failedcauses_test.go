package queue_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

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

// TestFailuresAreBounded: all jobs that have failed recently are counted, and the causes are those of the newest.
func TestFailuresAreBounded(t *testing.T) {
	b := newTwinBench(t)
	batch := b.submit(150, "")
	began := b.now
	for n := range 150 {
		b.now = began.Add(time.Duration(n) * time.Second)
		cause := "an old cause"
		if n >= 50 {
			cause = "a new cause"
		}
		b.edit(ingest.JobID(batch, n+1), func(row *queue.Job) {
			row.Job = b.q.Rules.Failed(row.Job, cause, true, b.now)
		})
	}
	for _, c := range []struct {
		since        time.Time
		jobs, looked int
		causes       string
	}{
		{began, 150, 100, "100 a new cause"},
		{began.Add(50 * time.Second), 100, 100, "100 a new cause"},
		{began.Add(147 * time.Second), 3, 3, "3 a new cause"},
		{b.now.Add(time.Second), 0, 0, ""},
	} {
		causes, jobs, looked, cut, err := b.q.Failures(t.Context(), c.since)
		var says []string
		for _, c := range causes {
			says = append(says, fmt.Sprint(c.Jobs, " ", c.First.Message))
		}
		if err != nil || cut || jobs != c.jobs || looked != c.looked || strings.Join(says, ", ") != c.causes {
			t.Errorf("since %s: %d jobs, %d looked at, %q, %v, %v", c.since, jobs, looked, says, cut, err)
		}
	}
}
