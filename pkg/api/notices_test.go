package api_test

import (
	"strings"
	"testing"

	v1 "archivist/pkg/api/v1"
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
