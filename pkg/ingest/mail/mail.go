// Package mail composes the mails about a batch: that it is queued, how its jobs ended, and
// what has changed since.
//
// Package notify has the text of the mails; the recipients follow from the submission and
// from the profile of its collection. A mail is composed when it is due: one that could
// not be sent is sent again with the same text and the same Message-ID.
//
//	c := mail.Composer{Work: work, Collections: profiles, Counts: q.Counts, From: sender, Send: ses.Send}
//	to, send, err := c.Compose(ctx, batch, due)
package mail

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"archivist/pkg/ingest"
	"archivist/pkg/ingest/collection"
	"archivist/pkg/ingest/notify"
	"archivist/pkg/ingest/queue"
	"archivist/pkg/ingest/workspace"
	"archivist/pkg/kernel/fault"
)

// Composer composes mails.
type Composer struct {
	Work        workspace.Store // has the reports
	Collections collection.Store
	Counts      func(ctx context.Context, batch string) (ingest.Counts, error)
	From        string // sender; "" = no mails are sent
	API         string // URL of the API before /v1, for links; "" = no links
	Send        func(ctx context.Context, raw []byte) error
}

// Compose prepares a mail about a batch (see queue.Compose) to the recipients that the
// submission and the collection's profile name, unless the profile suppresses it. No recipients and
// no error mean that there is nothing to send: the mail has ended.
func (c Composer) Compose(
	ctx context.Context, b *ingest.Batch, m ingest.Mail,
) (to []string, send queue.Send, err error) {
	if c.From == "" {
		return nil, nil, nil
	}

	profile, _, err := c.Collections.Profile(ctx, b.Collection)
	if err != nil {
		return nil, nil, err
	}

	to = profile.Recipients(b.Mail)
	suppressed := profile.Suppress == collection.Full ||
		profile.Suppress == collection.Partial && m.Kind == ingest.MailQueued
	if len(to) == 0 || suppressed {
		return nil, nil, nil
	}

	message, err := c.message(ctx, b, m)
	if err != nil {
		return nil, nil, err
	}

	// It is that of the mail's row, and so the same at each try.
	about := fmt.Sprintf("%s.%s.%d", b.ID, m.Kind, m.Exec)
	return to, func(ctx context.Context,
		to string) error {
		return c.send(ctx, message, about, to, m)
	}, nil
}

// send sends a message to one recipient. An invalid mail address is refused.
func (c Composer) send(ctx context.Context, message notify.Mail, about, to string,
	m ingest.Mail) (err error) {
	if err := notify.CheckAddress(to); err != nil {
		return fault.New(fault.Invalid, "%w", err)
	}

	message.From, message.To = c.From, to
	if message.ID, err = notify.MessageID(c.From, to, about); err != nil {
		return err
	}

	// The date is when the mail became due, the same at each try.
	raw, err := message.Encode(time.UnixMilli(m.Owed))
	if err != nil {
		return err
	}
	return c.Send(ctx, raw)
}

// message is a mail without its address.
func (c Composer) message(ctx context.Context, b *ingest.Batch,
	m ingest.Mail) (notify.Mail, error) {
	if m.Kind == ingest.MailQueued {
		return notify.ForQueued(notify.Queued{
			Batch:      b.ID,
			Collection: b.Collection,
			Note:       b.Note,
			Objects:    b.Expected,
			At:         ingest.Timestamp(b.Created),
		})
	}

	if m.Kind == ingest.MailDelayed {
		return c.delayed(ctx, b, m)
	}

	number := m.Report
	if number == 0 { // it became due before reports had numbers, or before one was saved
		number = min(b.LastReport(), 1)
	}

	r, whole, err := c.saved(ctx, b, number)
	if err != nil {
		return notify.Mail{}, err
	}

	link := ""
	if c.API != "" && number > 0 {
		link = c.API + notify.ReportPath(b.ID)
	}

	if m.Kind == ingest.MailUpdateReport {
		if link != "" {
			link += fmt.Sprintf("?number=%d", number)
		}
		return notify.ForUpdate(r, whole, link)
	}
	return notify.ForReport(r, whole, link)
}

// delayed is the mail about a batch that has not ended.
func (c Composer) delayed(ctx context.Context, b *ingest.Batch,
	m ingest.Mail) (notify.Mail, error) {
	counts, err := c.Counts(ctx, b.ID)
	if err != nil {
		return notify.Mail{}, err
	}

	d := notify.Delayed{
		Batch:      b.ID,
		Collection: b.Collection,
		Note:       b.Note,
		At:         ingest.Timestamp(b.Created),
		State:      string(b.State),
		Open:       int(counts.Open()),
		Failed:     int(counts.Failed),
		Days:       int(time.Duration(m.Owed-b.Created) * time.Millisecond / (24 * time.Hour)),
	}

	if b.Hold != nil {
		d.Held = b.Hold.Reason
	}
	return notify.ForDelayed(d)
}

// saved reads as much of a batch's report as a mail needs. It is whole if it is small
// enough to be attached. If the batch has no report, its message is the reason. A missing report is
// a NotFound: the mail is tried again.
func (c Composer) saved(ctx context.Context, b *ingest.Batch,
	number int) (r notify.Report, whole bool, err error) {
	if number == 0 {
		r, err = c.unreported(ctx, b)
		return r, false, err
	}

	key := workspace.ReportKey(b.ID, number)
	info, err := c.Work.Head(ctx, key)
	if err != nil {
		return r, false, err
	}

	whole = info.Size <= notify.MaxAttached
	if !whole {
		key = workspace.SummaryKey(b.ID, number)
	}

	data, _, err := c.Work.Read(ctx, key)
	if err == nil {
		err = json.Unmarshal(data, &r)
	}
	return r, whole, err
}

// unreported is the report of a batch that has none saved: it has no jobs, or its report
// could not be made.
func (c Composer) unreported(ctx context.Context, b *ingest.Batch) (notify.Report, error) {
	r := notify.NewReport(b.ID, b.Collection, b.Note, ingest.Timestamp(b.Entered))
	r.Warnings, r.Incomplete = b.Warnings, b.CutShort()
	if b.Unpacked == 0 {
		r.Message = b.Message
		return r, nil
	}

	r.Problem = b.Message
	counts, err := c.Counts(ctx, b.ID)
	r.Counts = notify.Counts{
		Failed:    int(counts.Failed),
		Completed: int(counts.Completed),
		Deleted:   int(counts.Deleted),
		Open:      int(counts.Open()),
	}
	return r, err
}
