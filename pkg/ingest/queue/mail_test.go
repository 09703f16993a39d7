package queue_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"archivist/pkg/events/event"
	"archivist/pkg/ingest"
	"archivist/pkg/ingest/queue"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/table"
	"archivist/pkg/kernel/table/tabletest"
)

// post is a mail service: it refuses what the test says, and keeps the rest.
type post struct {
	to     []string
	refuse map[string]error // by recipient
	broken error            // the mail cannot be composed
	got    []string
	asked  int
	do     func(op string, call func() error) error // nil: the sender lives
}

func (p *post) compose(_ context.Context, b *ingest.Batch, m ingest.Mail) ([]string, func(context.Context,
	string) error, error) {
	return p.to, func(ctx context.Context, to string) error {
		send := func() error {
			p.asked++
			if err := p.refuse[to]; err != nil {
				return err
			}
			p.got = append(p.got, fmt.Sprintf("%s.%s.%d to %s", b.ID, m.Kind, m.Exec, to))
			return nil
		}
		if p.do == nil {
			return send()
		}
		return p.do("send", send)
	}, p.broken
}

// distinct are the different messages that were received.
func (p *post) distinct() []string {
	out := slices.Clone(p.got)
	slices.Sort(out)
	return slices.Compact(out)
}

// mails are the pending mails, and the batch's events about those that ended.
func (b *bench) mails(id string) (owed []queue.Mail, ended []event.Row) {
	b.Helper()
	if _, err := b.q.Table.Page(b.Context(), table.Query{PK: "MAIL#" + id}, &owed); err != nil {
		b.Fatal(err)
	}
	page, err := b.q.Events(b.Context(), event.Subject{Type: event.Batch, ID: id}, "")
	if err != nil {
		b.Fatal(err)
	}
	for i, e := range page.Items {
		if e.Version != int64(i+1) {
			b.Errorf("event %d has version %d", i+1, e.Version)
		}
		if e.Type == "batch.mail" {
			ended = append(ended, e)
		}
	}
	return owed, ended
}

// toReport submits a batch whose one job fails, and returns the report's message.
func (b *bench) toReport() (string, queue.Message) {
	b.Helper()
	id := b.submit(1, "")
	b.tick()
	b.handle(b.last(), func(context.Context, *queue.Claim) (ingest.Result, error) {
		return ingest.Fail(false, "no"),
			nil
	})
	return id, b.last()
}

// TestMailsAreSentAtOnce: a mail is sent right after the transaction that made it due, and
// the batch has its result.
func TestMailsAreSentAtOnce(t *testing.T) {
	b := newBench(t)
	p := &post{to: []string{"a@example.org", "b@example.org"}}
	b.q.Compose = p.compose
	id, report := b.toReport()
	if owed, ended := b.mails(id); len(p.got) != 2 || !strings.Contains(p.got[0], ".queued.") || len(owed) != 0 ||
		len(ended) != 1 || ended[0].Outcome != event.Success {
		t.Fatalf("after unpacking: sent %v, owed %+v, ended %+v", p.got, owed, ended)
	}
	b.handle(report, ok)
	owed, ended := b.mails(id)
	if len(p.got) != 4 || !strings.Contains(p.got[3], ".report.") || len(owed) != 0 || len(ended) != 2 ||
		b.metrics[queue.MailFailures] != 0 {
		t.Errorf("after the report: sent %v, owed %+v, ended %+v", p.got, owed, ended)
	}
	if r := b.batch(id).Mails; len(r) != 2 || r[1].Kind != ingest.MailReport || r[1].Sent != 2 ||
		len(r[1].Failed) != 0 {
		t.Errorf("the batch has the results %+v", r)
	}
	if got := b.batch(id); got.State != ingest.BatchFailed {
		t.Errorf("the batch is %s", got.State)
	}
}

// TestRefusedSubmissionIsReported: a batch that ends before it has jobs gets a report mail,
// however it ends.
func TestRefusedSubmissionIsReported(t *testing.T) {
	b := newBench(t)
	p := &post{to: []string{"a@example.org"}}
	b.q.Compose = p.compose
	row, err := b.q.Submit(t.Context(), ingest.Batch{Collection: "c", Mode: "add"}, "", nil, "me")
	if err != nil {
		t.Fatal(err)
	}
	m := b.last()
	for range 20 {
		keep := b.handle(m, func(context.Context, *queue.Claim) (ingest.Result, error) {
			return ingest.Result{}, errors.New("the store is down")
		})
		b.now = b.now.Add(keep)
	}
	if got := b.batch(row.Batch.ID); got.State != ingest.BatchFailed || len(p.got) != 1 || !strings.Contains(p.got[0],
		".report.") {
		t.Errorf("the batch is %s, sent %v", got.State, p.got)
	}
}

