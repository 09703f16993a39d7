package queue_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"archivist/pkg/ingest"
	"archivist/pkg/kernel/fault"
)

// told are what became of the mails about a batch, one line each.
func (b *bench) told(id string) string {
	b.Helper()
	row, err := b.q.Batch(b.Context(), id)
	if err != nil {
		b.Fatal(err)
	}
	mails, err := b.q.Mails(b.Context(), row)
	if err != nil {
		b.Fatal(err)
	}
	var lines []string
	for _, m := range mails {
		lines = append(lines, fmt.Sprintf("%s %s %s %d at %v next %v others %d", m.Kind, m.To, m.State(), m.Tries,
			m.At > 0, m.NextTry > 0, m.Others))
	}
	return strings.Join(lines, "\n")
}

// TestMailsTold: what became of each mail is known for each recipient: it is tried again, it was
// delivered after so many tries, it is given up. A result of an earlier version has only the number
// of those that got it.
func TestMailsTold(t *testing.T) {
	b := newTwinBench(t)
	p := &post{to: []string{"bad@example.org", "late@example.org"}, refuse: map[string]error{
		"bad@example.org":  fault.New(fault.Invalid, "MessageRejected"),
		"late@example.org": fault.New(fault.Unavailable, "Throttling")}}
	b.q.Compose = p.compose
	id, report := b.toReport()
	b.handle(report, ok)
	p.refuse = map[string]error{"bad@example.org": p.refuse["bad@example.org"]}
	for _, want := range []string{
		"report bad@example.org failed 1 at true next true others 0\n" +
			"report late@example.org failed 1 at true next true others 0",
		"report late@example.org delivered 2 at true next false others 0\n" +
			"report bad@example.org failed 2 at true next true others 0",
		"report late@example.org delivered 2 at true next false others 0\n" +
			"report bad@example.org given-up 3 at true next false others 0",
	} {
		_, got, _ := strings.Cut(b.told(id), "report ") // those of the mail that it is queued come first
		if "report "+got != want {
			t.Errorf("told\nreport %s\nexpected\n%s", got, want)
		}
		b.now = b.now.Add(6 * time.Minute)
		b.tick()
	}

	old, err := b.q.Batch(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	old.Mails = []ingest.MailResult{{Kind: ingest.MailReport, At: 1, Tries: 1, Sent: 2}}
	tx := b.q.Table.Begin("old")
	tx.Save(old)
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := b.told(id); got != "report  delivered 1 at true next false others 2" {
		t.Errorf("an earlier result: %s", got)
	}
}

// TestMailsThatWait: a mail that could not be composed waits for the next try, and one that was not
// tried yet waits.
func TestMailsThatWait(t *testing.T) {
	b := newTwinBench(t)
	p := &post{broken: fault.New(fault.Unavailable, "later")}
	b.q.Compose = p.compose
	id := b.submit(1, "")
	if got := b.told(id); got != "queued  failed 1 at true next true others 0" {
		t.Errorf("told %s", got)
	}
	row, err := b.q.Batch(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	tried := b.now
	b.now = b.now.Add(30 * time.Second)
	if mails, err := b.q.Mails(t.Context(), row); err != nil || len(mails) != 1 ||
		mails[0].At != tried.UnixMilli() {
		t.Errorf("tried at %d, told %+v, %v", tried.UnixMilli(), mails, err)
	}
	if added, err := b.q.MailDelay(t.Context(), row); err != nil || !added {
		t.Fatal(added, err)
	}
	if got := b.told(id); !strings.HasPrefix(got, "delayed  waits 0 at false next true others 0\n") {
		t.Errorf("told %s", got)
	}
}
