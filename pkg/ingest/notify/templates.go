package notify

import (
	"bytes"
	"embed"
	htmltemplate "html/template"
	"strings"
	texttemplate "text/template"
)

// files are the mails, by name and form: report.txt and report.html, update.txt and
// update.html, queued.txt and queued.html, delayed.txt and delayed.html.
//
//go:embed templates
var files embed.FS

// functions are those of the templates. In a mail of plain text, every text of a depositor
// passes through one of them.
var functions = map[string]any{
	"first":    func(jobs []Job) []Job { return jobs[:min(len(jobs), Shown)] },
	"shown":    func() int { return Shown },
	"line":     line,
	"lines":    lines,
	"object":   object,
	"change":   change,
	"warnings": warnings,
	"gone":     gone,
	"upper":    func(c Change) string { return strings.ToUpper(string(c)) },
	"title":    func(c Change) string { return strings.ToUpper(string(c[:1])) + string(c[1:]) },
}

// plain and rich are parsed when the process starts: a template with a mistake stops it at once.
var (
	plain = texttemplate.Must(texttemplate.New("").Funcs(functions).ParseFS(files,
		"templates/*.txt"))
	rich = htmltemplate.Must(htmltemplate.New("").Funcs(functions).ParseFS(files,
		"templates/*.html"))
)

// fill makes a mail's text in both forms.
func (m *Mail) fill(name string, data any) error {
	var text, html bytes.Buffer
	if err := plain.ExecuteTemplate(&text, name+".txt", data); err != nil {
		return err
	}
	if err := rich.ExecuteTemplate(&html, name+".html", data); err != nil {
		return err
	}
	m.Text, m.HTML = text.String(), html.String()
	return nil
}

// Shown is how many jobs of a kind a mail lists.
const Shown = 50
