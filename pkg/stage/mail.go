package stage

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"archivist/pkg/collection"
	"archivist/pkg/fault"
	"archivist/pkg/ingest"
	"archivist/pkg/notify"
	"archivist/pkg/queue"
	"archivist/pkg/workspace"
)

// Compose makes a mail about a batch ready (see queue.Compose): it goes to whom the
// submission and the collection's profile name, unless that is suppressed.
func (s *Stages) Compose(ctx context.Context, b *ingest.Batch, m ingest.Mail) (to []string, send queue.Send, err error) {
	if s.MailFrom == "" {
		return nil, nil, nil
	}
	profile, _, err := s.Collections.Profile(ctx, b.Collection)
	if err != nil {
		return nil, nil, err
	}
	to = profile.Recipients(b.Mail)
	suppressed := profile.Suppress == collection.Full ||
		profile.Suppress == collection.Partial && m.Kind == ingest.MailQueued
	if len(to) == 0 || suppressed {
		return nil, nil, nil
	}
	message, err := s.message(ctx, b, m.Kind)
	if err != nil {
		return nil, nil, err
	}
	about := fmt.Sprintf("%s.%s.%d", b.ID, m.Kind, m.Exec)
	return to, func(ctx context.Context, to string) error { return s.send(ctx, message, about, to, m) }, nil
}

// send sends a message to one recipient. One who has no mail address is refused.
func (s *Stages) send(ctx context.Context, message notify.Mail, about, to string, m ingest.Mail) (err error) {
	if err := notify.CheckAddress(to); err != nil {
		return fault.New(fault.Invalid, "%w", err)
	}
	message.From, message.To = s.MailFrom, to
	if message.ID, err = notify.MessageID(s.MailFrom, to, about); err != nil {
		return err
	}
	raw, err := message.Encode(time.UnixMilli(m.Owed))
	if err != nil {
		return err
	}
	return s.SendMail(ctx, raw)
}

// message is what a mail says, not addressed yet.
func (s *Stages) message(ctx context.Context, b *ingest.Batch, kind ingest.MailKind) (notify.Mail, error) {
	if kind == ingest.MailQueued {
		return notify.ForQueued(notify.Queued{Batch: b.ID, Collection: b.Collection, Note: b.Note,
			Objects: b.Expected, At: ingest.Timestamp(b.Created)})
	}
	r, whole, err := s.saved(ctx, b)
	if err != nil {
		return notify.Mail{}, err
	}
	link := ""
	if s.API != "" && b.Report != "" {
		link = s.API + ReportPath(b.ID)
	}
	return notify.ForReport(r, whole, link)
}

// saved reads as much of a batch's report as a mail needs. It is whole if it is
// small enough to be attached. A batch that has none says why.
func (s *Stages) saved(ctx context.Context, b *ingest.Batch) (r notify.Report, whole bool, err error) {
	if b.Report == "" {
		r, err = s.unreported(ctx, b)
		return r, false, err
	}
	info, err := s.Work.Head(ctx, b.Report)
	if err != nil {
		return r, false, err
	}
	key := b.Report
	if whole = info.Size <= notify.MaxAttached; !whole {
		key = workspace.SummaryKey(b.ID)
	}
	data, _, err := s.Work.Read(ctx, key)
	if err == nil {
		err = json.Unmarshal(data, &r)
	}
	return r, whole, err
}

// unreported is the report of a batch of which none is saved: it has no jobs, or its
// report could not be made.
func (s *Stages) unreported(ctx context.Context, b *ingest.Batch) (notify.Report, error) {
	r := reportOf(b)
	if b.Unpacked == 0 {
		r.Message = b.Message
		return r, nil
	}
	r.Problem = b.Message
	counts, err := s.Queue.Counts(ctx, b.ID)
	r.Counts = notify.Counts{Failed: int(counts.Failed), Completed: int(counts.Completed), Open: int(counts.Open())}
	return r, err
}
