package stage

import (
	"context"
	"time"

	"archivist/pkg/bucket"
	"archivist/pkg/fetch"
	"archivist/pkg/ingest"
	"archivist/pkg/notify"
	"archivist/pkg/queue"
)

// ReportKey is where a batch's report is in the work bucket.
func ReportKey(batch string) string { return "reports/" + batch + ".json" }

// linkFor is how long the link to a report can be used.
const linkFor = 7 * 24 * time.Hour

// report gathers how every job of the batch ended, saves it, and sends it.
func (s *Stages) report(ctx context.Context, h *queue.Held) (ingest.Result, error) {
	r := s.newReport(h.Batch)
	for after := 0; ; {
		jobs, err := s.Queue.Jobs(ctx, h.Batch.ID, after)
		if err != nil {
			return ingest.Result{}, err
		}
		if len(jobs) == 0 {
			break
		}
		after += len(jobs)
		for _, j := range jobs {
			line := notify.Job{Job: j.Job.ID, Source: fetch.Redact(j.URL), ARK: j.Primary, Version: j.ObjectVersion, NoChange: j.NoChange, LocalIDs: j.LocalIDs, Title: j.What,
				Files: j.Files, Bytes: j.Bytes, Message: j.Message, Recoverable: !j.NotRecoverable}
			switch j.State {
			case ingest.Completed:
				line.Recoverable = false
				r.Completed = append(r.Completed, line)
			case ingest.Failed:
				r.Failed = append(r.Failed, line)
			default:
				r.Open = append(r.Open, line)
			}
		}
	}
	r.Counts = map[string]int{"completed": len(r.Completed), "failed": len(r.Failed), "open": len(r.Open)}
	return next, s.publish(ctx, h.Batch, r)
}

// newReport begins a report. Its time is that at which the batch came to
// reporting, so that a second try makes the same one.
func (s *Stages) newReport(b *ingest.Batch) notify.Report {
	return notify.Report{Batch: b.ID, Collection: b.Collection, Note: b.Note, At: stamp(b.Entered), Completed: []notify.Job{}, Failed: []notify.Job{}}
}

// publish saves a report and mails it.
func (s *Stages) publish(ctx context.Context, b *ingest.Batch, r notify.Report) error {
	b.Report = ReportKey(b.ID)
	if err := s.putJSON(ctx, b.Report, r, bucket.Condition{}); err != nil {
		return err
	}
	return s.mail(ctx, b, false, func(to []string) (notify.Mail, error) {
		link, err := s.Work.Presign(ctx, b.Report, b.ID+".json", linkFor)
		if err != nil {
			return notify.Mail{}, err
		}
		return notify.ForReport(r, s.MailFrom, to, link)
	})
}

// refuse ends the unpacking of a submission that is no good: its depositor hears
// of it, and no job is made.
func (s *Stages) refuse(ctx context.Context, b *ingest.Batch, why ingest.Result) (ingest.Result, error) {
	r := s.newReport(b)
	r.Message = why.Reason
	return why, s.publish(ctx, b, r)
}
