package stage

import (
	"context"
	"encoding/json"
	"io"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"archivist/pkg/bucket"
	"archivist/pkg/ingest"
	"archivist/pkg/notify"
	"archivist/pkg/workspace"
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
}

// join writes the pages of a batch's report as one JSON document. If that is too large to
// be attached to a mail, it also writes the part that mails show.
func (r Report) join(ctx context.Context, b *ingest.Batch, pages int, read readPage) error {
	out := r.Work.Writer(ctx, workspace.ReportKey(b.ID), bucket.Condition{})
	size := &counter{Writer: out}
	j := &joiner{summary: newReport(b), enc: jsontext.NewEncoder(size), read: read, pages: pages}
	j.has = make([]map[string]bool, pages)
	if err := j.write(); err != nil {
		_ = out.Abort()
		return err
	}
	if size.n > notify.MaxAttached {
		if err := r.Work.PutJSON(ctx, workspace.SummaryKey(b.ID), j.summary, bucket.Condition{}); err != nil {
			_ = out.Abort()
			return err
		}
	}

	return out.Close()
}

// newReport begins a report. Its time is when the batch reached its state, so that a
// second try makes the same report.
func newReport(b *ingest.Batch) notify.Report {
	report := notify.NewReport(b.ID, b.Collection, b.Note, ingest.Timestamp(b.Entered))
	report.Warnings = b.Warnings
	return report
}

func (j *joiner) write() error {
	if err := j.enc.WriteToken(jsontext.BeginObject); err != nil {
		return err
	}

	r := &j.summary
	for _, f := range [][2]string{{"batch", r.Batch}, {"collection", r.Collection}, {"note", r.Note}, {"at", r.At}} {
		if err := j.member(f[0], f[1]); err != nil {
			return err
		}
	}

	if len(r.Warnings) > 0 {
		if err := j.member("warnings", r.Warnings); err != nil {
			return err
		}
	}
	for _, l := range []reportList{
		{"failed", func(p reportPage) lines { return p.Failed }, &r.Failed, &r.Counts.Failed},
		{"completed", func(p reportPage) lines { return p.Completed }, &r.Completed, &r.Counts.Completed},
		{"open", func(p reportPage) lines { return p.Open }, &r.Open, &r.Counts.Open},
	} {
		if err := j.list(l); err != nil {
			return err
		}
	}
	if err := j.member("counts", r.Counts); err != nil {
		return err
	}
	return j.enc.WriteToken(jsontext.EndObject)
}

func (j *joiner) member(name string, value any) error {
	if err := j.enc.WriteToken(jsontext.String(name)); err != nil {
		return err
	}
	return jsonv2.MarshalEncode(j.enc, value)
}

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
		j.has[i] = map[string]bool{"completed": len(p.Completed) > 0, "open": len(p.Open) > 0}
		if err := j.lines(l, l.of(p)); err != nil {
			return err
		}
	}

	return j.enc.WriteToken(jsontext.EndArray)
}

func (j *joiner) lines(l reportList, all lines) error {
	for _, line := range all {
		if err := j.enc.WriteValue(jsontext.Value(line)); err != nil {
			return err
		}
		if len(*l.show) < notify.Shown {
			if err := keep(l.show, line); err != nil {
				return err
			}
		}
	}

	*l.n += len(all)
	return nil
}

// keep adds a line, without its files, to those that a mail shows.
func keep(show *[]notify.Job, line json.RawMessage) error {
	var job notify.Job
	if err := json.Unmarshal(line, &job); err != nil {
		return err
	}
	job.FileDetails = nil
	*show = append(*show, job)
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
