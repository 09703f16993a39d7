package stage_test

import (
	"context"
	"errors"
	"net/mail"
	"slices"
	"strings"
	"testing"
	"time"

	"archivist/pkg/collection"
	"archivist/pkg/fault"
	"archivist/pkg/ingest"
)

// mails lets the twins send mails, except where refuse says otherwise; it returns
// what was sent as "recipient: subject".
func (w *twins) mails(refuse func(to string) error) *[]string {
	var sent []string
	w.s.MailFrom, w.s.API = "archive@example.org", "https://api.example.org/prod"
	w.s.SendMail = func(_ context.Context, raw []byte) error {
		msg, err := mail.ReadMessage(strings.NewReader(string(raw)))
		if err != nil {
			return err
		}
		to := strings.Trim(msg.Header.Get("To"), "<>")
		if err := refuse(to); err != nil {
			return err
		}
		sent = append(sent, to+": "+msg.Header.Get("Subject"))
		return nil
	}
	return &sent
}

func all(string) error { return nil }

// batchOf is the batch of a job.
func (w *twins) batchOf(job string) ingest.Batch {
	w.Helper()
	b, err := w.m.Queue.Batch(w.Context(), w.job(job).Batch)
	if err != nil {
		w.Fatal(err)
	}
	return b.Batch
}

// TestRefusedMail: whatever the mail service says, the job is preserved and its batch
// ends; one bad address does not keep the mail from the others.
func TestRefusedMail(t *testing.T) {
	for name, refusal := range map[string]error{"sandbox": fault.New(fault.Invalid,
		"MessageRejected: Email address is not verified"), "down": errors.New("no connection")} {
		w := newTwins(t)
		sent := w.mails(func(to string) error {
			if to == "good@example.org" {
				return nil
			}
			return refusal
		})
		to := []string{"bad@example.org", "good@example.org", "me at example.org"}
		job := w.ended(w.submit("a.txt", func(b *ingest.Batch) { b.Mail = to }), 1, false)
		b := w.batchOf(job.Job.ID)
		if b.State != ingest.BatchCompleted || b.Message != "" {
			t.Errorf("%s: the batch is %s: %s", name, b.State, b.Message)
		}
		want := []string{"good@example.org: 1 object queued: " + b.ID + " to bench",
			"good@example.org: 1 object preserved: " + b.ID + " to bench"}
		if !slices.Equal(*sent, want) {
			t.Errorf("%s: sent %q", name, *sent)
		}
		x, err := w.m.Queue.ExplainBatch(t.Context(), b.ID)
		for _, says := range []string{"report mail to bad@example.org could not be delivered: " + refusal.Error() +
			"; next try at 2",
			`queued mail to me at example.org could not be delivered: "me at example.org": has nothing before or after an @`} {
			if err != nil || !strings.Contains(x.Why, says) {
				t.Errorf("%s: explained as %q, %v", name, x.Why, err)
			}
		}
	}
}

// TestWhoGetsMails: the profile adds recipients and suppresses mails, as it is when
// a mail is sent.
func TestWhoGetsMails(t *testing.T) {
	for suppress, want := range map[collection.Suppress][]string{collection.None: {"queued", "preserved"},
		collection.Partial: {"preserved"}, collection.Full: nil} {
		w := newTwins(t)
		if err := w.s.Collections.Put(t.Context(), "bench",
			collection.Profile{Notify: []string{"p@example.org"}, Suppress: suppress}, "me", 0); err != nil {
			t.Fatal(err)
		}
		sent := w.mails(all)
		w.ended(w.submit("a.txt", func(b *ingest.Batch) { b.Mail = []string{"me@example.org", "p@example.org"} }), 1,
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

// TestSubmissionFailedIsMailed: who submitted a bad manifest hears why, once.
func TestSubmissionFailedIsMailed(t *testing.T) {
	w := newTwins(t)
	sent := w.mails(all)
	in := ingest.Batch{Collection: "bench", Mode: "add", Mail: []string{"me@example.org"},
		Payload: ingest.Payload{URL: w.source.URL + "/no-manifest", Type: ingest.TypeBatchManifest, Filename: "m"}}
	row, err := w.m.Queue.Submit(t.Context(), in, "", nil, "me")
	if err != nil {
		t.Fatal(err)
	}
	w.run()
	b, err := w.m.Queue.Batch(t.Context(), row.Batch.ID)
	if err != nil || b.State != ingest.BatchFailed || b.Report != "" || len(*sent) != 1 ||
		!strings.HasPrefix((*sent)[0], "me@example.org: Submission failed: ") {
		t.Errorf("the batch is %+v, %v; sent %q", b, err, *sent)
	}
}

// TestReportThatCannotBeSaved: a work bucket that refuses the report ends the batch
// after its tries, with the cause; mail says so, and how many are preserved.
func TestReportThatCannotBeSaved(t *testing.T) {
	w := newTwins(t)
	now := time.Now()
	w.m.Queue.Now, w.s.Now, w.m.Scheduler.Leases.Now = func() time.Time { return now },
		func() time.Time { return now }, func() time.Time { return now }
	sent := w.mails(all)
	w.s3.Before = func(op, name string) int {
		if op == "PUT object" && strings.HasPrefix(name, "work/reports/") {
			return 403
		}
		return 0
	}
	job := w.ended(w.submit("a.txt", func(b *ingest.Batch) { b.Mail = []string{"me@example.org"} }), 1, false).Job.ID
	for range 40 {
		if w.batchOf(job).State != ingest.BatchReporting {
			break
		}
		now = now.Add(time.Hour)
		w.run()
	}
	b := w.batchOf(job)
	if b.State != ingest.BatchFailed || !strings.Contains(b.Message,
		"report was tried 10 times without success: the bucket work refused PutObject: AccessDenied") ||
		b.Report != "" {
		t.Errorf("the batch is %s after %d tries: %q", b.State, b.Tries, b.Message)
	}
	if len(*sent) != 2 || !strings.Contains((*sent)[1], "1 object preserved") {
		t.Errorf("sent %q", *sent)
	}
}
