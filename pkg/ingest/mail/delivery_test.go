package mail_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"archivist/pkg/ingest"
	"archivist/pkg/ingest/collection"
	"archivist/pkg/ingest/stage/stagetest"
	"archivist/pkg/kernel/fault"
)

// twins are the stages of one deployment on twins in this process.
type twins struct{ *stagetest.World }

func newTwins(t *testing.T) *twins { return &twins{stagetest.NewWorld(t)} }

func all(string) error { return nil }

// TestRefusedMail: whatever the mail service answers, the job is preserved and its batch
// ends; one bad address does not stop the mail to the others.
func TestRefusedMail(t *testing.T) {
	for name, refusal := range map[string]error{"sandbox": fault.New(fault.Invalid,
		"MessageRejected: Email address is not verified"), "down": errors.New("no connection")} {
		w := newTwins(t)
		sent := w.Mails(func(to string) error {
			if to == "good@example.org" {
				return nil
			}
			return refusal
		})
		to := []string{"bad@example.org", "good@example.org", "me at example.org"}
		job := w.Ended(w.Submit("a.txt", func(b *ingest.Batch) { b.Mail = to }), 1, false)
		b := w.BatchOf(job.Job.ID)
		if b.State != ingest.BatchCompleted || b.Message != "" {
			t.Errorf("%s: the batch is %s: %s", name, b.State, b.Message)
		}
		want := []string{"good@example.org: 1 object queued: " + b.ID + " to bench",
			"good@example.org: 1 object preserved: " + b.ID + " to bench"}
		if !slices.Equal(*sent, want) {
			t.Errorf("%s: sent %q", name, *sent)
		}
		x, err := w.Machine.Queue.ExplainBatch(t.Context(), b.ID)
		for _, says := range []string{"report mail to bad@example.org could not be delivered: " + refusal.Error() +
			"; next try at 2",
			`queued mail to me at example.org could not be delivered: "me at example.org": has nothing before or after an @`} {
			if err != nil || !strings.Contains(x.Why, says) {
				t.Errorf("%s: explained as %q, %v", name, x.Why, err)
			}
		}
	}
}

// TestRecipients: the profile adds recipients and suppresses mails. It is read when a mail
// is sent.
func TestRecipients(t *testing.T) {
	for suppress, want := range map[collection.Suppress][]string{collection.None: {"queued", "preserved"},
		collection.Partial: {"preserved"}, collection.Full: nil} {
		w := newTwins(t)
		if err := w.Stages.Collections.Put(t.Context(), "bench",
			collection.Profile{Notify: []string{"p@example.org"}, Suppress: suppress},
			collection.By{Actor: "me"}, 0); err != nil {
			t.Fatal(err)
		}
		sent := w.Mails(all)
		w.Ended(w.Submit("a.txt", func(b *ingest.Batch) { b.Mail = []string{"me@example.org", "p@example.org"} }), 1,
			false)
		if len(*sent) != 2*len(want) {
			t.Errorf("%s: sent %q", suppress, *sent)
		}
		for i, s := range *sent {
			if !strings.Contains(s, want[i/2]) {
				t.Errorf("%s: sent %q", suppress, s)
			}
		}
	}
}

// TestSubmissionFailedIsMailed: the depositor of a bad manifest gets one mail with the reason.
func TestSubmissionFailedIsMailed(t *testing.T) {
	w := newTwins(t)
	sent := w.Mails(all)
	in := ingest.Batch{Collection: "bench", Mode: "add", Mail: []string{"me@example.org"},
		Payload: ingest.Payload{URL: w.Source.URL + "/no-manifest", Type: ingest.TypeBatchManifest, Filename: "m"}}
	row, err := w.Machine.Queue.Submit(t.Context(), in, "", nil, "me")
	if err != nil {
		t.Fatal(err)
	}
	w.Drive()
	b, err := w.Machine.Queue.Batch(t.Context(), row.Batch.ID)
	if err != nil || b.State != ingest.BatchFailed || b.Report != "" || len(*sent) != 1 ||
		!strings.HasPrefix((*sent)[0], "me@example.org: Submission failed: ") {
		t.Errorf("the batch is %+v, %v; sent %q", b, err, *sent)
	}
}

// TestReportThatCannotBeSaved: a work bucket that refuses the report ends the batch after
// its tries, with the cause. The mail states the cause and how many objects are preserved.
func TestReportThatCannotBeSaved(t *testing.T) {
	w := newTwins(t)
	now := time.Now()
	w.Machine.Queue.Now, w.Stages.Now, w.Machine.Scheduler.Leases.Now = func() time.Time { return now },
		func() time.Time { return now }, func() time.Time { return now }
	sent := w.Mails(all)
	w.S3.Before = func(op, name string) int {
		if op == "PUT object" && strings.HasPrefix(name, "work/reports/") {
			return 403
		}
		return 0
	}
	job := w.Ended(w.Submit("a.txt", func(b *ingest.Batch) { b.Mail = []string{"me@example.org"} }), 1, false).Job.ID
	for range 40 {
		if w.BatchOf(job).State != ingest.BatchReporting {
			break
		}
		now = now.Add(time.Hour)
		w.Drive()
	}
	b := w.BatchOf(job)
	if b.State != ingest.BatchFailed || !strings.Contains(b.Message,
		"report was tried 10 times without success: the bucket work refused PutObject: AccessDenied") ||
		b.Report != "" {
		t.Errorf("the batch is %s after %d tries: %q", b.State, b.Tries, b.Message)
	}
	if len(*sent) != 2 || !strings.Contains((*sent)[1], "1 object preserved") {
		t.Errorf("sent %q", *sent)
	}
}
