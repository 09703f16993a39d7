// Package notify tells depositors by mail how their submissions ended.
package notify

import (
	"bytes"
	"encoding/json"
	"fmt"
	"html/template"
	"time"

	"github.com/wneessen/go-mail"
)

// Report is what a depositor hears of a batch. It is saved on the batch.
type Report struct {
	Batch      string         `json:"batch"`
	Collection string         `json:"collection"`
	Note       string         `json:"note,omitempty"`
	At         string         `json:"at"`
	Message    string         `json:"message,omitempty"` // why no job was made
	Completed  []Job          `json:"completed"`
	Failed     []Job          `json:"failed"`
	Open       []Job          `json:"open,omitempty"` // requeued while the report was made
	Counts     map[string]int `json:"counts"`
}

// Job is one job's line of a report.
type Job struct {
	Job         string   `json:"job"`
	Source      string   `json:"source,omitempty"` // redacted
	ARK         string   `json:"ark,omitempty"`
	Version     int      `json:"version,omitempty"`
	NoChange    bool     `json:"noChange,omitempty"`
	LocalIDs    []string `json:"localIds,omitempty"`
	Title       string   `json:"title,omitempty"`
	Files       int      `json:"files,omitempty"`
	Bytes       int64    `json:"bytes,omitempty"`
	Message     string   `json:"message,omitempty"`
	Recoverable bool     `json:"recoverable,omitempty"`
}

// Mail is a message to be sent. ID is stable: a message that comes twice has
// the same one, and readers show it once.
type Mail struct {
	ID      string
	From    string
	To      []string
	Subject string
	Text    string
	HTML    string
	Attach  map[string][]byte
}

// MaxAttached bounds attachments in bytes: SES takes 10 MB after base64.
const MaxAttached = 5 << 20

// Encode returns the message in MIME form.
func (m Mail) Encode(now time.Time) ([]byte, error) {
	msg := mail.NewMsg()
	if err := msg.From(m.From); err != nil {
		return nil, fmt.Errorf("notify: from %q: %w", m.From, err)
	}
	if err := msg.To(m.To...); err != nil {
		return nil, fmt.Errorf("notify: to %q: %w", m.To, err)
	}
	msg.Subject(m.Subject)
	msg.SetMessageIDWithValue(m.ID)
	msg.SetDateWithValue(now)
	msg.SetBodyString(mail.TypeTextPlain, m.Text)
	msg.AddAlternativeString(mail.TypeTextHTML, m.HTML)
	for _, name := range []string{"completed.json", "failed.json"} {
		if data, ok := m.Attach[name]; ok {
			if err := msg.AttachReader(name, bytes.NewReader(data), mail.WithFileContentType("application/json")); err != nil {
				return nil, fmt.Errorf("notify: attach %s: %w", name, err)
			}
		}
	}
	var b bytes.Buffer
	_, err := msg.WriteTo(&b)
	return b.Bytes(), err
}

// shown is how many jobs of a kind the text lists; all are attached.
const shown = 50

var text = template.Must(template.New("report").Funcs(template.FuncMap{"first": first}).Parse(reportHTML))

func first(jobs []Job) []Job { return jobs[:min(len(jobs), shown)] }

// ForReport composes the mail of a report. link is where the whole report can
// be read, for when it is too large to attach.
func ForReport(r Report, from string, to []string, link string) (Mail, error) {
	m := Mail{ID: r.Batch + "." + r.At + "@archivist", From: from, To: to, Subject: subject(r), Attach: map[string][]byte{}}
	size := 0
	for name, jobs := range map[string][]Job{"completed.json": r.Completed, "failed.json": r.Failed} {
		data, err := json.MarshalIndent(jobs, "", "  ")
		if err != nil {
			return m, err
		}
		size += len(data)
		m.Attach[name] = data
	}
	linked := ""
	if size > MaxAttached {
		m.Attach, linked = nil, link
	}
	m.Text = plain(r, linked)
	var b bytes.Buffer
	if err := text.Execute(&b, struct {
		Report
		Subject, Link string
	}{r, m.Subject, linked}); err != nil {
		return m, err
	}
	m.HTML = b.String()
	return m, nil
}

// Queued is what a depositor hears when a submission was understood.
type Queued struct {
	Batch, Collection, Note, At string
	Objects                     int
}

