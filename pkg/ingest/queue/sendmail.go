package queue

import (
	"context"
	"slices"
	"time"

	"archivist/pkg/events/event"
	"archivist/pkg/ingest"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/table"
)

// mailPage is the number of mails that one sweep tries.
const mailPage = 50

// SweepMails sends the mails that are due, the oldest first. It starts none after until. One
// mail takes at most an eighth of the scheduler's time. What it does not reach is due in the next
// minute still.
func (q *Queue) SweepMails(ctx context.Context, until time.Time) error {
	if q.Compose == nil {
		return nil
	}

	var page []dueMail
	query := table.Query{
		Index: "work",
		PK:    ingest.PlaceMail,
		From:  "0",
		To:    dueRank(q.Now()),
		Limit: mailPage,
	}

	if _, err := q.Table.Page(ctx, query, &page); err != nil {
		return err
	}

	for _, m := range page {
		if !q.Now().Before(until) {
			return nil
		}
		if err := q.sendMail(ctx, m.Key(), q.Rules.Timing.Scheduler/8); err != nil &&
			!fault.Is(err, fault.Stale) {
			q.Log.Warn("a mail was not sent; the next sweep tries again", "mail", m.Key(), "error", err)
		}
	}
	return nil
}

// sendMail makes one try of a mail that is due, within a time. If that was the last try, it
// records the result on the batch. One that the end of its batch has overtaken is not tried again.
func (q *Queue) sendMail(ctx context.Context, k table.Key, limit time.Duration) error {
	var row Mail
	err := q.Table.Get(ctx, k, &row)
	switch {
	case fault.Is(err, fault.NotFound):
		return nil // another try has ended it
	case err != nil:
		return err
	case q.Now().UnixMilli() < row.Due:
		return nil // another try is under way
	}

	batch, err := q.Batch(ctx, row.Batch)
	if fault.Is(err, fault.NotFound) {
		return q.removeMail(ctx, &row)
	}

	if err != nil {
		return err
	}

	if row.Overtaken(&batch.Batch) {
		row.Ended = true
		if len(row.To) == 0 {
			row.Problem = "" // nobody misses it
		}
	}

	if !row.Ended {
		// The try is counted before it begins: a sender that dies each time does not send without
		// end.
		row.Mail = row.Mail.Take(q.Now())
		if err := q.saveMail(ctx, &row); err != nil {
			return err
		}
		row.Mail = q.try(ctx, &batch.Batch, row.Mail, limit)
	}

	switch {
	case row.Ended && len(row.To) == 0 && row.Problem == "":
		return q.removeMail(ctx, &row) // it has no recipient, or is overtaken
	case row.Ended:
		return q.settle(ctx, &row)
	}
	return q.saveMail(ctx, &row)
}

// try composes a mail and sends it to each recipient for whom it is pending. Recipients to whom it
// was sent before are left out.
func (q *Queue) try(ctx context.Context, b *ingest.Batch, m ingest.Mail,
	limit time.Duration) ingest.Mail {
	if m.Tries > ingest.MailTries {
		m.Ended = true // the last try died
		if m.Problem == "" {
			m.Problem = "its sender ended without an answer: it was killed, or ran out of memory or time"
		}
		return m
	}

	inTime, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	to, send, err := q.Compose(inTime, b, m)
	if err != nil {
		q.Metric(MailFailures, 1)
		m.Problem, m.Ended = ingest.Cut(CauseOf(err), maxProblem), m.Tries >= ingest.MailTries
		return m
	}

	m.Problem = ""
	// The recipients may have changed since the last try: nobody waits for a former one.
	m = m.Keep(to)
	for _, t := range m.Left(to) {
		m = q.sendTo(inTime, b, m, t, send)
	}

	m.Ended = len(m.Left(to)) == 0
	return m
}

// sendTo sends a mail to one recipient. If the time of the try is over, the next try sends
// it.
func (q *Queue) sendTo(ctx context.Context, b *ingest.Batch, m ingest.Mail, to string,
	send Send) ingest.Mail {
	err := ctx.Err()
	if err == nil {
		err = send(ctx, to)
	}

	if err == nil {
		return m.Note(to, "", false, q.Now())
	}

	problem, refused := ingest.Cut(err.Error(), maxProblem), fault.Is(err, fault.Invalid)
	if ctx.Err() != nil {
		problem, refused = "the mail service did not answer in time", false
	}

	q.Metric(MailFailures, 1)
	q.Log.Warn("a mail was not sent", "batch", b.ID, "mail", m.Kind, "try", m.Tries, "to", to,
		"error", err)
	return m.Note(to, problem, refused, q.Now())
}

// maxProblem limits a stored error, in bytes: a batch's row has several of them.
const maxProblem = 300

// maxMails is the number of mail results on a batch's row; its events have all of them.
const maxMails = 6

// settle records the result of a mail on the batch, with an event, and removes the mail's
// row. If a worker has the batch, it postpones that: the worker would lose the batch. The result
// and the removal are one transaction, so it is recorded once.
func (q *Queue) settle(ctx context.Context, row *Mail) error {
	result := row.Mail.Result(q.Now())
	for range 3 {
		batch, err := q.Batch(ctx, row.Batch)
		if err != nil {
			return err
		}

		if batch.Live(q.Now()) {
			break
		}

		next := *batch
		next.Mails = append(slices.Clone(batch.Mails), result)
		next.Mails = next.Mails[max(0, len(next.Mails)-maxMails):]
		next.Version++
		tx := q.Table.Begin(q.NewID())
		q.writeBatch(tx, batch, next)
		e := event.New{
			Type:        "batch.mail",
			Time:        result.At,
			Component:   "mail",
			Detail:      result,
			Parents:     batchParents(next.Batch),
			Identifiers: identifiers(next.Primary, next.LocalIDs),
		}

		if len(result.Failed) > 0 {
			e.Outcome = event.Failure
		}

		if err := event.Append(tx, batchSubject(next.Batch.ID), next.Version, e); err != nil {
			return err
		}

		tx.Remove(row)
		if err := tx.Commit(ctx); !fault.Is(err, fault.Stale) {
			return err
		}
	}

	// It has ended: the next time, only the result is recorded.
	row.Due = q.Now().Add(time.Minute).UnixMilli()
	return q.saveMail(ctx, row)
}

// saveMail writes a mail's row, at its place among the due mails.
func (q *Queue) saveMail(ctx context.Context, row *Mail) error {
	row.Place()
	tx := q.Table.Begin(q.NewID())
	tx.Save(row)
	return tx.Commit(ctx)
}

// removeMail removes a mail of which there is nothing to tell.
func (q *Queue) removeMail(ctx context.Context, row *Mail) error {
	tx := q.Table.Begin(q.NewID())
	tx.Remove(row)
	return tx.Commit(ctx)
}
