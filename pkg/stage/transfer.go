package stage

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"

	"archivist/pkg/bucket"
	"archivist/pkg/checkm"
	"archivist/pkg/fault"
	"archivist/pkg/fetch"
)

// partial is a file that is not all there yet: its upload, its digests so far, and
// by what the rest is known to belong to it. It is saved after each part, so that
// another process fetches at most one part again.
type partial struct {
	Upload    *bucket.Upload `json:"upload,omitempty"`
	Digests   fetch.State    `json:"digests"`
	Validator string         `json:"validator"`
	All       bool           `json:"all,omitempty"`  // every part is there
	Rest      []byte         `json:"rest,omitempty"` // bytes received after the last part
	Most      int64          `json:"most,omitempty"` // bytes that ever were there: only more is progress

	key   string
	whole []byte    // the file itself, if this try fetched it at once
	since time.Time // when this try began
	sums  *fetch.Digester
	ours  error // a failure of the work bucket, not of the source
}

// fetch brings one file to a key of the work bucket in constant memory, with its
// digests. It stops with fetch.ErrStop when the time budget is spent;
// what is there by then is noted at a key of its own.
func (d *transfer) fetch(ctx context.Context, key, noted string, row checkm.Row) (*partial, error) {
	h, err := d.loadHalf(ctx, noted, row)
	if err != nil {
		return nil, err
	}
	if h.All {
		return h, d.s.Work.Complete(ctx, h.Upload)
	}
	have := func() fetch.Partial { return fetch.Partial{Offset: h.size(), Validator: h.Validator} }
	h.Most, h.since = max(h.Most, h.size()), d.s.Now()
	inTime, cancel := context.WithTimeout(ctx, d.until.Sub(d.s.Now())) // a source that stalls must not hold the step
	defer cancel()
	err = d.s.Fetch.Get(inTime, row.URL, have, func(st fetch.Stream) error {
		h.ours = nil
		err := d.take(ctx, h, key, row, st)
		if h.ours != nil {
			return fault.New(fault.Stale, "storage") // ends the tries: the source is not to blame
		}
		return err
	})
	switch {
	case h.ours != nil:
		return nil, h.ours
	case err != nil && inTime.Err() != nil && fault.Is(err, fault.Unavailable):
		return nil, d.late(ctx, h, key, err)
	}
	return h, err
}

// size is how many bytes are there.
func (h *partial) size() int64 { return h.sums.Size + int64(len(h.Rest)) }

func newSums(row checkm.Row) *fetch.Digester { return fetch.NewDigester(row.Algorithm) }

func (d *transfer) loadHalf(ctx context.Context, key string, row checkm.Row) (*partial, error) {
	h := &partial{key: key, sums: newSums(row)}
	if d.first {
		return h, nil
	}
	err := d.s.Work.GetJSON(ctx, key, h)
	if fault.Is(err, fault.NotFound) {
		return h, nil
	}
	if err != nil {
		return nil, err
	}
	return h, h.sums.Restore(h.Digests)
}

// take streams what comes into the upload, part by part.
func (d *transfer) take(ctx context.Context, h *partial, key string, row checkm.Row, st fetch.Stream) error {
	if st.From != h.size() || st.From == 0 {
		if h.Upload != nil {
			h.ours = d.s.Work.Abort(ctx, h.Upload)
		}
		h.Upload, h.sums, h.Rest = nil, newSums(row), nil
	}
	if h.ours != nil {
		return h.ours
	}
	h.Validator = st.Validator
	var buf []byte
	for {
		if size := d.partSize(h, st.Size); len(buf) != size {
			buf = make([]byte, size)
		}
		n := copy(buf, h.Rest)
		m, err := fill(st, buf[n:])
		n += m
		whole := err == io.EOF
		if whole && st.Size >= 0 && h.sums.Size+int64(n) != st.Size {
			err, whole = io.ErrUnexpectedEOF, false
		}
		if err != nil && !whole {
			h.Rest = buf[:n]
			err = &partialError{h.size(), st.Size, fetch.Host(row.URL), err}
			if !d.s.Now().Before(d.until) {
				return d.late(ctx, h, key, err)
			}
			return err
		}
		h.Rest = nil
		if h.ours = d.part(ctx, h, key, buf[:n], whole); h.ours != nil || whole {
			return h.ours
		}
		if !d.s.Now().Before(d.until) {
			return fetch.ErrStop
		}
	}
}

