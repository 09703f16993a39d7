// Package transfer copies files from their sources into the work bucket, and continues
// where an earlier try stopped.
//
// A file may be larger than what one try of a step can transfer, and every try may end at
// any moment. So after each part the state of the transfer is saved next to the file: its
// upload, its digests so far, and the validator that shows that the rest belongs to it.
// The next try, in another process, fetches at most one part again. Memory holds one part.
//
//	t := transfer.Transfer{Fetch: client, Work: work, Now: time.Now, Began: now, Until: deadline}
//	file, err := t.File(ctx, row, workspace.FileKey(job, 0), workspace.PartialKey(job, "000000"))
//	if errors.Is(err, fetch.ErrStop) { … } // the time is up: what was received is kept
package transfer

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"archivist/pkg/formats/checkm"
	"archivist/pkg/ingest/workspace"
	"archivist/pkg/kernel/bucket"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/fetch"
	"archivist/pkg/kernel/source"
	"archivist/pkg/objects/ocfl"
)

// Transfer transfers files within the time budget of one try.
type Transfer struct {
	Fetch *fetch.Client
	Work  workspace.Store
	Now   func() time.Time
	Began time.Time // of the time budget
	Until time.Time // its end
	First bool      // the job's first try: nothing can be there yet

	Algorithms []string // of digests that are computed beside that of the row; the same in each try

	Marked bool // the content has a mark at its end, as a manifest has, by which a cut is found

	// Partly, if set, is called for each file that was received in part: have is how many
	// of its bytes are there, size how many it has, -1 if the source does not report it.
	Partly func(row checkm.Row, have, size int64)
}

// mostStart is how many bytes of a file are kept as its beginning.
const mostStart = 1024

// File is a file that was transferred completely.
type File struct {
	Key  string // in the work bucket
	Sums *fetch.Digester
	// Encoding is how the source encoded the file although it was asked not to, or "".
	Encoding string

	text  ocfl.Text
	whole []byte
}

// Start is the beginning of a file that was received as a whole into memory; nil of a larger one, or of one of an
// earlier try.
func (f *File) Start() []byte { return f.whole[:min(len(f.whole), mostStart)] }

// Whole is the content of a file that was received as a whole into memory; nil of a larger one, or of one of an
// earlier try.
func (f *File) Whole() io.ReaderAt {
	if f.whole == nil {
		return nil
	}
	return bytes.NewReader(f.whole)
}

// Text opens the file's content.
func (f *File) Text() ocfl.Text { return f.text }

// File transfers the file of a row to a key of the work bucket. When the time is up, the
// state is saved at the key noted, and the error is a fetch.ErrStop. If an earlier try
// began with another key, the file is at that one. Errors of the source are an Invalid or an
// Unavailable; those of the work bucket have another kind, or none.
func (t *Transfer) File(ctx context.Context, row checkm.Row, key, noted string) (*File, error) {
	p, err := t.load(ctx, row, key, noted)
	if err != nil {
		return nil, err
	}

	// The try before ended between the last part and the end of the upload.
	if p.All {
		err = t.Work.Complete(ctx, p.Upload)
	} else {
		err = t.receive(ctx, p)
	}

	if err != nil {
		if t.Partly != nil {
			t.Partly(row, p.size(), p.Content.Size)
		}
		return nil, err
	}

	f := &File{Key: p.key, Sums: p.sums, Encoding: p.Content.Encoding}
	if p.Upload != nil {
		f.Key = p.Upload.Key
	}

	f.text = t.Work.Text(f.Key)
	if p.whole != nil {
		f.text, f.whole = workspace.InMemory(p.whole), p.whole
	}
	return f, nil
}

// TimeUp reports whether the time budget is spent.
func (t *Transfer) TimeUp() bool { return !t.Now().Before(t.Until) }

func (t *Transfer) digester(row checkm.Row) *fetch.Digester {
	return fetch.NewDigester(append([]string{row.Algorithm}, t.Algorithms...)...)
}

// load reads the state of an earlier try, if there is one. A size of -1 is not known.
func (t *Transfer) load(ctx context.Context, row checkm.Row, key, noted string) (*partial, error) {
	p := &partial{row: row, key: key, noted: noted, sums: t.digester(row), Content: fetch.Content{Size: -1}}
	if t.First {
		return p, nil
	}

	err := t.Work.GetJSON(ctx, noted, p)
	if fault.Is(err, fault.NotFound) {
		return p, nil
	}

	if err != nil {
		return nil, err
	}
	return p, p.sums.Restore(p.Digests)
}

// save saves the state of the transfer.
func (t *Transfer) save(ctx context.Context, p *partial) (err error) {
	p.Digests, err = p.sums.State()
	if err != nil {
		return err
	}
	return t.Work.PutJSON(ctx, p.noted, p, bucket.Condition{})
}

// receive fetches what is not there yet.
func (t *Transfer) receive(ctx context.Context, p *partial) error {
	have := func() fetch.Partial { return fetch.Partial{Offset: p.size(), Content: p.Content} }
	p.Most, p.since = max(p.Most, p.size()), t.Now()
	inTime, cancel := context.WithTimeout(ctx, t.Until.Sub(t.Now())) // a source that stalls must not hold the step
	defer cancel()
	err := t.Fetch.Get(inTime, p.row.URL, have, func(st fetch.Stream) error {
		p.ours = nil
		err := st.CheckEnd(t.Marked || p.row.Size >= 0 || p.row.Digest != "")
		if err == nil {
			err = t.stream(ctx, p, st)
		}
		if p.ours != nil {
			return fault.New(fault.Stale, "storage") // ends the tries: the source is not to blame
		}
		return err
	})

	switch {
	case p.ours != nil:
		return p.ours
	case err != nil && inTime.Err() != nil && fault.Is(err, fault.Unavailable):
		return t.late(ctx, p, err)
	}
	return err
}

