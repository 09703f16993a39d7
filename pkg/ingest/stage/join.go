package stage

import (
	"context"
	"encoding/json"
	"io"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"archivist/pkg/ingest"
	"archivist/pkg/ingest/notify"
	"archivist/pkg/ingest/workspace"
	"archivist/pkg/kernel/bucket"
	"archivist/pkg/kernel/fetch"
)

// readPage reads page n of a report in progress.
type readPage func(n int) (reportPage, error)

// joiner writes a report as a stream, one list after the other, and keeps the part that a
// mail shows. It holds one page in memory at a time.
type joiner struct {
	summary notify.Report
	enc     *jsontext.Encoder
	read    readPage
	pages   int
	has     []map[string]bool // the lists for which a page has lines, once it is read
	changes notify.Changes    // since the earlier report
	shown   map[notify.Change]int
}

// join writes the pages of a batch's report as one JSON document. If that is too large to
// be attached to a mail, it also writes the part that mails show. It returns what has changed
// since the earlier report.
func (m *reporting) join(ctx context.Context, read readPage) (notify.Counts, notify.Changes, error) {
	out := m.Work.Writer(ctx, workspace.ReportKey(m.batch.ID, m.number), bucket.Condition{})
	size := &counter{Writer: out}
	j := &joiner{
		summary: m.begin(),
		enc:     jsontext.NewEncoder(size),
		read:    read,
		pages:   m.pages,
		shown:   map[notify.Change]int{},
	}

	j.has = make([]map[string]bool, m.pages)
	if err := j.write(); err != nil {
		_ = out.Abort()
		return j.summary.Counts, j.changes, err
	}

	// Before the report itself exists, so that a mail never finds a large one without its summary.
	if size.n > notify.MaxAttached {
		err := m.Work.PutJSON(ctx, workspace.SummaryKey(m.batch.ID, m.number), j.summary,
			bucket.Condition{})
		if err != nil {
			_ = out.Abort()
			return j.summary.Counts, j.changes, err
		}
	}

	return j.summary.Counts, j.changes, out.Close()
}

// begin begins a report. Its time is when the batch reached its state, so that a
// second try makes the same report. All that is not from the pages is from the batch's row.
func (m *reporting) begin() notify.Report {
	report := notify.NewReport(m.batch.ID, m.batch.Collection, m.batch.Note,
		ingest.Timestamp(m.batch.Entered))
	report.Number, report.Warnings, report.Incomplete = m.number, m.batch.AllWarnings(),
		m.batch.CutShort()
	report.Callback = fetch.Redact(m.batch.Callback)
	if m.earlier != nil {
		report.Since, report.Changes = m.earlier.At, &notify.Changes{}
	}
	return report
}

// write writes the report as notify.Report has it, in the same order, but for the counts, which are
// known at its end.
func (j *joiner) write() error {
	if err := j.enc.WriteToken(jsontext.BeginObject); err != nil {
		return err
	}

	r := &j.summary
	for _, f := range []struct {
		name  string
		value any
		omit  bool
	}{{"batch", r.Batch, false}, {"collection", r.Collection, false}, {"note", r.Note, false},
		{"at", r.At, false},
		{"number", r.Number, false}, {"since", r.Since, r.Since == ""},
		{"incomplete", r.Incomplete, r.Incomplete == ""},
		{"callback", r.Callback, r.Callback == ""}, {"warnings", r.Warnings, len(r.Warnings) == 0}} {
		if f.omit {
			continue
		}
		if err := j.member(f.name, f.value); err != nil {
			return err
		}
	}

	for _, l := range []reportList{
		{"failed", func(p reportPage) lines { return p.Failed }, &r.Failed, &r.Counts.Failed},
		{"cancelled", func(p reportPage) lines { return p.Cancelled }, &r.Cancelled,
			&r.Counts.Cancelled},
		{"completed", func(p reportPage) lines { return p.Completed }, &r.Completed,
			&r.Counts.Completed},
		{"deleted", func(p reportPage) lines { return p.Deleted }, &r.Deleted, &r.Counts.Deleted},
		{"open", func(p reportPage) lines { return p.Open }, &r.Open, &r.Counts.Open},
	} {
		if err := j.list(l); err != nil {
			return err
		}
	}

	if r.Changes != nil {
		*r.Changes = j.changes
		if err := j.member("changes", r.Changes); err != nil {
			return err
		}
	}

	if err := j.member("counts", r.Counts); err != nil {
		return err
	}
	return j.enc.WriteToken(jsontext.EndObject)
}

// member writes a member of the report.
func (j *joiner) member(name string, value any) error {
	if err := j.enc.WriteToken(jsontext.String(name)); err != nil {
		return err
	}
	return jsonv2.MarshalEncode(j.enc, value)
}

// lines are those of a page as they were saved: they are copied, not read.
type lines = []json.RawMessage

// reportList is one list of a report: its lines of a page, the first of them as jobs
// for mails, and how many there are.
type reportList struct {
	name string
	of   func(reportPage) lines
	show *[]notify.Job
	n    *int
}

// list writes one list from the pages that have lines for it; writing the first list finds
// out which pages do.
func (j *joiner) list(l reportList) error {
	if err := j.enc.WriteToken(jsontext.String(l.name)); err != nil {
		return err
	}

	if err := j.enc.WriteToken(jsontext.BeginArray); err != nil {
		return err
	}

	for i := range j.pages {
		if j.has[i] != nil && !j.has[i][l.name] {
			continue
		}

		p, err := j.read(i)
		if err != nil {
			return err
		}

		// Each page is counted when it is read for the first time, and only then.
		if j.has[i] == nil {
			j.changes.Add(p.Changes)
		}

		j.has[i] = map[string]bool{"cancelled": len(p.Cancelled) > 0, "completed": len(p.Completed) > 0,
			"deleted": len(p.Deleted) > 0, "open": len(p.Open) > 0}
		if err := j.lines(l, p); err != nil {
			return err
		}
	}

	return j.enc.WriteToken(jsontext.EndArray)
}

// lines writes the lines of a page in a list.
func (j *joiner) lines(l reportList, p reportPage) error {
	all := l.of(p)
	for _, line := range all {
		if err := j.enc.WriteValue(jsontext.Value(line)); err != nil {
			return err
		}
		if err := j.keep(l, p, line); err != nil {
			return err
		}
	}

	*l.n += len(all)
	return nil
}

// keep adds a line, without its files, to those that a mail shows: the first of each list.
// Of a report of what has changed, it is the first lines of each change.
func (j *joiner) keep(l reportList, p reportPage, line json.RawMessage) error {
	update := j.summary.Changes != nil
	if update && p.Changes == (notify.Changes{}) || !update && len(*l.show) >= notify.Shown {
		return nil
	}

	var job notify.Job
	if err := json.Unmarshal(line, &job); err != nil {
		return err
	}

	if update && (job.Change == "" || j.shown[job.Change] >= notify.Shown) {
		return nil
	}

	j.shown[job.Change]++
	job.FileDetails = nil
	*l.show = append(*l.show, job)
	return nil
}

// counter counts the bytes that are written.
type counter struct {
	io.Writer
	n int64
}

func (c *counter) Write(p []byte) (int, error) {
	n, err := c.Writer.Write(p)
	c.n += int64(n)
	return n, err
}
