package e2e

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	v1 "archivist/pkg/api/v1"
	"archivist/pkg/ingest"
)

// submit submits one object and returns its batch and job.
func submit(t *testing.T, url, kind string, ids ...string) (batch, job string) {
	t.Helper()
	in := v1.BatchRequest{Collection: "e2e", Submitter: t.Name(), Payload: v1.Payload{URL: url, Type: kind},
		Identifiers: &v1.Identifiers{Local: ids}, Metadata: &v1.Metadata{What: t.Name()},
		Notification: []string{strings.ToLower(t.Name()) + "@example.org"}}
	b, err := client.Submit(t.Context(), in, fmt.Sprintf("%s-%v-%d", t.Name(), ids, time.Now().UnixNano()))
	if err != nil {
		t.Fatal(err)
	}
	return b.ID, ingest.JobID(b.ID, 1)
}

func jobOf(t *testing.T, id string) v1.Job {
	t.Helper()
	j, err := client.Job(t.Context(), id)
	if err != nil {
		return v1.Job{ID: id} // not unpacked yet
	}
	return j
}

func batchOf(t *testing.T, id string) v1.Batch {
	t.Helper()
	b, err := client.Batch(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// reportOf is a batch's report as it is saved.
func reportOf(t *testing.T, batch string) string {
	t.Helper()
	body, err := client.Report(t.Context(), batch, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer body.Close()
	report, err := io.ReadAll(body)
	if err != nil || !json.Valid(report) {
		t.Fatalf("the report of %s is %s, %v", batch, report, err)
	}
	return string(report)
}

// ends waits for a job to end in a state.
func ends(t *testing.T, id, state string, within time.Duration) v1.Job {
	t.Helper()
	var j v1.Job
	until(t, fmt.Sprintf("job %s %s", id, state), within, func() bool {
		j = jobOf(t, id)
		if j.State == "Failed" && state != "Failed" {
			t.Fatalf("job %s failed: %s", id, j.Message)
		}
		return j.State == state
	})
	return j
}

func eventsOf(t *testing.T, job string) []v1.Event {
	t.Helper()
	all, err := client.Events(t.Context(), job)
	if err != nil {
		t.Fatal(err)
	}
	for i, e := range all {
		if e.Version != int64(i+1) {
			t.Fatalf("job %s: event %d has version %d", job, i+1, e.Version)
		}
	}
	return all
}

// repairsOf is how often a job was repaired.
func repairsOf(t *testing.T, job string) (n int) {
	t.Helper()
	for _, e := range eventsOf(t, job) {
		if e.Type == "job.repaired" {
			n++
		}
	}
	return n
}

func requeue(t *testing.T, job string) error {
	t.Helper()
	_, err := client.ActOnJob(t.Context(), job, v1.Action{Action: "requeue", Reason: "the source is corrected"}, "")
	return err
}

// content reads a stored file back through the API.
func content(t *testing.T, j v1.Job, path string) []byte {
	t.Helper()
	body, err := client.Content(t.Context(), j.Identifiers.Primary, j.Version, path)
	if err != nil {
		t.Fatal(err)
	}
	defer body.Close()
	data, err := io.ReadAll(body)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func decode(t *testing.T, e v1.Event, into any) {
	t.Helper()
	if err := json.Unmarshal(e.Detail, into); err != nil {
		t.Fatal(err)
	}
}
