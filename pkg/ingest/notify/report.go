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
	"fmt"
	"strings"
)

// Report is the report of a batch to its depositor. It is saved in the work bucket.
type Report struct {
	Batch      string `json:"batch"`
	Collection string `json:"collection"`
	Note       string `json:"note,omitempty"`
	At         string `json:"at"`
	Number     int    `json:"number,omitempty"`  // from 1; 0 if it was saved before reports had numbers
	Since      string `json:"since,omitempty"`   // the time of the report that it is compared with
	Message    string `json:"message,omitempty"` // why the batch has no jobs
	Problem    string `json:"problem,omitempty"` // why the jobs are not listed
	// Incomplete is why not everything of the submission was ingested, although it has jobs.
	Incomplete string `json:"incomplete,omitempty"`

	Callback string   `json:"callback,omitempty"` // of the submission, without its secrets
	Warnings []string `json:"warnings,omitempty"` // of the batch's manifest
	Counts   Counts   `json:"counts"`
	Failed   []Job    `json:"failed"`
	// Cancelled are the jobs that ended because the batch was cancelled. The state tells which had started:
	// these are Failed, the others Deleted.
	Cancelled []Job `json:"cancelled"`
	Completed []Job `json:"completed"`
	Deleted   []Job `json:"deleted"`
	Open      []Job `json:"open"` // requeued while the report was made

	// Changes are what has changed since an earlier report; nil in the first report.
	Changes *Changes `json:"changes,omitempty"`
}

// NewReport begins a report.
func NewReport(batch, collection, note, at string) Report {
	return Report{
		Batch:      batch,
		Collection: collection,
		Note:       note,
		At:         at,
		Failed:     []Job{},
		Cancelled:  []Job{},
		Completed:  []Job{},
		Deleted:    []Job{},
		Open:       []Job{},
	}
}

// ReportPath is the path of the API that gives a batch's report.
func ReportPath(batch string) string { return "/v1/batches/" + batch + "/report" }

// ReceiptPath is the path of the API that gives a job's receipt.
func ReceiptPath(job string) string { return "/v1/jobs/" + job + "/receipt" }

// Counts is how many jobs of each kind a report has.
type Counts struct {
	Failed    int `json:"failed"`
	Cancelled int `json:"cancelled"`
	Completed int `json:"completed"`
	Deleted   int `json:"deleted"`
	Open      int `json:"open"`
}

// Sum of all kinds.
func (c Counts) Sum() int { return c.Failed + c.Cancelled + c.Completed + c.Deleted + c.Open }

// Change is what has changed for a job since an earlier report.
type Change string

// The changes. A job that is not in the earlier report, or was open then, has changed when it
// ended. One that was preserved or deleted then has no change.
const (
	NowPreserved Change = "now preserved"
	NewlyFailed  Change = "newly failed"
	StillFailed  Change = "still failed"
	NowDeleted   Change = "deleted"
)

// Changes is how many jobs have each change.
type Changes struct {
	NowPreserved int `json:"nowPreserved"`
	NewlyFailed  int `json:"newlyFailed"`
	StillFailed  int `json:"stillFailed"`
	NextStep     int `json:"nextStep"` // of StillFailed, those with another next step than then
	Deleted      int `json:"deleted"`
}

// Count counts a job's change. nextStep is set if its next step is another one. No change, "",
// counts nothing.
func (c *Changes) Count(change Change, nextStep bool) {
	switch change {
	case NowPreserved:
		c.NowPreserved++
	case NewlyFailed:
		c.NewlyFailed++
	case StillFailed:
		c.StillFailed++
		if nextStep {
			c.NextStep++
		}
	case NowDeleted:
		c.Deleted++
	}
}

// Add adds the changes of other jobs.
func (c *Changes) Add(d Changes) {
	c.NowPreserved += d.NowPreserved
	c.NewlyFailed += d.NewlyFailed
	c.StillFailed += d.StillFailed
	c.NextStep += d.NextStep
	c.Deleted += d.Deleted
}

// String lists the changes: "1 now preserved, 2 still failed".
func (c Changes) String() string {
	var parts []string
	for _, p := range []struct {
		n      int
		change Change
	}{{c.NowPreserved, NowPreserved}, {c.NewlyFailed, NewlyFailed}, {c.StillFailed, StillFailed},
		{c.Deleted, NowDeleted}} {
		if p.n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", p.n, p.change))
		}
	}
	return strings.Join(parts, ", ")
}

// News is the number of jobs with another result or next step. Without news, no mail is due: see
// ingest.Mails.
func (c Changes) News() int { return c.NowPreserved + c.NewlyFailed + c.NextStep + c.Deleted }

// Job is one job's line of a report.
type Job struct {
	Job             string   `json:"job"`
	State           string   `json:"state"`
	Cancelled       bool     `json:"cancelled,omitempty"` // it ended because its batch was cancelled
	Change          Change   `json:"change,omitempty"`    // since an earlier report
	Source          string   `json:"source,omitempty"`    // as Payload.Source says
	ARK             string   `json:"ark,omitempty"`
	Version         int      `json:"version,omitempty"`
	NoChange        bool     `json:"noChange,omitempty"`
	InventoryDigest string   `json:"inventoryDigest,omitempty"` // sha512 of the OCFL inventory
	LocalIDs        []string `json:"localIds,omitempty"`
	Title           string   `json:"title,omitempty"`
	Files           int      `json:"files"` // 0 until it is known, or since there are none
	Bytes           int64    `json:"bytes"`
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
func NextStep(cancelled, recoverable bool) string {
	switch {
	case !recoverable:
		return "It cannot be requeued: a new submission is needed."
	case cancelled:
		return "Requeue the job to continue it."
	}
	return "Correct the cause, then requeue the job."
}
