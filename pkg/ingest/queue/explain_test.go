package queue_test

import (
	"strings"
	"testing"
	"time"

	"archivist/pkg/ingest"
	"archivist/pkg/kernel/explain"
	"archivist/pkg/kernel/table/tabletest"
)

// TestExplainFailedBatch: the explanation of a failed batch fits the present state of its
// jobs.
func TestExplainFailedBatch(t *testing.T) {
	b := newBench(t)
	batch := b.submit(2, "")
	b.tick()
	for _, m := range b.take() {
		b.handle(m, fails(true))
	}
	b.handle(b.last(), ok)
	says := func(want ...string) {
		t.Helper()
		x, err := b.q.ExplainBatch(t.Context(), batch)
		if err != nil || x.State != string(ingest.BatchFailed) {
			t.Fatalf("%+v, %v", x, err)
		}
		for _, w := range want {
			if !strings.Contains(said(x), w) {
				t.Errorf("got %q, want one with %q", said(x), w)
			}
		}
	}
	says("Failed jobs: 2 of 2", "requeue")
	for n := range 2 {
		b.requeue(ingest.JobID(batch, n+1))
	}
	says("Jobs that are open again: 2 of 2, failed: 0", "When all have ended")
	b.tick()
	for _, m := range b.take() {
		b.handle(m, sized(1))
	}
	b.tick()
	for _, m := range b.take() {
		b.through(m)
	}
	says("None of its jobs is failed now (2 completed)", "archivist batch update-report "+batch)

	row, err := b.q.Submit(t.Context(), ingest.Batch{Collection: "c"}, "", nil, "me")
	if err != nil {
		t.Fatal(err)
	}
	b.handle(b.last(), fails(false))
	batch = row.Batch.ID
	says("no jobs", "submit it again")
}

// TestSchedulerDoesNotRun: the explanation of a job that lacks nothing states since when the
// scheduler has not run.
func TestSchedulerDoesNotRun(t *testing.T) {
	b := newBench(t)
	id := ingest.JobID(b.submit(1, ""), 1)
	b.explains(id, explain.Person, "the scheduler has never run")
	b.q.Settings.MaxInFlight = 0
	b.tick()
	b.q.Settings.MaxInFlight = 1
	ran := b.now
	b.now = b.now.Add(2 * time.Minute)
	b.explains(id, explain.Turn, "each minute")
	b.now = b.now.Add(2 * time.Minute)
	b.explains(id, explain.Person, "the scheduler has not run since "+ran.UTC().Format(time.RFC3339))
	if o, err := b.q.Overview(t.Context()); err != nil || o.LastSweep != ran.UTC().Format(time.RFC3339) {
		t.Errorf("%+v, %v", o, err)
	}
}

// TestExplainShare: the explanation states that the collection has reached its limit.
func TestExplainShare(t *testing.T) {
	b := newBench(t)
	b.q.Settings.Share = 1
	batch := b.submit(2, "")
	b.tick()
	x, err := b.q.ExplainJob(t.Context(), ingest.JobID(batch, 2))
	if err != nil || x.Waits != explain.Limit || !strings.Contains(x.Why, "collection c") {
		t.Errorf("%+v, %v", x, err)
	}
}

// TestOldestWaiting: the oldest job is found by age, however many of better priority wait.
func TestOldestWaiting(t *testing.T) {
	b := newTwinBench(t)
	old := ingest.JobID(b.submitJobs(ingest.Job{Collection: "c", Priority: 50}), 1)
	b.now = b.now.Add(time.Hour)
	b.submitJobs(ingest.Job{Collection: "c", Priority: 60})
	better := make([]ingest.Job, 1001)
	for i := range better {
		better[i] = ingest.Job{Collection: "c", Priority: 4}
	}
	b.submitJobs(better...)
	for _, counted := range []bool{false, true} {
		if counted {
			if err := b.q.Measure(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		o, err := b.q.Overview(t.Context())
		if err != nil || o.OldestWaiting != old {
			t.Errorf("the oldest is %s since %s of %v, want %s; %v", o.OldestWaiting, o.OldestSince,
				o.Waiting, old, err)
		}
	}
}

// TestExplainIsCheap: however many jobs wait, explain reads only the first of them, in one
// request for a job and in a few for a batch.
func TestExplainIsCheap(t *testing.T) {
	count := &queries{DynamoDBAPI: tabletest.New()}
	b := newBenchOn(t, tabletest.Table(count))
	b.tick()
	const n = 2500
	batch := b.submitJobs(make([]ingest.Job, n)...)
	count.n, count.rows = 0, 0
	b.explains(ingest.JobID(batch, n), explain.Turn, "At least 1,000 waiting jobs are ahead.")
	if count.n != 1 || count.rows > 1000 {
		t.Errorf("of a job: %d requests read %d rows of the index", count.n, count.rows)
	}
	count.n, count.rows = 0, 0
	b.explains(batch, explain.Parts, "Jobs that have not ended: 2,500 of 2,500",
		"It is the first of more than 1,000 waiting jobs.")
	if count.n > 4 || count.rows > 2000 {
		t.Errorf("of a batch: %d requests read %d rows of the index", count.n, count.rows)
	}
}
