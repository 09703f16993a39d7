package notify

import (
	"encoding/json"
	"fmt"
)

// ForReport composes the mail of a report, to be addressed. If whole is set, the
// report has all of its jobs, and they are attached. link is where the API has the
// whole report, or "".
func ForReport(r Report, whole bool, link string) (m Mail, err error) {
	if whole && r.Counts.Sum() > 0 {
		if err := m.attach(r.Completed, r.Failed, r.Cancelled); err != nil {
			return m, err
		}
	}

	m.Subject = subject(r)
	// The mail then says that it does not list all.
	cut := max(r.Counts.Failed, r.Counts.Cancelled, r.Counts.Completed, r.Counts.Deleted) > Shown
	err = m.fill("report", filled{
		Report:  r,
		Subject: m.Subject,
		Link:    link,
		Cut:     cut,
		Whole:   whole,
	})
	return m, err
}

// filled is what the templates of reports show.
type filled struct {
	Report
	Subject, Link string
	Cut, Whole    bool
	Sections      []section // of an update
}

// section is one part of an update's mail: the jobs with one change.
type section struct {
	Change Change
	N      int
	Jobs   []Job // at most Shown
}

// attach attaches the jobs of a report. Most batches are not cancelled, and have no list of that.
func (m *Mail) attach(completed, failed, cancelled []Job) error {
	for _, list := range []struct {
		name string
		jobs []Job
	}{{"completed.json", completed}, {"failed.json", failed}, {"cancelled.json", cancelled}} {
		if list.name == "cancelled.json" && len(cancelled) == 0 {
			continue
		}
		data, err := json.MarshalIndent(append([]Job{}, list.jobs...), "", "  ")
		if err != nil {
			return err
		}
		m.Attach = append(m.Attach, Attachment{list.name, data})
	}
	return nil
}

// subject is the subject of a report's mail.
func subject(r Report) string {
	what := fmt.Sprintf("%s preserved", count(r.Counts.Completed, "object"))
	switch {
	case r.Message != "":
		what = "Submission failed"
	case r.Counts.Failed > 0:
		what = fmt.Sprintf("%d of %s failed", r.Counts.Failed, count(r.Counts.Sum(), "object"))
	case r.Counts.Cancelled > 0:
		what = fmt.Sprintf("%d of %s cancelled", r.Counts.Cancelled, count(r.Counts.Sum(), "object"))
	case r.Counts.Deleted > 0:
		what = fmt.Sprintf("%d of %s deleted", r.Counts.Deleted, count(r.Counts.Sum(), "object"))
	}
	return line(fmt.Sprintf("%s: %s to %s", what, r.Batch, r.Collection))
}

// Delayed is what the mail about a batch shows that has not ended after some days.
type Delayed struct {
	Batch, Collection, Note, At, State string
	Days, Open, Failed                 int
	Held                               string // by whom and why it is held, "" if it is not
}

// ForDelayed composes the mail that a batch has not ended, to be addressed.
func ForDelayed(d Delayed) (m Mail, err error) {
	m.Subject = line(fmt.Sprintf("Not finished after %s: %s to %s", count(d.Days, "day"), d.Batch,
		d.Collection))
	err = m.fill("delayed", struct {
		Delayed
		Subject string
	}{d, m.Subject})
	return m, err
}

// Queued is what the mail about a queued submission shows.
type Queued struct {
	Batch, Collection, Note, At string
	Objects                     int
}

// ForQueued composes the mail that a submission is queued, to be addressed.
func ForQueued(q Queued) (m Mail, err error) {
	m.Subject = line(fmt.Sprintf("%s queued: %s to %s", count(q.Objects, "object"), q.Batch,
		q.Collection))
	err = m.fill("queued", struct {
		Queued
		Subject string
	}{q, m.Subject})
	return m, err
}
