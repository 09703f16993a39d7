package stage_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"

	"archivist/pkg/ingest"
	"archivist/pkg/ingest/collection"
	"archivist/pkg/ingest/queue/queuetest"
)

// recorded fails unless the job has recorded this of its callbacks, one line each: who named the
// receiver, what became of it, after how many requests; and its batch these amounts of them.
func (w *toldWorld) recorded(id string, amounts ingest.Amounts, want ...string) {
	w.Helper()
	j := w.Job(id)
	var got []string
	for _, c := range j.Calls {
		got = append(got, c.By+" "+string(j.CallState(c))+" "+ingest.Number(c.Tries))
		delivered, waits := j.CallState(c) == ingest.CallDelivered, j.CallState(c) == ingest.CallWaits
		if c.At == 0 || (c.Problem == "") != delivered && !waits ||
			!strings.HasPrefix(c.Site, "http://") || strings.Contains(c.Site+c.Problem, "SECRET") {
			w.Errorf("%+v", c)
		}
	}
	if strings.Join(got, ", ") != strings.Join(want, ", ") {
		w.Errorf("recorded %q, expected %q", got, want)
	}
	counts, err := w.Machine.Queue.Counts(w.Context(), j.Batch)
	if j.State == ingest.Completed {
		amounts.Bytes = j.Bytes
	}
	if err != nil || counts.Amounts != amounts || j.Bytes == 0 {
		w.Errorf("the batch counts %+v, expected %+v, %v", counts.Amounts, amounts, err)
	}
}

// TestCallsAreRecorded: a job says what became of each of its callbacks: delivered, failed until a
// requeue, or given up; requests add up over requeues, and its batch counts each once.
func TestCallsAreRecorded(t *testing.T) {
	w := newTold(t)
	w.profile(w.usual(""))
	id := w.ends(w.named.URL+"/?SECRET", ingest.Completed)
	w.recorded(id, ingest.Amounts{Called: 2}, "profile delivered 1", "submission delivered 1")

	w = newTold(t)
	w.profile(w.usual(collection.BestEffort))
	w.own.status = http.StatusGone
	id = w.ends(w.named.URL+"/?SECRET", ingest.Completed, "was not delivered")
	w.recorded(id, ingest.Amounts{Called: 1, Uncalled: 1}, "profile given-up 1", "submission delivered 1")

	w = newTold(t)
	w.profile(w.usual(""))
	w.named.status = http.StatusBadGateway
	id = w.ends(w.named.URL+"/?SECRET", ingest.Failed, "notification failed")
	w.recorded(id, ingest.Amounts{Called: 1, CallFailed: 1}, "profile delivered 1", "submission failed 4")
	w.named.status = http.StatusOK
	if _, err := queuetest.Requeue(t.Context(), w.Machine.Queue, id, "corrected", "me"); err != nil {
		t.Fatal(err)
	}
	w.recorded(id, ingest.Amounts{}, "profile waits 1", "submission waits 4")
	w.Drive()
	w.recorded(id, ingest.Amounts{Called: 2}, "profile delivered 2", "submission delivered 5")
}

// TestCallsThatAreNotSent: what the profile does not allow, and what cannot be signed, was not sent
// once.
func TestCallsThatAreNotSent(t *testing.T) {
	w := newTold(t)
	profile := w.usual("")
	profile.Hosts = profile.Hosts[1:]
	w.profile(profile)
	id := w.ends(w.named.URL+"/?SECRET", ingest.Completed, "was not sent")
	w.recorded(id, ingest.Amounts{Called: 1, Uncalled: 1}, "profile delivered 1", "submission given-up 0")

	// It was sent, and is not allowed any more when the job is requeued.
	w = newTold(t)
	w.profile(w.usual(""))
	w.named.status = http.StatusBadGateway
	id = w.ends(w.named.URL+"/?SECRET", ingest.Failed, "notification failed")
	profile = w.usual("")
	profile.Hosts = profile.Hosts[1:]
	w.profile(profile)
	if _, err := queuetest.Requeue(t.Context(), w.Machine.Queue, id, "not allowed", "me"); err != nil {
		t.Fatal(err)
	}
	w.Drive()
	w.recorded(id, ingest.Amounts{Called: 1, Uncalled: 1}, "profile delivered 2", "submission given-up 4")

	w = newTold(t)
	w.profile(w.usual(""))
	w.Stages.Secret = func(context.Context, string) (string, error) { return "", errors.New("no such secret") }
	id = w.ends(w.named.URL, ingest.Failed, "cannot be read")
	w.recorded(id, ingest.Amounts{CallFailed: 2}, "profile failed 0", "submission failed 0")
}
