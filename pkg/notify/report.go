// Package notify tells depositors by mail how their submissions ended.
package notify

import (
	"bytes"
	"encoding/json"
	"fmt"
	"html/template"
	"strings"
	"unicode"
)

// Report is what a depositor hears of a batch. It is saved in the work bucket.
type Report struct {
	Batch      string `json:"batch"`
	Collection string `json:"collection"`
	Note       string `json:"note,omitempty"`
	At         string `json:"at"`
	Message    string `json:"message,omitempty"` // why the batch has no jobs
	Problem    string `json:"problem,omitempty"` // why the jobs are not listed
	Counts     Counts `json:"counts"`
	Failed     []Job  `json:"failed"`
	Completed  []Job  `json:"completed"`
	Open       []Job  `json:"open"` // requeued while the report was made
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
	Warnings        int      `json:"warnings,omitempty"`    // files whose digest matched, and whose size differed
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

// mostText bounds one text of a job in a mail, in bytes.
const mostText = 1000

// Cut bounds a text in bytes, at a character.
func Cut(s string, most int) string {
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "…"
}

// line is a text within one line: it can neither begin another one nor send
// control characters to a terminal.
func line(s string) string {
	return Cut(strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || r == '\u2028' || r == '\u2029' || unicode.Is(unicode.Bidi_Control, r) {
			return ' '
		}
		return r
	}, s), mostText)
}

// lines is a text of several lines, of which each is indented.
func lines(s, indent string) string {
	var b strings.Builder
	for l := range strings.Lines(Cut(s, 4*mostText)) {
		b.WriteString(indent + line(strings.TrimRight(l, "\r\n")) + "\n")
	}
	return b.String()
}

func each(all []string) string {
	var out []string
	for _, s := range all {
		out = append(out, line(s))
	}
	return strings.Join(out, ", ")
}

func first(jobs []Job) []Job { return jobs[:min(len(jobs), Shown)] }

// ForReport composes the mail of a report, to be addressed. If whole is set, the
// report has all of its jobs, and they are attached. link is where the API has the
// whole report, or "".
func ForReport(r Report, whole bool, link string) (Mail, error) {
	m := Mail{Subject: subject(r)}
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
	m.Text = plain(r, link, whole)
	var b bytes.Buffer
	err := reportHTML.Execute(&b, struct {
		Report
		Subject, Link string
		Cut, Whole    bool
	}{r, m.Subject, link, isCut(r), whole})
	m.HTML = b.String()
	return m, err
}

func isCut(r Report) bool { return r.Counts.Failed > Shown || r.Counts.Completed > Shown }

// Queued is what a depositor hears when a submission was read.
type Queued struct {
	Batch, Collection, Note, At string
	Objects                     int
}

// ForQueued composes the mail that a submission waits for its turn, to be addressed.
func ForQueued(q Queued) (Mail, error) {
	m := Mail{Subject: line(fmt.Sprintf("%s queued: %s to %s", objects(q.Objects), q.Batch, q.Collection))}
	m.Text = fmt.Sprintf("%s\n\n%sThe submission of %s is queued. A report follows when all of its jobs have ended.\n",
		m.Subject, noted(q.Note), q.At)
	var b bytes.Buffer
	err := queuedHTML.Execute(&b, struct {
		Queued
		Subject string
	}{q, m.Subject})
	m.HTML = b.String()
	return m, err
}

func objects(n int) string {
	if n == 1 {
		return "1 object"
	}
	return fmt.Sprintf("%d objects", n)
}

func noted(note string) string {
	if note == "" {
		return ""
	}
	return "Note:\n" + lines(note, "  ") + "\n"
}

func subject(r Report) string {
	what := fmt.Sprintf("%s preserved", objects(r.Counts.Completed))
	switch {
	case r.Message != "":
		what = "Submission failed"
	case r.Counts.Failed > 0:
		what = fmt.Sprintf("%d of %s failed", r.Counts.Failed, objects(r.Counts.Sum()))
	}
	return line(fmt.Sprintf("%s: %s to %s", what, r.Batch, r.Collection))
}