// ForQueued composes the mail that a submission waits for its turn.
func ForQueued(q Queued, from string, to []string) (Mail, error) {
	m := Mail{ID: q.Batch + ".queued@archivist", From: from, To: to, Subject: fmt.Sprintf("%d objects queued: %s to %s", q.Objects, q.Batch, q.Collection)}
	note := ""
	if q.Note != "" {
		note = "Note: " + q.Note + "\n\n"
	}
	m.Text = fmt.Sprintf("%s\n\n%sThe submission of %s was understood and waits for its turn. A report follows when all of it has ended.\n\nThis message may come twice; then it has the same id.\n", m.Subject, note, q.At)
	var b bytes.Buffer
	err := queuedHTML.Execute(&b, struct {
		Queued
		Subject string
	}{q, m.Subject})
	m.HTML = b.String()
	return m, err
}

var queuedHTML = template.Must(template.New("queued").Parse(`<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{{.Subject}}</title></head>
<body><h1>{{.Subject}}</h1>
{{with .Note}}<p>Note: {{.}}</p>{{end}}
<p>The submission of {{.At}} was understood and waits for its turn. A report follows when all of it has ended.</p>
<p>This message may come twice; then it has the same id.</p></body></html>
`))

func subject(r Report) string {
	switch {
	case r.Message != "":
		return fmt.Sprintf("Submission failed: %s to %s", r.Batch, r.Collection)
	case len(r.Failed) > 0:
		return fmt.Sprintf("%d of %d objects failed: %s to %s", len(r.Failed), len(r.Failed)+len(r.Completed)+len(r.Open), r.Batch, r.Collection)
	}
	return fmt.Sprintf("%d objects preserved: %s to %s", len(r.Completed), r.Batch, r.Collection)
}

func plain(r Report, link string) string {
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s\n\n", subject(r))
	if r.Note != "" {
		fmt.Fprintf(&b, "Note: %s\n\n", r.Note)
	}
	if r.Message != "" {
		fmt.Fprintf(&b, "%s\n\nNothing was taken in. Mend the submission and submit it again.\n", r.Message)
	}
	for _, j := range first(r.Failed) {
		next := "A new submission is needed."
		if j.Recoverable {
			next = "It can be requeued once the cause is mended."
		}
		fmt.Fprintf(&b, "FAILED %s %s %v\n  %s\n  %s\n", j.Job, j.Title, j.LocalIDs, j.Message, next)
	}
	for _, j := range first(r.Completed) {
		change := fmt.Sprintf("version %d, %d files, %d bytes", j.Version, j.Files, j.Bytes)
		if j.NoChange {
			change = fmt.Sprintf("no change, still version %d", j.Version)
		}
		fmt.Fprintf(&b, "PRESERVED %s %s %v\n  %s\n", j.ARK, j.Title, j.LocalIDs, change)
	}
	if len(r.Failed) > shown || len(r.Completed) > shown {
		fmt.Fprintf(&b, "\nOnly the first %d of each kind are listed here.\n", shown)
	}
	if link != "" {
		fmt.Fprintf(&b, "\nThe whole report is too large for a mail. It can be read for 7 days at\n%s\n", link)
	}
	fmt.Fprintf(&b, "\nThis message may come twice; then it has the same id. Batch %s, %s.\n", r.Batch, r.At)
	return b.String()
}

const reportHTML = `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{{.Subject}}</title></head>
<body>
<h1>{{.Subject}}</h1>
{{with .Note}}<p>Note: {{.}}</p>{{end}}
{{with .Message}}<p><strong>{{.}}</strong></p><p>Nothing was taken in. Mend the submission and submit it again.</p>{{end}}
{{if .Failed}}<h2>Failed: {{len .Failed}}</h2>
<table><thead><tr><th>Job</th><th>Object</th><th>What is wrong</th><th>What to do</th></tr></thead><tbody>
{{range first .Failed}}<tr><td>{{.Job}}</td><td>{{.Title}} {{range .LocalIDs}}{{.}} {{end}}</td><td>{{.Message}}</td><td>{{if .Recoverable}}Mend the cause and requeue it{{else}}Submit anew{{end}}</td></tr>
{{end}}</tbody></table>{{end}}
{{if .Completed}}<h2>Preserved: {{len .Completed}}</h2>
<table><thead><tr><th>ARK</th><th>Version</th><th>Object</th><th>Files</th><th>Bytes</th></tr></thead><tbody>
{{range first .Completed}}<tr><td>{{.ARK}}</td><td>{{.Version}}{{if .NoChange}} (no change){{end}}</td><td>{{.Title}} {{range .LocalIDs}}{{.}} {{end}}</td><td>{{.Files}}</td><td>{{.Bytes}}</td></tr>
{{end}}</tbody></table>{{end}}
{{with .Link}}<p>The whole report is too large for a mail. <a href="{{.}}">It can be read here for 7 days.</a></p>{{end}}
<p>This message may come twice; then it has the same id. Batch {{.Batch}}, {{.At}}.</p>
</body></html>
`