// stream streams the response into the upload, part by part.
func (t *Transfer) stream(ctx context.Context, p *partial, st fetch.Stream) error {
	// The source begins anew: nothing is there yet, it ignores ranges, or its content is another
	// one.
	if st.From != p.size() || st.From == 0 {
		p.ours = t.restart(ctx, p)
		if p.ours != nil {
			return p.ours
		}
	}

	p.Content = st.Content
	var buf []byte
	for {
		if size := t.partSize(p, st.Size); len(buf) != size {
			buf = make([]byte, size)
		}

		n := copy(buf, p.Rest)
		m, err := fill(st, buf[n:])
		n += m
		last := err == io.EOF
		if err != nil && !last {
			p.Rest = buf[:n]
			return t.interrupted(ctx, p, err)
		}

		p.Rest = nil
		p.ours = t.part(ctx, p, buf[:n], last)
		if p.ours != nil || last {
			return p.ours
		}

		if t.TimeUp() {
			return fetch.ErrStop
		}
	}
}

// restart discards what is there of a file: the source sends it from its beginning.
func (t *Transfer) restart(ctx context.Context, p *partial) (err error) {
	if p.Upload != nil {
		err = t.Work.Abort(ctx, p.Upload)
	}
	p.Upload, p.sums, p.Rest = nil, t.digester(p.row), nil
	return err
}

// interrupted ends a response that broke off: the rest is requested if there is time.
func (t *Transfer) interrupted(ctx context.Context, p *partial, why error) error {
	if t.TimeUp() {
		return t.late(ctx, p, fmt.Errorf("%s: %w", from(p.row), why))
	}
	return why
}

// from is where a file comes from, for messages.
func from(row checkm.Row) string {
	if source.IsUpload(row.URL) {
		return fmt.Sprintf("the uploaded file %q", row.Name)
	}
	return fetch.Redact(row.URL)
}

// partSize is how many bytes make the next part of a file of a size, or of one whose
// size is not known (-1): its parts grow, since S3 allows only 10,000.
func (t *Transfer) partSize(p *partial, size int64) int {
	part := t.Work.Limits.PartSize(size)
	if size >= 0 {
		// One byte more than is left: the end of a small file is seen without another read.
		part = min(part, max(size-p.sums.Size, 0)+1)
	} else if p.Upload != nil {
		// Parts of 16 MiB, doubled each 2,000 parts, are 256 MiB in the end: 10,000 of them hold
		// 968 GiB.
		part <<= len(p.Upload.Parts) / 2000
	}
	return int(max(part, int64(len(p.Rest))+1))
}

// fill reads until the buffer is full. The error io.EOF is the end of the content;
// io.ErrUnexpectedEOF is a connection that was closed early.
func fill(r io.Reader, buf []byte) (n int, err error) {
	for n < len(buf) && err == nil {
		var m int
		m, err = r.Read(buf[n:])
		n += m
	}
	return n, err
}

// leastPart is the smallest part that S3 accepts, except for the last one.
const leastPart = 5 << 20

// late ends a try whose time is up before or in the middle of a part. What was received is
// kept. A try that had most of the time budget and made no progress compared to those
// before is an error with its cause.
func (t *Transfer) late(ctx context.Context, p *partial, cause error) error {
	data := p.Rest
	// S3 accepts it as a part of its own; a shorter rest is kept with the state.
	if len(data) >= leastPart {
		p.Rest = nil
		p.ours = t.part(ctx, p, data, false)
	}

	further := p.size() > p.Most
	if p.ours == nil && further {
		p.Most = p.size()
		p.ours = t.save(ctx, p)
	}

	if p.ours != nil {
		return p.ours
	}

	budget := t.Until.Sub(t.Began)
	// A try that had less time says nothing about the source.
	if !further && t.Until.Sub(p.since) > budget/2 {
		p.ours = fmt.Errorf("the source is too slow for a try of %s: %v", budget.Round(time.Second), cause)
		return p.ours
	}

	return fetch.ErrStop
}

// part stores the next bytes. What fits into one part needs no upload in parts.
func (t *Transfer) part(ctx context.Context, p *partial, data []byte, last bool) (err error) {
	if last && p.Upload == nil {
		_, _ = p.sums.Write(data) // a digester never fails
		p.whole = data
		return t.Work.Put(ctx, p.key, data, bucket.Condition{})
	}

	if p.Upload == nil {
		p.Upload, err = t.Work.Begin(ctx, p.key)
		if err != nil {
			return err
		}
	}

	if len(data) > 0 {
		err := t.Work.Add(ctx, p.Upload, data)
		if fault.Is(err, fault.NotFound) { // it was removed as too old: the next try starts over
			return errors.Join(err, t.Work.Delete(ctx, p.noted))
		}
		if err != nil {
			return err
		}
		_, _ = p.sums.Write(data)
	}

	p.All = last
	if err := t.save(ctx, p); err != nil || !last {
		return err
	}
	return t.Work.Complete(ctx, p.Upload)
}
