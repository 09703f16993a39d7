// Package notify writes the mails that report how submissions ended.
//
// The texts of the mails are in the folder templates: one file for each mail and form,
// e.g. templates/report.txt. A Report is the report of a batch, as it is saved and as the
// API returns it. ForReport and ForQueued compose the mails, and Mail.Encode encodes them
// for a mail service:
//
//	m, err := notify.ForReport(report, true, link)
//	m.From, m.To = sender, recipient
//	m.ID, err = notify.MessageID(sender, recipient, about)
//	raw, err := m.Encode(now)
//
// Texts of depositors are shown unchanged, but cannot begin a line of a mail, send control
// characters to a terminal, or become HTML. Package mail decides who gets a mail, and when.
package notify

import (
	"encoding/json"
	"fmt"
)

// Report is the report of a batch to its depositor. It is saved in the work bucket.
type Report struct {
	Batch      string `json:"batch"`
	Collection string `json:"collection"`
	Note       string `json:"note,omitempty"`
	At         string `json:"at"`
	Message    string `json:"message,omitempty"` // why the batch has no jobs
	Problem    string `json:"problem,omitempty"` // why the jobs are not listed

	Warnings  []string `json:"warnings,omitempty"` // of the batch's manifest
	Counts    Counts   `json:"counts"`
	Failed    []Job    `json:"failed"`
	Completed []Job    `json:"completed"`
	Open      []Job    `json:"open"` // requeued while the report was made
}

// NewReport begins a report.
func NewReport(batch, collection, note, at string) Report {
	return Report{Batch: batch, Collection: collection, Note: note, At: at, Failed: []Job{}, Completed: []Job{},
		Open: []Job{}}
}

// ReportPath is the path of the API that gives a batch's report.
func ReportPath(batch string) string { return "/v1/batches/" + batch + "/report" }

// ReceiptPath is the path of the API that gives a job's receipt.
func ReceiptPath(job string) string { return "/v1/jobs/" + job + "/receipt" }

// Counts is how many jobs of each kind a report has.
type Counts struct {
	Failed    int `json:"failed"`
	Completed int `json:"completed"`
	Open      int `json:"open"`
}

// Sum of all kinds.
func (c Counts) Sum() int { return c.Failed + c.Completed + c.Open }

// Job is one job's line of a report.
type Job struct {
	Job             string   `json:"job"`
	State           string   `json:"state"`
	Source          string   `json:"source,omitempty"` // redacted
	ARK             string   `json:"ark,omitempty"`
	Version         int      `json:"version,omitempty"`
	NoChange        bool     `json:"noChange,omitempty"`
	InventoryDigest string   `json:"inventoryDigest,omitempty"` // sha512 of the OCFL inventory
	LocalIDs        []string `json:"localIds,omitempty"`
	Title           string   `json:"title,omitempty"`
	Files           int      `json:"files,omitempty"`
	Bytes           int64    `json:"bytes,omitempty"`
	Warnings        Warnings `json:"warnings,omitempty"`    // the first of its manifest and of its files
	FileDetails     []File   `json:"fileDetails,omitempty"` // of jobs of a few files
	Receipt         string   `json:"receipt,omitempty"`     // path of the API with all files
	Problem         string   `json:"problem,omitempty"`     // why there are no file details
	Message         string   `json:"message,omitempty"`     // why it failed
	Recoverable     bool     `json:"recoverable,omitempty"`
	Next            string   `json:"next,omitempty"` // what to do about it
}

// File is one preserved file of a job.
type File struct {
	Path    string            `json:"path"`
	Size    int64             `json:"size"`
	Digests map[string]string `json:"digests"` // computed from what was received
	Given   *Digest           `json:"given,omitempty"`
	Warning string            `json:"warning,omitempty"`
}

// Digest is one that the depositor gave, and that was verified.
type Digest struct {
	Algorithm string `json:"algorithm"`
	Value     string `json:"value"`
}

// NextStep is what to do about a failed job.
func NextStep(recoverable bool) string {
	if recoverable {
		return "Correct the cause, then requeue the job."
	}
	return "It cannot be requeued: a new submission is needed."
}

// Shown is how many jobs of a kind a mail lists.
const Shown = 50

// ForReport composes the mail of a report, to be addressed. If whole is set, the
// report has all of its jobs, and they are attached. link is where the API has the
// whole report, or "".
func ForReport(r Report, whole bool, link string) (m Mail, err error) {
	if whole && r.Counts.Sum() > 0 {
		for _, list := range []struct {
			name string
			jobs []Job
		}{{"completed.json", r.Completed}, {"failed.json", r.Failed}} {
			data, err := json.MarshalIndent(append([]Job{}, list.jobs...), "", "  ")
			if err != nil {
				return m, err
			}
			m.Attach = append(m.Attach, Attachment{list.name, data})
		}
	}

	m.Subject = subject(r)
	cut := r.Counts.Failed > Shown || r.Counts.Completed > Shown
	err = m.fill("report", struct {
		Report
		Subject, Link string
		Cut, Whole    bool
	}{r, m.Subject, link, cut, whole})
	return m, err
}

// subject is the subject of a report's mail.
func subject(r Report) string {
	what := fmt.Sprintf("%s preserved", count(r.Counts.Completed, "object"))
	switch {
	case r.Message != "":
		what = "Submission failed"
	case r.Counts.Failed > 0:
		what = fmt.Sprintf("%d of %s failed", r.Counts.Failed, count(r.Counts.Sum(), "object"))
	}
	return line(fmt.Sprintf("%s: %s to %s", what, r.Batch, r.Collection))
}

// Queued is what the mail about a queued submission shows.
type Queued struct {
	Batch, Collection, Note, At string
	Objects                     int
}

// ForQueued composes the mail that a submission is queued, to be addressed.
func ForQueued(q Queued) (m Mail, err error) {
	m.Subject = line(fmt.Sprintf("%s queued: %s to %s", count(q.Objects, "object"), q.Batch, q.Collection))
	err = m.fill("queued", struct {
		Queued
		Subject string
	}{q, m.Subject})
	return m, err
}
