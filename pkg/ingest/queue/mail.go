package queue

import (
	"context"
	"fmt"

	"archivist/pkg/ingest"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/table"
)

// Mail is the row of a pending mail. It is inserted by the transaction of the change that
// the mail is about, and removed by the one that records the result on the batch. So a mail
// is sent at least once, each time with the same id, and is no part of any step.
type Mail struct {
	table.Head
	ingest.Mail
}

// Place puts the row at its place in the index "work".
func (row *Mail) Place() { row.Head.WorkPK, row.Head.WorkSK = row.Mail.WorkKey() }

// mailKey is unique per mail: a batch that reports again has another mail. So the same change
// cannot owe it twice.
func mailKey(batch string, kind ingest.MailKind, exec int64) table.Key {
	return table.Key{PK: mailPK(batch), SK: fmt.Sprintf("%s#%d", kind, exec)}
}

func mailPK(batch string) string { return "MAIL#" + batch }

// addMails puts the mails that become due with a change of a batch into its transaction.
func (q *Queue) addMails(tx *table.Tx, prev, next ingest.Batch) {
	if q.Compose == nil {
		return
	}
	for _, kind := range ingest.Mails(prev, next) {
		now := q.Now().UnixMilli()
		row := &Mail{Head: head(mailKey(next.ID, kind, next.Exec))}
		row.Mail = ingest.Mail{
			Batch:  next.ID,
			Kind:   kind,
			Report: next.LastReport(),
			Exec:   next.Exec,
			Owed:   now,
			Due:    now,
		}

		row.Place()
		tx.Insert(row)
	}
}

// MailDelay makes a mail due about a batch that has not ended after some days. It reports false if this
// deployment sends no mails. A mail that is due already stays as it is.
func (q *Queue) MailDelay(ctx context.Context, b *Batch) (bool, error) {
	if q.Compose == nil {
		return false, nil
	}

	now := q.Now().UnixMilli()
	row := &Mail{Head: head(mailKey(b.ID, ingest.MailDelayed, b.Exec)), Mail: ingest.Mail{
		Batch: b.ID,
		Kind:  ingest.MailDelayed,
		Exec:  b.Exec,
		Owed:  now,
		Due:   now,
	}}

	row.Place()
	tx := q.Table.Begin(q.NewID())
	tx.Insert(row)
	err := tx.Commit(ctx)
	// It is due already.
	if fault.Is(err, fault.Stale) {
		err = nil
	}
	return err == nil, err
}

// MailProblem is a mail about a batch that did not reach a recipient.
type MailProblem struct {
	Kind    ingest.MailKind
	To      string // "" = the mail could not be composed
	Problem string
	Tries   int
	NextTry int64 // milliseconds since 1970; 0 = given up
}

// String returns the problem as a sentence.
func (p MailProblem) String() string {
	to := ""
	if p.To != "" {
		to = " to " + p.To
	}
	then := "next try at " + ingest.Timestamp(p.NextTry)
	if p.NextTry == 0 {
		then = fmt.Sprintf("given up after %d tries", p.Tries)
	}
	return fmt.Sprintf("%s mail%s could not be delivered: %s; %s", p.Kind, to, p.Problem, then)
}

// MailProblems lists the mails about a batch that are given up, and those that
// failed and will be tried again.
func (q *Queue) MailProblems(ctx context.Context, b *Batch) ([]MailProblem, error) {
	out := MailsGivenUp(&b.Batch)
	var rows []Mail
	_, err := q.Table.Page(ctx, table.Query{PK: mailPK(b.Batch.ID)}, &rows)
	for _, row := range rows {
		for _, d := range row.Mail.Result(q.Now()).Failed {
			p := MailProblem{row.Kind, d.To, d.Problem, row.Tries, row.Due}
			if d.GivenUp {
				p.NextTry = 0
			}
			out = append(out, p)
		}
	}
	return out, err
}

// MailsGivenUp lists the mails about a batch that are given up.
func MailsGivenUp(b *ingest.Batch) []MailProblem {
	var out []MailProblem
	for _, r := range b.Mails {
		for _, d := range r.Failed {
			out = append(out, MailProblem{
				Kind:    r.Kind,
				To:      d.To,
				Problem: d.Problem,
				Tries:   r.Tries,
			})
		}
	}
	return out
}