// TestRefusedRecipient: a refused recipient affects neither the other recipients nor the
// batch, is tried less often than one that cannot be reached now, and is named.
func TestRefusedRecipient(t *testing.T) {
	b := newTwinBench(t)
	p := &post{to: []string{"bad@example.org", "busy@example.org", "good@example.org"}, refuse: map[string]error{
		"bad@example.org":  fault.New(fault.Invalid, "MessageRejected: Email address is not verified"),
		"busy@example.org": fault.New(fault.Unavailable, "Throttling: Daily message quota exceeded")}}
	b.q.Compose = p.compose
	id, report := b.toReport()
	b.handle(report, ok)
	if len(p.got) != 2 || b.batch(id).State != ingest.BatchFailed {
		t.Fatalf("sent %v, the batch is %s", p.got, b.batch(id).State)
	}
	x, err := b.q.ExplainBatch(t.Context(), id)
	if err != nil || !strings.Contains(x.Why, "report mail to bad@example.org could not be delivered: "+
		"MessageRejected: Email address is not verified; next try at ") {
		t.Errorf("explained as %q, %v", x.Why, err)
	}
	began := b.now
	for range 30 * 60 { // 30 hours
		b.now = b.now.Add(time.Minute)
		b.tick()
	}
	// That the batch is queued was told to one, and not tried again after its end.
	if n := 3 + ingest.MailTries + ingest.MailRefusedTries + 1; p.asked != n || len(p.got) != 2 {
		t.Errorf("%d tries, expected %d; sent %v", p.asked, n, p.got)
	}
	owed, ended := b.mails(id)
	if len(owed) != 0 || len(ended) != 2 || ended[1].Outcome != event.Failure || !strings.Contains(ended[1].Detail,
		"Daily message quota exceeded") {
		t.Errorf("owed %+v, ended %+v", owed, ended)
	}
	if at := time.UnixMilli(ended[1].Time).Sub(began); at < 20*time.Hour || at > 28*time.Hour {
		t.Errorf("given up after %s", at)
	}
	row, err := b.q.Batch(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	problems, err := b.q.MailProblems(t.Context(), row)
	if err != nil || len(problems) != 4 || problems[2].String() != "report mail to bad@example.org could not be "+
		"delivered: MessageRejected: Email address is not verified; given up after 3 tries" {
		t.Errorf("%v, %v", problems, err)
	}
	if int(b.metrics["MailFailures"]) != p.asked-2 { // the metric counts each failed try
		t.Errorf("%v failures counted of %d", b.metrics["MailFailures"], p.asked-2)
	}
}

// TestCurrentRecipients: a mail does not wait for a former recipient, and a mail without
// recipients has no event.
func TestCurrentRecipients(t *testing.T) {
	b := newBench(t)
	p := &post{to: []string{"gone@example.org", "a@example.org"},
		refuse: map[string]error{"gone@example.org": errors.New("no")}}
	b.q.Compose = p.compose
	id, report := b.toReport()
	p.to = []string{"a@example.org"}
	b.now = b.now.Add(2 * time.Minute)
	b.tick()
	if owed, ended := b.mails(id); len(owed) != 0 || len(ended) != 1 || ended[0].Outcome != event.Success {
		t.Errorf("owed %+v, ended %+v", owed, ended)
	}
	p.to = nil
	b.handle(report, ok)
	if owed, ended := b.mails(id); len(owed) != 0 || len(ended) != 1 || len(p.got) != 1 {
		t.Errorf("owed %+v, ended %+v, sent %v", owed, ended, p.got)
	}
}

// TestOvertakenMail: that a batch is queued, or has not ended, is not told once it has ended; its report is. A person
// who has got it stays on record.
func TestOvertakenMail(t *testing.T) {
	for _, one := range []bool{false, true} {
		b := newBench(t)
		no := errors.New("503: the mail service is down")
		p := &post{to: []string{"a@example.org", "b@example.org"}, refuse: map[string]error{"a@example.org": no}}
		if !one {
			p.refuse["b@example.org"] = no
		}
		b.q.Compose = p.compose
		id, report := b.toReport()
		batch, err := b.q.Batch(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := b.q.MailDelay(t.Context(), batch); err != nil {
			t.Fatal(err)
		}
		b.handle(report, ok)
		p.got, p.refuse = nil, nil
		for range 30 {
			b.now = b.now.Add(time.Hour)
			b.tick()
		}
		for _, mail := range p.got {
			if !strings.Contains(mail, ".report.") {
				t.Errorf("after the end of the batch: %s", mail)
			}
		}
		owed, _ := b.mails(id)
		results := b.batch(id).Mails
		told := results[0].Kind == ingest.MailQueued && results[0].Sent == 1 && len(results[0].Failed) == 1
		if len(owed) != 0 || len(p.got) == 0 || one != told {
			t.Errorf("one is reached: %v; owed %+v, the batch says %+v", one, owed, results)
		}
	}
}

// TestMailThatCannotBeComposed: the mail ends after its tries, with the reason.
func TestMailThatCannotBeComposed(t *testing.T) {
	b := newTwinBench(t)
	p := &post{to: []string{"a@example.org"}, broken: errors.New("the report cannot be read: 403")}
	b.q.Compose = p.compose
	id, report := b.toReport()
	b.handle(report, ok)
	for range 30 {
		b.now = b.now.Add(time.Hour)
		b.tick()
	}
	owed, ended := b.mails(id)
	r := b.batch(id).Mails
	if len(owed) != 0 || len(ended) != 1 || len(r) != 1 || len(r[0].Failed) != 1 ||
		!strings.Contains(r[0].Failed[0].Problem, "403") {
		t.Errorf("owed %+v, the batch says %+v", owed, r)
	}
}

// TestMailDoesNotDisturbAWorker: the result of a mail is recorded once no worker has the
// batch; until then the mail is not sent again.
func TestMailDoesNotDisturbAWorker(t *testing.T) {
	b := newBench(t)
	p := &post{to: []string{"a@example.org"}}
	b.q.Compose = p.compose
	row, err := b.q.Submit(t.Context(), ingest.Batch{Collection: "c", Mode: "add"}, "", nil, "me")
	if err != nil {
		t.Fatal(err)
	}
	id := row.Batch.ID
	b.handle(b.last(), func(ctx context.Context, claim *queue.Claim) (ingest.Result, error) {
		for n := range 3 {
			if err := claim.Unpack(ctx, make([]ingest.Job, 1), 3); err != nil {
				t.Errorf("chunk %d: %v", n, err)
			}
			if owed, _ := b.mails(id); n == 0 && (len(p.got) != 1 || len(owed) != 1 || !owed[0].Ended) {
				t.Errorf("sent %v, owed %+v", p.got, owed)
			}
			b.now = b.now.Add(2 * time.Second)
			b.tick()
		}
		return ingest.Result{Outcome: ingest.StepNext}, nil
	})
	b.now = b.now.Add(2 * time.Minute)
	b.tick()
	if owed, ended := b.mails(id); len(p.got) != 1 || len(owed) != 0 || len(ended) != 1 {
		t.Errorf("sent %v, owed %+v, ended %+v", p.got, owed, ended)
	}
}

// TestReportEndsAfterItsTries: if the report cannot be made, the batch ends with the cause,
// and the depositor gets a mail.
func TestReportEndsAfterItsTries(t *testing.T) {
	b := newBench(t)
	p := &post{to: []string{"a@example.org"}}
	b.q.Compose = p.compose
	id, report := b.toReport()
	for range 20 {
		keep := b.handle(report, func(context.Context, *queue.Claim) (ingest.Result, error) {
			return ingest.Result{}, errors.New("the work bucket refuses: 403")
		})
		b.now = b.now.Add(keep)
	}
	if got := b.batch(id); got.State != ingest.BatchFailed || !strings.Contains(got.Message,
		"the work bucket refuses: 403") || len(p.got) != 2 {
		t.Errorf("the batch is %s: %q; sent %v", got.State, got.Message, p.got)
	}
}

// TestContinueGivesTheLeaseBack: a batch's step that continues in another message is claimed
// again at once, and its progress resets the tries.
func TestContinueGivesTheLeaseBack(t *testing.T) {
	b := newBench(t)
	id, report := b.toReport()
	for n := range 30 { // more than a report may be tried
		done := fmt.Sprint(n)
		keep := b.handle(report, func(_ context.Context, claim *queue.Claim) (ingest.Result, error) {
			if n > 0 && claim.Batch.Checkpoint != fmt.Sprint(n-1) {
				t.Errorf("it continues from %q", claim.Batch.Checkpoint)
			}
			claim.Batch.Checkpoint = done
			return ingest.Result{Outcome: ingest.StepContinue}, nil
		})
		if keep != 0 {
			t.Fatalf("message %d is kept for %s", n, keep)
		}
		if got := b.answered[len(b.answered)-1]; got != "token Continue " {
			t.Fatalf("answered %q", got)
		}
	}
	b.handle(report, ok)
	if got := b.batch(id); got.State != ingest.BatchFailed || len(got.Mails) != 0 {
		t.Errorf("the batch is %s", got.State)
	}
}

// TestSilentMailService: a mail service that does not answer costs a try; the problem names
// it.
func TestSilentMailService(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newTwinBench(t)
		asked := 0
		silent := func(ctx context.Context, _ string) error {
			asked++
			<-ctx.Done()
			return ctx.Err()
		}
		b.q.Compose = func(context.Context, *ingest.Batch, ingest.Mail) ([]string, queue.Send, error) {
			return []string{"a@example.org", "b@example.org"}, silent, nil
		}
		id := b.submit(1, "")
		row, err := b.q.Batch(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		problems, err := b.q.MailProblems(t.Context(), row)
		if err != nil || asked != 1 || row.State != ingest.BatchProcessing || len(problems) != 2 ||
			problems[1].Problem != "the mail service did not answer in time" || problems[1].NextTry == 0 {
			t.Errorf("%v, %v, asked %d times; the batch is %s", problems, err, asked, row.State)
		}
	})
}

// TestLaggingIndexSendsNothing: the index finds mails that are due; the row decides.
func TestLaggingIndexSendsNothing(t *testing.T) {
	b := newBench(t)
	p := &post{to: []string{"a@example.org"}, refuse: map[string]error{"a@example.org": errors.New("no")}}
	b.q.Compose = p.compose
	owed, _ := b.mails(b.submit(1, ""))
	owed[0].WorkSK = ingest.DueSK(0) // as the index may still show it
	tx := b.q.Table.Begin("lags")
	tx.Save(&owed[0])
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	b.tick()
	if p.asked != 1 {
		t.Errorf("asked %d times", p.asked)
	}
}

// TestSenderThatDies: a mail whose sender died in its last try is given up, and not
// sent again.
func TestSenderThatDies(t *testing.T) {
	b := newBench(t)
	p := &post{to: []string{"a@example.org"}, refuse: map[string]error{"a@example.org": errors.New("no")}}
	b.q.Compose = p.compose
	id := b.submit(1, "")
	owed, _ := b.mails(id)
	owed[0].Tries = ingest.MailTries
	tx := b.q.Table.Begin("dies")
	tx.Save(&owed[0])
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	b.now = b.now.Add(2 * time.Minute)
	b.tick()
	left, ended := b.mails(id)
	if p.asked != 1 || len(left) != 0 || len(ended) != 1 || !strings.Contains(ended[0].Detail,
		"its sender ended without an answer") {
		t.Errorf("asked %d times, owed %+v, ended %+v", p.asked, left, ended)
	}
}

// TestRecordedMailDoesNotKeepABatchOpen: a batch closes even if a mail is recorded on it at
// the same time.
func TestRecordedMailDoesNotKeepABatchOpen(t *testing.T) {
	b := newBench(t)
	fake := tabletest.New()
	b.q.Table = tabletest.Table(fake)
	b.c.Leases.Table = b.q.Table
	id := b.submit(1, "")
	b.tick()
	writes, now := 0, b.q.Now
	b.q.Now = func() time.Time {
		if row, err := b.q.Batch(t.Context(), id); err == nil && row.State == ingest.BatchProcessing {
			counts, err := b.q.Counts(t.Context(), id)
			if writes == 0 && err == nil && counts.Open() == 0 { // between the closer's look and its commit
				writes++
				tx := b.q.Table.Begin("mail")
				tx.Save(row)
				if err := tx.Commit(t.Context()); err != nil {
					t.Error(err)
				}
			}
		}
		return now()
	}
	b.handle(b.last(), func(context.Context, *queue.Claim) (ingest.Result, error) {
		return ingest.Fail(false, "no"),
			nil
	})
	if got := b.batch(id); writes != 1 || got.State != ingest.BatchReporting {
		t.Errorf("the batch is %s after %d writes", got.State, writes)
	}
}
