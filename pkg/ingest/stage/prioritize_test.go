package stage_test

import (
	"net/http"
	"testing"

	"archivist/pkg/ingest"
	"archivist/pkg/ingest/queue/queuetest"
)

// TestPriorityByAPerson: the size of a job, unknown or known later, does not change a
// priority that a person has set.
func TestPriorityByAPerson(t *testing.T) {
	w := newTwins(t)
	w.Source.Config.Handler = http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		out.(http.Flusher).Flush() // so that it has no length
		if r.Method == http.MethodGet {
			_, _ = out.Write([]byte("content"))
		}
	})
	b, err := w.Machine.Queue.Submit(t.Context(), ingest.Batch{Collection: "bench", Mode: "add",
		Payload: ingest.Payload{URL: w.Source.URL + "/a.txt", Type: ingest.TypeFile, Filename: "a.txt"}}, "", nil, "me")
	if err != nil {
		t.Fatal(err)
	}
	id := ingest.JobID(b.Batch.ID, 1)
	set := func(priority int) {
		t.Helper()
		if _, err := queuetest.Act(t.Context(), w.Machine.Queue, ingest.ActPrioritize, id,
			queuetest.Priority(priority)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Machine.Drain(t.Context()); err != nil { // it is unpacked
		t.Fatal(err)
	}
	set(3)
	if err := w.Machine.Scheduler.Tick(t.Context(), true); err != nil {
		t.Fatal(err)
	}
	if err := w.Machine.Drain(t.Context()); err != nil { // it is estimated
		t.Fatal(err)
	}
	if j := w.Job(id); j.State != ingest.Provisioning || j.SizeKnown || j.Priority != 3 {
		t.Fatalf("the job is %s, size known %v, priority %d: %s", j.State, j.SizeKnown, j.Priority, j.Message)
	}
	set(4)
	w.Drive()
	if j := w.Ended(id, 1, false); j.Priority != 4 {
		t.Errorf("the job has priority %d", j.Priority)
	}
}
