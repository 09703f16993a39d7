package ingest

import (
	"cmp"
	"slices"
	"time"
)

// MailKind is the kind of a mail about a batch.
type MailKind string

// Queued: the submission was read and its jobs wait for their turn. Report: how
// the batch ended, or why it has no jobs. UpdateReport: what has changed since its last
// report. Delayed: it has not ended after some days.
const (
	MailQueued       MailKind = "queued"
	MailReport       MailKind = "report"
	MailUpdateReport MailKind = "update-report"
	MailDelayed      MailKind = "delayed"
)

// Mails are the mails that become due with a change of a batch. Each becomes a row in the
// transaction of the change. A batch that is unpacked in several chunks is Queued once, with the
// first of them.
func Mails(prev, next Batch) []MailKind {
	var out []MailKind
	if prev.Unpacked == 0 && next.Unpacked > 0 {
		out = append(out, MailQueued)
	}

	ended := func(s BatchState) bool { return s == BatchCompleted || s == BatchFailed }
	switch {
	case !ended(next.State) || ended(prev.State):
	case prev.State != BatchUpdateReporting:
		out = append(out, MailReport)
	case next.Changes > 0:
		out = append(out, MailUpdateReport)
	}
	return out
}

// Mail is a pending mail. It stays pending until, for each recipient, it is sent or given
// up. Times are milliseconds since 1970.
type Mail struct {
	Batch string   `dynamo:"batch_id"`
	Kind  MailKind `dynamo:"mail_kind"`
	// Report is the number of the report that it is about, 0 if none is saved.
	Report int        `dynamo:"report_no,omitempty"`
	Exec   int64      `dynamo:"exec_no"` // of the batch when the mail became due
	Owed   int64      `dynamo:"owed_ms"`
	Tries  int        `dynamo:"tries"`
	Tried  int64      `dynamo:"tried_ms,omitempty"` // when the last try began
	Due    int64      `dynamo:"due_ms"`             // of the next try
	Ended  bool       `dynamo:"ended,omitempty"`
	To     []Delivery `dynamo:"deliveries,omitempty"`
	// Problem is why the last try could not send to any recipient.
	Problem string `dynamo:"problem,omitempty"`
}

// Delivery is how a mail went to one recipient.
type Delivery struct {
	To      string `dynamo:"to_address" json:"to"`
	Sent    bool   `dynamo:"sent,omitempty" json:"sent"`
	GivenUp bool   `dynamo:"given_up,omitempty" json:"-"` // it is not tried again
	Problem string `dynamo:"problem,omitempty" json:"problem,omitempty"`
	// At is when it was sent, or the last try ended, and Tries how many there were; 0 if an earlier
	// version has noted it.
	At    int64 `dynamo:"at_ms,omitempty" json:"-"`
	Tries int   `dynamo:"tries,omitempty" json:"-"`
}

// MailResult is the result of a mail: the number of recipients that it was sent to, and
// the failed ones.
type MailResult struct {
	Kind   MailKind   `dynamo:"mail_kind" json:"mail"`
	At     int64      `dynamo:"at_ms" json:"-"`
	Tries  int        `dynamo:"tries" json:"tries"`
	Sent   int        `dynamo:"sent" json:"sent"`
	Failed []Delivery `dynamo:"failed,omitempty" json:"failed,omitempty"`
	// To are those of Sent; an earlier version has noted their number only.
	To []Delivery `dynamo:"sent_to,omitempty" json:"-"`
}

// mailWaits are the waits between the tries of a mail. They take about a day in all, so
// that a daily quota of the mail service is renewed before the last try.
var mailWaits = []time.Duration{time.Minute, 5 * time.Minute, 15 * time.Minute,
	time.Hour, 3 * time.Hour, 8 * time.Hour, 12 * time.Hour}

// MailTries is how often a mail is tried for a recipient, and MailRefusedTries
// how often if the mail service refuses it.
const (
	MailTries        = 8
	MailRefusedTries = 3
)

// PlaceMail is the place of pending mails in the index "work", in order of their due time.
const PlaceMail = "mail"

// WorkKey returns where the mail is in the index "work".
func (m *Mail) WorkKey() (place, rank string) {
	return PlaceMail, DueSK(m.Due) + "#" + m.Batch + "#" + string(m.Kind)
}

// Take is the mail with one more try, begun at now. If its sender dies, the next try is
// due after the usual wait. The due time is set before the try: no other process begins one at the
// same time.
func (m Mail) Take(now time.Time) Mail {
	m.Tries++
	m.Tried, m.Due = now.UnixMilli(), now.Add(mailWaits[min(m.Tries, len(mailWaits))-1]).UnixMilli()
	return m
}

// TriedAt is when the last try began, 0 if there was none. An earlier version has not noted it:
// then it is when the mail came to be.
func (m *Mail) TriedAt() int64 {
	if m.Tries == 0 {
		return 0
	}
	return cmp.Or(m.Tried, m.Owed)
}

// Overtaken reports whether the mail says what is no longer so: its batch was queued, or had not ended, and has
// ended since. Its report says more.
func (m *Mail) Overtaken(b *Batch) bool {
	return (m.Kind == MailQueued || m.Kind == MailDelayed) && b.HasEnded()
}

// Left are the recipients in to for whom the mail is still pending: neither sent nor
// given up. An empty result means that the mail has ended.
func (m *Mail) Left(to []string) []string {
	var out []string
	for _, t := range to {
		if d := m.delivery(t); d == nil || !d.Sent && !d.GivenUp {
			out = append(out, t)
		}
	}
	return out
}

func (m *Mail) delivery(to string) *Delivery {
	for i := range m.To {
		if m.To[i].To == to {
			return &m.To[i]
		}
	}
	return nil
}

// Keep is the mail without the failed deliveries to former recipients: those not in to.
func (m Mail) Keep(to []string) Mail {
	m.To = slices.DeleteFunc(slices.Clone(m.To),
		func(d Delivery) bool { return !d.Sent && !slices.Contains(to, d.To) })
	return m
}

// Note is the mail after a try for a recipient that ended at now: problem is empty if it was sent.
// A refused mail is tried less often, because the next try is likely to be refused too.
func (m Mail) Note(to, problem string, refused bool, now time.Time) Mail {
	m.To = slices.Clone(m.To)
	if m.delivery(to) == nil {
		m.To = append(m.To, Delivery{To: to})
	}

	last := m.Tries >= MailTries || refused && m.Tries >= MailRefusedTries
	*m.delivery(to) = Delivery{
		To:      to,
		Sent:    problem == "",
		GivenUp: problem != "" && last,
		Problem: problem,
		At:      now.UnixMilli(),
		Tries:   m.Tries,
	}
	return m
}

// Result is the result of the mail after its last try, at now. What could not be composed has one
// failed delivery without a recipient.
func (m *Mail) Result(now time.Time) MailResult {
	r := MailResult{Kind: m.Kind, At: now.UnixMilli(), Tries: m.Tries}
	for _, d := range m.To {
		if d.Sent {
			r.Sent++
			r.To = append(r.To, d)
		} else {
			r.Failed = append(r.Failed, d)
		}
	}

	if m.Problem != "" {
		r.Failed = append(r.Failed, Delivery{Problem: m.Problem})
	}
	return r
}
