package api

import (
	"context"

	v1 "archivist/pkg/api/v1"
	"archivist/pkg/ingest"
	"archivist/pkg/ingest/queue"
)

// mails sets what became of the mails about a batch, and those that did not reach a recipient.
func (a *API) mails(ctx context.Context, b *queue.Batch, wire *v1.Batch) error {
	mails, err := a.Queue.Mails(ctx, b)
	for _, m := range mails {
		d := v1.Notice{
			Kind:    string(m.Kind),
			To:      m.To,
			State:   string(m.State()),
			At:      timestamp(m.At),
			Tries:   m.Tries,
			Others:  m.Others,
			Problem: m.Problem,
			NextTry: timestamp(m.NextTry),
		}
		if d.State == v1.NoticeGivenUp {
			d.Advice = "It is not sent again"
			if m.To != "" { // else it could not be composed
				d.Advice = "If the address is wrong, correct it where it is named: in the submission, " +
					"or in the profile of the collection. It is not sent again"
			}
			if b.Report != "" {
				d.Advice += "; what it would say: archivist batch report " + b.Batch.ID
			}
		}
		wire.Mails = append(wire.Mails, d)

		if m.Problem != "" {
			wire.MailProblems = append(wire.MailProblems, v1.MailProblem{Mail: d.Kind, To: d.To,
				Problem: d.Problem, Tries: d.Tries, NextTry: d.NextTry, Text: m.MailProblem.String()})
		}
	}
	return err
}

// callbacksOf is what became of the callbacks of a job.
func callbacksOf(j *ingest.Job) (out []v1.Notice) {
	for _, c := range j.Calls {
		d := v1.Notice{
			Kind:    "callback",
			To:      c.Site,
			NamedBy: c.By,
			State:   string(j.CallState(c)),
			At:      timestamp(c.At),
			Tries:   c.Tries,
			Problem: c.Problem,
		}
		switch d.State {
		case v1.NoticeFailed:
			d.Advice = "Correct the cause, then requeue the job, which sends it again: " +
				"archivist job requeue " + j.ID + " --reason …"
		case v1.NoticeGivenUp:
			d.Advice = "It is not sent again. Tell the depositor what it would say: " +
				"archivist job show " + j.ID
		}
		out = append(out, d)
	}
	return out
}

// callbackCounts are those of a batch, nil if there are none.
func callbackCounts(c ingest.Counts) *v1.CallbackCounts {
	if c.Called+c.CallFailed+c.Uncalled == 0 {
		return nil
	}
	return &v1.CallbackCounts{Delivered: c.Called, Failed: c.CallFailed, GivenUp: c.Uncalled}
}
