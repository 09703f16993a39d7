package api

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	v1 "archivist/pkg/api/v1"
	"archivist/pkg/ingest"
	"archivist/pkg/ingest/queue"
	"archivist/pkg/kernel/explain"
	"archivist/pkg/kernel/fault"
)

// mails sets what became of the mails about a batch, and those that did not reach a recipient. A
// caller with limits sees the addresses that the submission has named; of those of the profile,
// how many.
func (a *API) mails(ctx context.Context, b *queue.Batch, wire *v1.Batch) error {
	mails, err := a.Queue.Mails(ctx, b)
	shows := showsAddresses(ctx, b)
	for _, m := range mails {
		d := wireMail(m, b)
		if !shows(m.To) {
			wire.Mails = addOfProfile(wire.Mails, d)
			continue
		}
		wire.Mails = append(wire.Mails, d)

		if m.Problem != "" {
			wire.MailProblems = append(wire.MailProblems, v1.MailProblem{Mail: d.Kind, To: d.To,
				Problem: d.Problem, Tries: d.Tries, NextTry: d.NextTry, Text: m.MailProblem.String()})
		}
	}
	return err
}

// wireMail is the wire form of what became of a mail about a batch.
func wireMail(m queue.MailTold, b *queue.Batch) v1.Notice {
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
	return d
}

// showsAddresses returns what reports whether the caller may see an address of a mail about a
// batch, nil for one whose row was removed. A depositor may not read the profile, which can name
// others.
func showsAddresses(ctx context.Context, b *queue.Batch) func(to string) bool {
	if limits(ctx) == nil {
		return func(string) bool { return true }
	}
	return func(to string) bool { return to == "" || b != nil && slices.Contains(b.Mail, to) }
}

// addOfProfile adds what became of a mail to a recipient whom only the profile names: those with
// the same mail and state are one notice. Why one failed can name the address, too.
func addOfProfile(all []v1.Notice, d v1.Notice) []v1.Notice {
	i := slices.IndexFunc(all, func(n v1.Notice) bool {
		return n.OfProfile > 0 && n.Kind == d.Kind && n.State == d.State
	})
	if i < 0 {
		d.To, d.Problem, d.Advice, d.OfProfile = "", "", "", 1
		if d.State == v1.NoticeFailed || d.State == v1.NoticeGivenUp {
			d.Advice = "The profile of the collection names the address: operators of the archive " +
				"see it, and why"
		}
		return append(all, d)
	}
	n := &all[i]
	n.OfProfile++
	n.Tries, n.At = max(n.Tries, d.Tries), max(n.At, d.At)
	n.NextTry = min(n.NextTry, d.NextTry)
	return all
}

// hiddenAddress stands for an address that the caller may not see.
const hiddenAddress = "an address of the profile of the collection"

// mailEvents are events of a batch as the caller may see them: see mails.
func (a *API) mailEvents(ctx context.Context, id string, events []v1.Event) error {
	if limits(ctx) == nil || !slices.ContainsFunc(events, isMail) {
		return nil
	}
	b, err := a.Queue.Batch(ctx, id)
	if fault.Is(err, fault.NotFound) {
		b, err = nil, nil
	}
	if err != nil {
		return err
	}
	shows := showsAddresses(ctx, b)
	for i := range events {
		if !isMail(events[i]) {
			continue
		}
		var result ingest.MailResult
		if json.Unmarshal(events[i].Detail, &result) != nil {
			result = ingest.MailResult{} // what cannot be read can name anybody
		}
		for j := range result.Failed {
			if f := &result.Failed[j]; !shows(f.To) {
				f.To, f.Problem = hiddenAddress, ""
			}
		}
		if events[i].Detail, err = json.Marshal(result); err != nil {
			return err
		}
	}
	return nil
}

func isMail(e v1.Event) bool { return e.Type == v1.EventBatchMail }

// hideAddresses takes from what is said of batches the addresses of mails that the caller may not
// see: see mails. Of one whose row was removed meanwhile nothing is said: whom its submission
// named is not known.
func (a *API) hideAddresses(ctx context.Context, chain []explain.Link) error {
	for i := range chain {
		link := &chain[i]
		if link.Kind != explain.Batch {
			continue
		}
		b, err := a.Queue.Batch(ctx, link.ID)
		if fault.Is(err, fault.NotFound) {
			link.Why = "It was removed meanwhile."
			continue
		}
		if err != nil {
			return err
		}
		mails, err := a.Queue.Mails(ctx, b)
		if err != nil {
			return err
		}
		shows, said := showsAddresses(ctx, b), link.Why
		for _, m := range mails {
			if !shows(m.To) {
				link.Why = strings.ReplaceAll(link.Why, m.Sentence(), "")
				// It may have been tried once more since it was explained.
				link.Why = strings.ReplaceAll(link.Why, m.To, hiddenAddress)
			}
		}
		if link.Why != said {
			link.Why += " Mails to recipients whom the profile of the collection names could not " +
				"be delivered."
		}
	}
	return nil
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