// partSize is how many bytes make the next part of a file of a size, or of one whose
// size is not known (-1): its parts grow, since S3 takes 10,000 only.
func (d *transfer) partSize(h *partial, size int64) int {
	part := d.s.Work.Limits.PartSize(size)
	if size >= 0 {
		part = min(part, max(size-h.sums.Size, 0)+1)
	} else if h.Upload != nil {
		part <<= len(h.Upload.Parts) / 2000
	}
	return int(max(part, int64(len(h.Rest))+1))
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

// partialError says how much of a file came before a failure.
type partialError struct {
	came, size int64 // size is -1 when the server does not say
	host       string
	err        error
}

// Error names both, and the cause.
func (e *partialError) Error() string {
	of := ""
	if e.size >= 0 {
		of = " of " + grouped(e.size)
	}
	why := e.err.Error()
	if e.err == io.ErrUnexpectedEOF {
		why = "then the connection was closed"
	}
	return fmt.Sprintf("%s%s bytes came from %s; %s", grouped(e.came), of, e.host, why)
}

// Unwrap returns the cause.
func (e *partialError) Unwrap() error { return e.err }

// grouped writes a number with a comma after each three digits.
func grouped(n int64) string {
	text := strconv.FormatInt(n, 10)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

// leastPart is the least that S3 takes as a part which is not the last.
const leastPart = 5 << 20

// late ends a try whose time is up before or in the middle of a part. What came is
// kept. A try that had most of the time budget for itself and did not get further
// than one before is no progress, and says so with its cause.
func (d *transfer) late(ctx context.Context, h *partial, key string, cause error) error {
	data := h.Rest
	if len(data) >= leastPart {
		h.Rest = nil
		h.ours = d.part(ctx, h, key, data, false)
	}
	further := h.size() > h.Most
	if h.ours == nil && further {
		h.Most = h.size()
		h.ours = d.save(ctx, h)
	}
	if h.ours != nil {
		return h.ours
	}
	if !further && d.until.Sub(h.since) > d.until.Sub(d.began)/2 {
		h.ours = fmt.Errorf("the source is too slow for a try of %s: %v", d.until.Sub(d.began).Round(time.Second), cause)
		return h.ours
	}
	return fetch.ErrStop
}

// save notes how much of the file is there.
func (d *transfer) save(ctx context.Context, h *partial) (err error) {
	if h.Digests, err = h.sums.State(); err != nil {
		return err
	}
	return d.s.Work.PutJSON(ctx, h.key, h, bucket.Condition{})
}

// part stores the next bytes. What fits into one part needs no upload in parts.
func (d *transfer) part(ctx context.Context, h *partial, key string, data []byte, last bool) (err error) {
	if last && h.Upload == nil {
		_, _ = h.sums.Write(data) // a digester takes everything
		h.whole = data
		return d.s.Work.Put(ctx, key, data, bucket.Condition{})
	}
	if h.Upload == nil {
		if h.Upload, err = d.s.Work.Begin(ctx, key); err != nil {
			return err
		}
	}
	if len(data) > 0 {
		err := d.s.Work.Add(ctx, h.Upload, data)
		if fault.Is(err, fault.NotFound) { // it was cleaned away as too old: the next try begins anew
			return errors.Join(err, d.s.Work.Delete(ctx, h.key))
		}
		if err != nil {
			return err
		}
		_, _ = h.sums.Write(data)
	}
	h.All = last
	if err := d.save(ctx, h); err != nil || !last {
		return err
	}
	return d.s.Work.Complete(ctx, h.Upload)
}