func plain(r Report, link string, whole bool) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n\n%s", subject(r), noted(r.Note))
	if r.Message != "" {
		fmt.Fprintf(&b, "%s\nNo objects were ingested. Correct the submission and submit it again.\n",
			lines(r.Message, ""))
	}
	for _, j := range first(r.Failed) {
		fmt.Fprintf(&b, "FAILED %s %s [%s]\n%s  %s\n",
			line(j.Job), line(j.Title), each(j.LocalIDs), lines(j.Message, "  "), j.Next)
	}
	for _, j := range first(r.Completed) {
		fmt.Fprintf(&b, "PRESERVED %s %s [%s]\n  %s\n", line(j.ARK), line(j.Title), each(j.LocalIDs), change(j))
		if j.Warnings > 0 {
			fmt.Fprintf(&b, "  Warning: %s\n", warning(j.Warnings))
		}
	}
	if r.Counts.Open > 0 {
		fmt.Fprintf(&b, "\nRequeued while this report was made, and not listed here: %d.\n", r.Counts.Open)
	}
	if isCut(r) {
		fmt.Fprintf(&b, "\nOnly the first %d of each kind are listed here.\n", Shown)
	}
	if r.Problem != "" {
		fmt.Fprintf(&b, "%sThe report was not saved: %sTo list the jobs: archivist job list -b %s\n",
			listed(r.Counts), lines(r.Problem, ""), r.Batch)
	} else if r.Message == "" {
		fmt.Fprintf(&b, "\n%s archivist batch report %s\n", where(whole), r.Batch)
		if link != "" {
			fmt.Fprintf(&b, "%s\n", link)
		}
	}
	fmt.Fprintf(&b, "\nBatch %s, %s.\n", r.Batch, r.At)
	return b.String()
}

// listed counts the jobs of a report that does not list them.
func listed(c Counts) string {
	return fmt.Sprintf("Preserved: %d. Failed: %d.\n", c.Completed, c.Failed)
}

// where says where the whole report is.
func where(attached bool) string {
	if attached {
		return "All jobs are in the attachments, and in the report:"
	}
	return "The attachments would be too large. All jobs are in the report:"
}

func change(j Job) string {
	if j.NoChange {
		return fmt.Sprintf("no change, still version %d", j.Version)
	}
	return fmt.Sprintf("version %d, %d files, %d bytes", j.Version, j.Files, j.Bytes)
}

func warning(files int) string {
	return fmt.Sprintf("the digest matched, the size differed: %d files", files)
}

var functions = template.FuncMap{
	"first": first, "line": line, "each": each, "change": change, "warning": warning, "where": where, "listed": listed,
	"text": func(s string) string { return lines(s, "") },
}

func page(name, body string) *template.Template {
	return template.Must(template.New(name).Funcs(functions).Parse(`<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{{.Subject}}</title></head>
<body>
<h1>{{.Subject}}</h1>
{{with .Note}}<p>Note: {{text .}}</p>{{end}}
` + body + `</body></html>
`))
}

var queuedHTML = page("queued",
	`<p>The submission of {{.At}} is queued. A report follows when all of its jobs have ended.</p>
`)

var reportHTML = page("report", `{{with .Message}}<p style="white-space:pre-line"><strong>{{text .}}</strong></p>
<p>No objects were ingested. Correct the submission and submit it again.</p>{{end}}
{{if .Failed}}<h2>Failed: {{.Counts.Failed}}</h2>
<table><thead><tr><th>Job</th><th>Object</th><th>Reason</th><th>Next step</th></tr></thead><tbody>
{{range first .Failed}}<tr><td>{{.Job}}</td><td>{{line .Title}} {{each .LocalIDs}}</td><td style="white-space:pre-line">{{text .Message}}</td><td>{{.Next}}</td></tr>
{{end}}</tbody></table>{{end}}
{{if .Completed}}<h2>Preserved: {{.Counts.Completed}}</h2>
<table><thead><tr><th>ARK</th><th>Version</th><th>Object</th><th>Warnings</th></tr></thead><tbody>
{{range first .Completed}}<tr><td>{{.ARK}}</td><td>{{change .}}</td><td>{{line .Title}} {{each .LocalIDs}}</td><td>{{if .Warnings}}{{warning .Warnings}}{{end}}</td></tr>
{{end}}</tbody></table>{{end}}
{{if .Counts.Open}}<p>Requeued while this report was made, and not listed here: {{.Counts.Open}}.</p>{{end}}
{{if .Cut}}<p>Only the first 50 of each kind are listed here.</p>{{end}}
{{if .Problem}}<p>{{listed .Counts}}</p><p>The report was not saved: {{text .Problem}}</p><p>To list the jobs: <code>archivist job list -b {{.Batch}}</code></p>
{{else if not .Message}}<p>{{where .Whole}} <code>archivist batch report {{.Batch}}</code>{{with .Link}}, <a href="{{.}}">{{.}}</a>{{end}}</p>{{end}}
<p>Batch {{.Batch}}, {{.At}}.</p>
`)
