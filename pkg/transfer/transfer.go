// Package transfer brings files from their sources into the work bucket, and goes on
// where an earlier try stopped.
//
// A file may be larger than what one try of a step can bring, and every try may end at
// any moment. So after each part the state of the transfer is saved beside the file:
// its upload, its digests so far, and by what the rest is known to belong to it. The
// next try, in another process, fetches at most one part again. Memory holds one part.
//
//	t := transfer.Transfer{Fetch: client, Work: work, Now: time.Now, Began: now, Until: deadline}
//	file, err := t.File(ctx, row, workspace.FileKey(job, 0), workspace.PartialKey(job, "000000"))
//	if errors.Is(err, fetch.ErrStop) { … } // the time is up: what came is kept
package transfer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"archivist/pkg/bucket"
	"archivist/pkg/checkm"
	"archivist/pkg/fault"
	"archivist/pkg/fetch"
	"archivist/pkg/ocfl"
	"archivist/pkg/workspace"
)

// Transfer brings files within the time budget of one try.
type Transfer struct {
	Fetch *fetch.Client
	Work  workspace.Store
	Now   func() time.Time
	Began time.Time // of the time budget
	Until time.Time // its end
	First bool      // the job's first try: nothing can be there yet

	// Partly hears of each file that did not come as a whole: how many of its bytes are
	// there. size is -1 if the source does not say it. nil: nobody hears of it.
	Partly func(row checkm.Row, have, size int64)
}

// File is a file that was brought as a whole.
type File struct {
	Key  string // in the work bucket
	Sums *fetch.Digester
	// Encoding is how the source encoded the file although it was asked not to, or "".
	Encoding string

	text ocfl.Text
}

// Text opens the file's content.
func (f *File) Text() ocfl.Text { return f.text }

// File brings the file of a row to a key of the work bucket. What is there when the
// time is up is noted at a key of its own; then the error is a fetch.ErrStop. If an
// earlier try began at another key, the file is there.
func (t *Transfer) File(ctx context.Context, row checkm.Row, key, noted string) (*File, error) {
	p, err := t.load(ctx, row, key, noted)
	if err != nil {
		return nil, err
	}
	if p.All {
		err = t.Work.Complete(ctx, p.Upload)
	} else {
		err = t.receive(ctx, p)
	}
	if err != nil {
		if t.Partly != nil {
			t.Partly(row, p.size(), p.total)
		}
		return nil, err
	}

	f := &File{Key: p.key, Sums: p.sums, Encoding: p.Encoding}
	if p.Upload != nil {
		f.Key = p.Upload.Key
	}

	f.text = t.Work.Text(f.Key)
	if p.whole != nil {
		f.text = workspace.InMemory(p.whole)
	}
	return f, nil
}

// TimeUp reports whether the time budget is spent.
func (t *Transfer) TimeUp() bool { return !t.Now().Before(t.Until) }

// receive fetches what is not there yet.
func (t *Transfer) receive(ctx context.Context, p *partial) error {
	have := func() fetch.Partial { return fetch.Partial{Offset: p.size(), Validator: p.Validator} }
	p.Most, p.since = max(p.Most, p.size()), t.Now()
	inTime, cancel := context.WithTimeout(ctx, t.Until.Sub(t.Now())) // a source that stalls must not hold the step
	defer cancel()
	err := t.Fetch.Get(inTime, p.row.URL, have, func(st fetch.Stream) error {
		p.ours = nil
		err := t.take(ctx, p, st)
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

// take streams what comes into the upload, part by part.
func (t *Transfer) take(ctx context.Context, p *partial, st fetch.Stream) error {
	if st.From != p.size() || st.From == 0 {
		p.ours = t.beginAgain(ctx, p)
		if p.ours != nil {
			return p.ours
		}
	}

	p.Validator, p.Encoding, p.total = st.Validator, st.Encoding, st.Size
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
			return t.cut(ctx, p, err)
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

// beginAgain forgets what is there of a file that comes from its beginning.
func (t *Transfer) beginAgain(ctx context.Context, p *partial) (err error) {
	if p.Upload != nil {
		err = t.Work.Abort(ctx, p.Upload)
	}
	p.Upload, p.sums, p.Rest = nil, newSums(p.row), nil
	return err
}

// cut ends a response that broke off: the source is asked for the rest if there is time.
func (t *Transfer) cut(ctx context.Context, p *partial, why error) error {
	if t.TimeUp() {
		return t.late(ctx, p, fmt.Errorf("%s: %w", fetch.Redact(p.row.URL), why))
	}
	return why
}

// partSize is how many bytes make the next part of a file of a size, or of one whose
// size is not known (-1): its parts grow, since S3 takes 10,000 only.
func (t *Transfer) partSize(p *partial, size int64) int {
	part := t.Work.Limits.PartSize(size)
	if size >= 0 {
		part = min(part, max(size-p.sums.Size, 0)+1)
	} else if p.Upload != nil {
		part <<= len(p.Upload.Parts) / 2000
	}
	return int(max(part, int64(len(p.Rest))+1))
}

// fill reads until the buffer is full. The error io.EOF is the end of the content;
// io.ErrUnexpectedEOF is a connection that was cut.
func fill(r io.Reader, buf []byte) (n int, err error) {
	for n < len(buf) && err == nil {
		var m int
		m, err = r.Read(buf[n:])
		n += m
	}
	return n, err
}

// leastPart is the least that S3 takes as a part which is not the last.
const leastPart = 5 << 20

// late ends a try whose time is up before or in the middle of a part. What came is
// kept. A try that had most of the time budget for itself and did not get further
// than one before is no progress, and says so with its cause.
func (t *Transfer) late(ctx context.Context, p *partial, cause error) error {
	data := p.Rest
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
	if !further && t.Until.Sub(p.since) > budget/2 {
		p.ours = fmt.Errorf("the source is too slow for a try of %s: %v", budget.Round(time.Second), cause)
		return p.ours
	}

	return fetch.ErrStop
}

// part stores the next bytes. What fits into one part needs no upload in parts.
func (t *Transfer) part(ctx context.Context, p *partial, data []byte, last bool) (err error) {
	if last && p.Upload == nil {
		_, _ = p.sums.Write(data) // a digester takes everything
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
		if fault.Is(err, fault.NotFound) { // it was cleaned away as too old: the next try begins anew
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
