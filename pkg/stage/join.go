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
)

// joiner writes a report as a stream, one list after the other, and keeps what a
// mail shows of it. It holds one page at a time.
type joiner struct {
	summary notify.Report
	enc     *jsontext.Encoder
	read    func(n int) (reportPage, error)
	pages   int
	has     []notify.Counts // of each page, once it was read
}

// joinReport writes the pages of a batch's report as one JSON document, and beside
// it the part that mails show if the whole is too large to be attached.
func (s *Stages) joinReport(ctx context.Context, b *ingest.Batch, pages int, read func(n int) (reportPage, error)) error {
	out := s.Work.Writer(ctx, ReportKey(b.ID), bucket.Condition{})
	size := &counter{Writer: out}
	j := &joiner{summary: reportOf(b), enc: jsontext.NewEncoder(size), read: read, pages: pages, has: make([]notify.Counts, pages)}
	if err := j.write(); err != nil {
		_ = out.Abort()
		return err
	}
	if size.n > notify.MaxAttached {
		if err := s.putJSON(ctx, summaryKey(b.ID), j.summary, bucket.Condition{}); err != nil {
			_ = out.Abort()
			return err
		}
	}
	return out.Close()
}

func (j *joiner) write() error {
	if err := j.enc.WriteToken(jsontext.BeginObject); err != nil {
		return err
	}
	r := &j.summary
	for _, f := range []struct{ name, value string }{{"batch", r.Batch}, {"collection", r.Collection}, {"note", r.Note}, {"at", r.At}} {
		if err := j.member(f.name, f.value); err != nil {
			return err
		}
	}
	for _, l := range []struct {
		name string
		of   func(p *reportPage) []json.RawMessage
		n    func(c *notify.Counts) *int
		show *[]notify.Job
	}{
		{"failed", func(p *reportPage) []json.RawMessage { return p.Failed }, func(c *notify.Counts) *int { return &c.Failed }, &r.Failed},
		{"completed", func(p *reportPage) []json.RawMessage { return p.Completed }, func(c *notify.Counts) *int { return &c.Completed }, &r.Completed},
		{"open", func(p *reportPage) []json.RawMessage { return p.Open }, func(c *notify.Counts) *int { return &c.Open }, &r.Open},
	} {
		n, err := j.list(l.name, l.of, l.n, l.show)
		if err != nil {
			return err
		}
		*l.n(&r.Counts) = n
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

// list writes one list from all pages; the first list finds out which pages have
// something for the others.
func (j *joiner) list(name string, of func(*reportPage) []json.RawMessage, n func(*notify.Counts) *int, show *[]notify.Job) (sum int, err error) {
	if err := j.enc.WriteToken(jsontext.String(name)); err != nil {
		return 0, err
	}
	if err := j.enc.WriteToken(jsontext.BeginArray); err != nil {
		return 0, err
	}
	for i := range j.pages {
		if name != "failed" && *n(&j.has[i]) == 0 {
			continue
		}
		p, err := j.read(i)
		if err != nil {
			return 0, err
		}
		j.has[i] = notify.Counts{Failed: len(p.Failed), Completed: len(p.Completed), Open: len(p.Open)}
		for _, line := range of(&p) {
			if err := j.enc.WriteValue(jsontext.Value(line)); err != nil {
				return 0, err
			}
			if len(*show) < notify.Shown {
				if err := keep(show, line); err != nil {
					return 0, err
				}
			}
		}
		sum += len(of(&p))
	}
	return sum, j.enc.WriteToken(jsontext.EndArray)
}

// keep adds a line to those that a mail shows, without its files.
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
