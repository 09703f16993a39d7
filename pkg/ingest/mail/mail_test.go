package mail_test

import (
	"context"
	"fmt"
	"io"
	"mime/quotedprintable"
	"net/http/httptest"
	netmail "net/mail"
	"strings"
	"testing"

	"archivist/pkg/ingest"
	"archivist/pkg/ingest/collection"
	"archivist/pkg/ingest/mail"
	"archivist/pkg/ingest/notify"
	"archivist/pkg/ingest/workspace"
	"archivist/pkg/kernel/bucket"
	"archivist/pkg/kernel/bucket/buckettest"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/table/tabletest"
)

// composer makes a Composer that sends mails into a list.
func composer(t *testing.T, p collection.Profile) (mail.Composer, *[]*netmail.Message) {
	server := httptest.NewServer(buckettest.New(t.TempDir()))
	t.Cleanup(server.Close)
	n := 0
	profiles := collection.Store{Table: tabletest.Table(tabletest.New()),
		NewID: func() string { n++; return fmt.Sprint("tx", n) }}
	if err := profiles.Put(t.Context(), "bench", p, collection.By{Actor: "me"}, 0); err != nil {
		t.Fatal(err)
	}
	var sent []*netmail.Message
	return mail.Composer{Collections: profiles, From: "archive@example.org", API: "https://api.example.org/prod",
		Work: workspace.Store{Bucket: bucket.Bucket{Client: buckettest.Client(server.URL), Name: "work"}},
		Counts: func(context.Context, string) (ingest.Counts, error) {
			return ingest.Counts{Failed: 2, Completed: 40}, nil
		},
		Send: func(_ context.Context, raw []byte) error {
			m, err := netmail.ReadMessage(strings.NewReader(string(raw)))
			sent = append(sent, m)
			return err
		}}, &sent
}

// TestCompose: who gets a mail, and what it is about.
func TestCompose(t *testing.T) {
	both := []string{"depositor@example.org", "archive-team@example.org"}
	for _, row := range []struct {
		name     string
		suppress collection.Suppress
		kind     ingest.MailKind
		subject  string // "" = no mail
	}{
		{"queued", collection.None, ingest.MailQueued, "42 objects queued: B1 to bench"},
		{"queued, but suppressed", collection.Partial, ingest.MailQueued, ""},
		{"report of a batch that has none saved", collection.Partial, ingest.MailReport,
			"2 of 42 objects failed: B1 to bench"},
		{"delayed", collection.Partial, ingest.MailDelayed, "Not finished after 2 days: B1 to bench"},
		{"report, but suppressed", collection.Full, ingest.MailReport, ""},
	} {
		c, sent := composer(t, collection.Profile{Notify: both[1:], Suppress: row.suppress})
		b := &ingest.Batch{ID: "B1", Collection: "bench", Expected: 42, Unpacked: 42,
			Message: "the report could not be saved"}
		b.Mail, b.Hold = both[:1], &ingest.Hold{Reason: "the disk is full"}
		to, send, err := c.Compose(t.Context(), b, ingest.Mail{Kind: row.kind, Exec: 3, Owed: 2*24*3600*1000 + 1})
		if err != nil || (send == nil) != (row.subject == "") {
			t.Fatalf("%s: to %v, %v", row.name, to, err)
		}
		if send == nil {
			continue
		}
		for range 2 { // a mail that is sent again is the same one
			if err := send(t.Context(), to[0]); err != nil {
				t.Fatal(err)
			}
		}
		first, second := (*sent)[0].Header, (*sent)[1].Header
		if got := first.Get("Subject"); got != row.subject || len(to) != 2 {
			t.Errorf("%s to %v: %q", row.name, to, got)
		}
		if id := first.Get("Message-ID"); id == "" || id != second.Get("Message-ID") {
			t.Errorf("%s has the ids %q and %q", row.name, id, second.Get("Message-ID"))
		}
		if err := send(t.Context(), "no address"); !fault.Is(err, fault.Invalid) {
			t.Errorf("%s to no address: %v", row.name, err)
		}
	}
}

