package merritt

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"archivist/pkg/ingest"
	"archivist/pkg/ingest/collection"
)

// failed is a scene with a job that has failed, what is expected of it, and how its cause is
// corrected.
type failed struct {
	*scene
	id      string
	want    status
	correct func()
}

// failure runs a job until a stage fails it.
func failure(t *testing.T, stage string, want status) failed {
	s := newScene(t)
	batch := s.queued(object{name: "a"})
	f := failed{scene: s, id: ingest.JobID(batch, 1), want: want, correct: func() { s.broken[stage] = "" }}
	s.broken[stage] = stage + " is out of order"
	if stage == "download" {
		s.broken[stage] = ""
		s.reach(f.id, ingest.Provisioning)
		s.src.set("/a.txt", status404)
		f.correct = func() { s.src.set("/a.txt", nil) }
	}
	s.reach(f.id, ingest.Failed)
	return f
}

func failedDownloading(t *testing.T) failed {
	return failure(t, "download", status{state: ingest.Failed, last: ingest.Provisioning, place: ingest.WorkCleanUp,
		counts: counts{Failed: 1}, event: "Downloading→Failed"})
}

func failedProcessing(t *testing.T) failed {
	return failure(t, "process", status{state: ingest.Failed, last: ingest.Downloading, place: ingest.WorkCleanUp,
		counts: counts{Failed: 1}, event: "Processing→Failed"})
}

func failedStoring(t *testing.T) failed {
	return failure(t, "store", status{state: ingest.Failed, last: ingest.Processing, place: ingest.WorkCleanUp,
		counts: counts{Failed: 1}, event: "Storing→Failed"})
}

// failedRecording: the last successful state is Storing, which Merritt does not have.
func failedRecording(t *testing.T) failed {
	return failure(t, "record", status{state: ingest.Failed, last: ingest.Storing, place: ingest.WorkCleanUp,
		counts: counts{Failed: 1}, event: "Recording→Failed"})
}

func failedNotify(t *testing.T) failed {
	return failure(t, "notify", status{state: ingest.Failed, last: ingest.Recording, place: ingest.WorkCleanUp,
		counts: counts{Failed: 1}, event: "Notify→Failed"})
}

// check checks the failed job: the last successful state is that of before, and its message
// says why.
func (f failed) check(says string) {
	f.Helper()
	f.is(f.id, f.want)
	if j := f.Job(f.id); !strings.Contains(j.Message, says) || j.NotRecoverable {
		f.Errorf("%s, for good %v", j.Message, j.NotRecoverable)
	}
}

func jobDownloadingToFailed(t *testing.T) { failedDownloading(t).check("404") }

func jobProcessingToFailed(t *testing.T) {
	failedProcessing(t).check("process is out of order")
	failedStoring(t).check("store is out of order")
}

// jobRecordingToFailed: the version is preserved, which the message says first.
func jobRecordingToFailed(t *testing.T) {
	failedRecording(t).check("preserved as ark:/99999/fk4")
}

func jobNotifyToFailed(t *testing.T) { failedNotify(t).check("preserved as ark:/99999/fk4") }

// resumed: a requeued job continues in the state in which it failed, with one retry more. Then
// it is completed.
func resumed(begin func(t *testing.T) failed) func(*testing.T) {
	return func(t *testing.T) {
		f := begin(t)
		at := ingest.After(f.want.last)
		f.reachBatch(f.id[:26], ingest.BatchFailed)
		f.correct()
		did := f.do(ingest.ActRequeue, f.id)
		if did.From != "Failed" || did.To != string(at) {
			t.Errorf("%+v", did)
		}
		f.is(f.id, status{state: at, last: f.want.last, retries: 1, place: ingest.WorkPending,
			counts: counts{Processing: 1}, event: fmt.Sprintf("Failed→%s", at)})
		f.reach(f.id, ingest.Completed)
		f.is(f.id, status{state: ingest.Completed, last: ingest.Notify, retries: 1, counts: counts{Completed: 1},
			event: "Notify→Completed"})
		if j := f.Job(f.id); j.ObjectVersion != 1 {
			t.Errorf("it has version %d", j.ObjectVersion)
		}
	}
}

// resuming: the state in which a job continues follows from its last successful one, whichever
// stage failed; one without any starts again.
func resuming(t *testing.T) {
	for _, begin := range []func(*testing.T) failed{failedDownloading, failedProcessing, failedStoring, failedRecording,
		failedNotify} {
		f := begin(t)
		f.do(ingest.ActRequeue, f.id)
		if got, want := f.Job(f.id).State, ingest.After(f.want.last); got != want {
			t.Errorf("after %s it continues at %s", f.want.last, got)
		}
	}
	f := failure(t, "estimate", status{})
	f.is(f.id, status{state: ingest.Failed, place: ingest.WorkFailed, counts: counts{Failed: 1},
		event: "Estimating→Failed"})
	f.do(ingest.ActRequeue, f.id)
	f.is(f.id, status{state: ingest.Pending, retries: 1, place: ingest.WorkPending, counts: counts{Processing: 1},
		event: "Failed→Pending"})
}

// notifying: if the collection's profile has a callback, it is sent with the job's object. Then
// the batch can determine that all its jobs have ended.
func notifying(t *testing.T) {
	s := newScene(t)
	var got []string
	receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		got = append(got, string(body))
	}))
	t.Cleanup(receiver.Close)
	s.Stages.Secret = func(_ context.Context, _ string) (string, error) { return "key", nil }
	s.Stages.Collections.Plain = true
	err := s.Stages.Collections.Put(t.Context(), "bench", collection.Profile{Callback: collection.Callback{
		URL: receiver.URL, Secret: collection.SecretPrefix + "bench", Mode: collection.Required}},
		collection.By{Actor: "me"}, 0)
	if err != nil {
		t.Fatal(err)
	}
	batch := s.queued(object{name: "a"})
	id := ingest.JobID(batch, 1)
	s.reach(id, ingest.Notify)
	if len(got) != 0 {
		t.Errorf("notified early: %q", got)
	}
	s.reach(id, ingest.Completed)
	if len(got) != 1 || !strings.Contains(got[0], s.Job(id).Primary) || !strings.Contains(got[0], id) {
		t.Errorf("notified %q", got)
	}
	s.reachBatch(batch, ingest.BatchCompleted)
}
