package queue

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

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

// String returns the problem as the end of a sentence.
func (p MailProblem) String() string {
	to := ""
	if p.To != "" {
		to = " to " + p.To
	}
	then := "next try at " + ingest.Timestamp(p.NextTry)
	if p.NextTry == 0 {
		then = fmt.Sprintf("given up after %d tries", p.Tries)
		if p.Tries == 1 {
			then = "given up after 1 try"
		}
	}
	return fmt.Sprintf("%s mail%s could not be delivered: %s; %s", p.Kind, to, p.Problem, then)
}

// Sentence is the problem as it is added to what is said of its batch.
func (p MailProblem) Sentence() string { return " The " + p.String() + "." }

// MailState is what became of a mail to a recipient.
type MailState string

// The states. A mail that waits was not tried yet, one that failed is tried again.
const (
	MailWaits     MailState = "waits"
	MailDelivered MailState = "delivered"
	MailFailed    MailState = "failed"
	MailGivenUp   MailState = "given-up"
)

// MailTold is what became of a mail about a batch to one recipient. Who it is for is decided when
// it is tried: To is "" before, of one that could not be composed, and of the Others, whose names
// an earlier version has not noted.
type MailTold struct {
	MailProblem       // Problem is "" if there is none
	At          int64 // when it was sent, or the last try ended; 0 = not yet
	Others      int
}

// State is what became of it.
func (m MailTold) State() MailState {
	switch {
	case m.Problem != "" && m.NextTry > 0:
		return MailFailed
	case m.Problem != "":
		return MailGivenUp
	case m.At > 0:
		return MailDelivered
	}
	return MailWaits
}

// Mails are what became of the mails about a batch, the earlier ones first: of the results that the
// batch has, and of its pending mails.
func (q *Queue) Mails(ctx context.Context, b *Batch) (out []MailTold, err error) {
	for _, r := range b.Mails {
		out = append(out, told(r, 0)...)
		if len(r.To) == 0 && r.Sent > 0 {
			out = append(out, MailTold{MailProblem{Kind: r.Kind, Tries: r.Tries}, r.At, r.Sent})
		}
	}

	var rows []Mail
	_, err = q.Table.Page(ctx, table.Query{PK: mailPK(b.Batch.ID)}, &rows)
	for _, row := range rows {
		due := row.Due
		if row.Ended {
			due = 0 // only its result is still to be recorded
		}
		// What has no time of its own was tried last, or earlier: not at the time of this reading.
		r := row.Mail.Result(time.UnixMilli(row.TriedAt()))
		out = append(out, told(r, due)...)
		if len(r.To)+len(r.Failed) == 0 {
			out = append(out, MailTold{MailProblem: MailProblem{Kind: row.Kind,
				Tries: row.Tries, NextTry: due}})
		}
	}
	return out, err
}

// told are the recipients of a result. due is when those that failed are tried again, 0 for never.
func told(r ingest.MailResult, due int64) (out []MailTold) {
	for _, d := range slices.Concat(r.To, r.Failed) {
		m := MailTold{MailProblem{r.Kind, d.To, d.Problem, cmp.Or(d.Tries, r.Tries), due},
			cmp.Or(d.At, r.At), 0}
		if d.Sent || d.GivenUp {
			m.NextTry = 0
		}
		out = append(out, m)
	}
	return out
}

// MailProblems are the mails of Mails that did not arrive.
func (q *Queue) MailProblems(ctx context.Context, b *Batch) (out []MailProblem, err error) {
	mails, err := q.Mails(ctx, b)
	for _, m := range mails {
		if m.Problem != "" {
			out = append(out, m.MailProblem)
		}
	}
	return out, err
}