// TestAttached: a small report is attached as a whole; of a large one there is the
// summary, with a link.
func TestAttached(t *testing.T) {
	for _, large := range []bool{false, true} {
		c, sent := composer(t, collection.Profile{Notify: []string{"depositor@example.org"}})
		b := &ingest.Batch{ID: "B1", Collection: "bench", Report: workspace.ReportKey("B1", 1)}
		r := notify.NewReport("B1", "bench", "", "2026-11-22T00:00:00Z")
		r.Counts.Completed = 1
		if large {
			summary := r
			err := c.Work.PutJSON(t.Context(), workspace.SummaryKey("B1", 1), summary, bucket.Condition{})
			if err != nil {
				t.Fatal(err)
			}
			r.Note = strings.Repeat("x", notify.MaxAttached)
		}
		if err := c.Work.PutJSON(t.Context(), b.Report, r, bucket.Condition{}); err != nil {
			t.Fatal(err)
		}
		to, send, err := c.Compose(t.Context(), b, ingest.Mail{Kind: ingest.MailReport, Exec: 3, Owed: 1000})
		if err != nil || len(to) != 1 {
			t.Fatal(to, err)
		}
		if err := send(t.Context(), to[0]); err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll((*sent)[0].Body)
		if err != nil || len(body) > notify.MaxAttached || strings.Contains(string(body), "application/json") == large {
			t.Errorf("large %v: a mail of %d bytes, %v", large, len(body), err)
		}
		if link := "https://api.example.org/prod/v1/batches/B1/report"; !strings.Contains(string(body), link) {
			t.Errorf("large %v: no link %s", large, link)
		}
	}
}

// TestNumberedReports: each mail is about its own report, however late it is sent, also one
// that became due before reports had numbers.
func TestNumberedReports(t *testing.T) {
	c, sent := composer(t, collection.Profile{Notify: []string{"depositor@example.org"}, Suppress: collection.Partial})
	b := &ingest.Batch{ID: "B1", Collection: "bench", Report: workspace.ReportKey("B1", 2), Reports: 2}
	for n := 1; n <= 2; n++ {
		r := notify.NewReport("B1", "bench", fmt.Sprint("note ", n), "2026-11-22T00:00:00Z")
		r.Counts.Completed = n
		if n == 2 {
			r.Changes, r.Number = &notify.Changes{NowPreserved: 1}, n
		}
		if err := c.Work.PutJSON(t.Context(), workspace.ReportKey("B1", n), r, bucket.Condition{}); err != nil {
			t.Fatal(err)
		}
	}
	old := &ingest.Batch{ID: "B1", Collection: "bench", Report: workspace.ReportKey("B1", 1)}
	for i, row := range []struct {
		batch         *ingest.Batch
		mail          ingest.Mail
		subject, says string
	}{
		{b, ingest.Mail{Kind: ingest.MailReport, Report: 1, Exec: 2}, "1 object preserved: B1 to bench", "note 1"},
		{old, ingest.Mail{Kind: ingest.MailReport, Exec: 2}, "1 object preserved: B1 to bench", "note 1"},
		{b, ingest.Mail{Kind: ingest.MailReport, Exec: 2}, "1 object preserved: B1 to bench", "note 1"},
		{b, ingest.Mail{Kind: ingest.MailUpdateReport, Report: 2, Exec: 4}, "Update: 1 now preserved: B1 to bench",
			"/v1/batches/B1/report?number=2"},
	} {
		to, send, err := c.Compose(t.Context(), row.batch, row.mail)
		if err == nil {
			err = send(t.Context(), to[0])
		}
		if err != nil {
			t.Fatal(err)
		}
		m := (*sent)[i]
		body, err := io.ReadAll(quotedprintable.NewReader(m.Body))
		if err != nil || m.Header.Get("Subject") != row.subject || !strings.Contains(string(body), row.says) {
			t.Errorf("%s: %s, %v", m.Header.Get("Subject"), body, err)
		}
	}
	if first, update := (*sent)[0].Header, (*sent)[3].Header; first.Get("Message-ID") == update.Get("Message-ID") {
		t.Error("two mails have the same id")
	}
	if err := c.Collections.Put(t.Context(), "quiet", collection.Profile{Suppress: collection.Full,
		Notify: []string{"depositor@example.org"}}, collection.By{Actor: "me"}, 0); err != nil {
		t.Fatal(err)
	}
	b.Collection = "quiet"
	if to, _, err := c.Compose(t.Context(), b, ingest.Mail{Kind: ingest.MailUpdateReport, Report: 2}); err != nil ||
		len(to) != 0 {
		t.Errorf("a suppressed mail has the recipients %v, %v", to, err)
	}
}
