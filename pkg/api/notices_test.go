package api_test

import (
	"net/http"
	"strings"
	"testing"

	v1 "archivist/pkg/api/v1"
	"archivist/pkg/events/event"
	"archivist/pkg/ingest"
)

// TestAdviceOfMails: of a mail that is given up the address is only to blame if it has one.
func TestAdviceOfMails(t *testing.T) {
	c, q := serve(t, through)
	out, err := c.Submit(t.Context(), good, "")
	if err != nil {
		t.Fatal(err)
	}
	row, err := q.Batch(t.Context(), out.ID)
	if err != nil {
		t.Fatal(err)
	}
	row.Mails = []ingest.MailResult{{Kind: ingest.MailReport, At: 1, Tries: 8, Failed: []ingest.Delivery{
		{To: "a@example.org", Problem: "no"}, {Problem: "the mail could not be composed"}}}}
	tx := q.Table.Begin("mails")
	tx.Save(row)
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	b, err := c.Batch(t.Context(), out.ID)
	if err != nil || len(b.Mails) < 2 || b.Mails[0].State != v1.NoticeGivenUp ||
		!strings.Contains(b.Mails[0].Advice, "in the submission, or in the profile") ||
		b.Mails[1].State != v1.NoticeGivenUp || b.Mails[1].Advice != "It is not sent again" {
		t.Errorf("%+v, %v", b.Mails, err)
	}
}

// TestAddressesOfTheProfile: a depositor sees the addresses that a submission names, and how many
// others the mails went to, but neither whose nor why one failed: of the batch, its events and
// why it waits.
func TestAddressesOfTheProfile(t *testing.T) {
	c, q := tokened(t)
	in := ingest.Batch{Collection: "maps", Mode: "add", Mail: []string{"me@example.org"}}
	row, err := q.Submit(t.Context(), in, "", nil, "2")
	if err != nil {
		t.Fatal(err)
	}
	result := ingest.MailResult{Kind: ingest.MailReport, At: 1, Tries: 8, Sent: 2,
		To: []ingest.Delivery{{To: "me@example.org", Sent: true}, {To: "boss@example.org",
			Sent: true}},
		Failed: []ingest.Delivery{{To: "it@example.org", Problem: "it@example.org bounced"},
			{To: "dep@example.org", Problem: "dep@example.org bounced"}}}
	row.Mails = []ingest.MailResult{result}
	row.Version++
	tx := q.Table.Begin("mails")
	tx.Save(row)
	err = event.Append(tx, event.Subject{Type: event.Batch, ID: row.Batch.ID}, row.Version,
		event.New{
			Type: "batch.mail", Time: 1, Component: "mail", Outcome: event.Failure, Detail: result})
	if err != nil {
		t.Fatal(err)
	}
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	path := c.URL + "/v1/batches/" + row.Batch.ID
	for _, from := range []string{path, path + "/events", c.URL + "/v1/explain/" + row.Batch.ID} {
		for user, hidden := range map[string]bool{"maps": true, "ada": false} {
			resp, text := ask(t, http.MethodGet, from, "", "Authorization", "Bearer "+user)
			if resp.StatusCode != 200 || strings.Contains(text, "it@example.org") == hidden ||
				hidden && (strings.Contains(text, "boss@") || strings.Contains(text, "dep@") ||
					!strings.Contains(text, "rofile")) {
				t.Errorf("%s, as %s: %d %s", from, user, resp.StatusCode, text)
			}
		}
	}
	_, text := ask(t, http.MethodGet, path, "", "Authorization", "Bearer maps")
	if !strings.Contains(text, "me@example.org") || !strings.Contains(text, `"ofProfile":2`) ||
		!strings.Contains(text, `"ofProfile":1`) {
		t.Errorf("what a depositor sees: %s", text)
	}
}
