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

// half is a file that is not all there yet: its upload, its digests so far, and
// by what the rest is known to belong to it. It is saved after each part, so that
// another process fetches at most one part again.
type half struct {
	Upload    *bucket.Upload `json:"upload,omitempty"`
	Digests   fetch.State    `json:"digests"`
	Validator string         `json:"validator"`
	All       bool           `json:"all,omitempty"` // every part is there

	key   string
	began int64     // bytes that were there when this try began
	since time.Time // when it began
	sums  *fetch.Digester
	ours  error // a failure of the work bucket, not of the source
}

// fetch brings one file to a key of the work bucket in constant memory and
// returns its digests. It stops with fetch.ErrStop when the time budget is spent;
// what is there by then is noted at the key half.
func (d *transfer) fetch(ctx context.Context, key, half string, row checkm.Row) (*fetch.Digester, error) {
	h, err := d.s.loadHalf(ctx, half, row)
	if err != nil {
		return nil, err
	}
	if h.All {
		return h.sums, d.s.Work.Complete(ctx, h.Upload)
	}
	have := func() fetch.Half { return fetch.Half{Offset: h.sums.Size, Validator: h.Validator} }
	h.began, h.since = h.sums.Size, d.s.Now()
	inTime, cancel := context.WithTimeout(ctx, d.until.Sub(d.s.Now())) // a source that stalls must not hold the step
	defer cancel()
	err = d.s.Fetch.Get(inTime, row.URL, have, func(st fetch.Stream) error {
		h.ours = nil
		err := d.take(ctx, h, key, row, st)
		if h.ours != nil {
			return fault.New(fault.Lost, "storage") // ends the tries: the source is not to blame
		}
		return err
	})
	switch {
	case h.ours != nil:
		return nil, h.ours
	case err != nil && inTime.Err() != nil && fault.Is(err, fault.Unavailable):
		return nil, d.late(ctx, h, key, nil, err)
	}
	return h.sums, err
}

func newSums(row checkm.Row) *fetch.Digester { return fetch.NewDigester(row.Algorithm) }

func (s *Stages) loadHalf(ctx context.Context, key string, row checkm.Row) (*half, error) {
	h := &half{key: key, sums: newSums(row)}
	err := s.getJSON(ctx, key, h)
	if fault.Is(err, fault.NotFound) {
		return h, nil
	}
	if err != nil {
		return nil, err
	}
	return h, h.sums.Restore(h.Digests)
}

// take streams what comes into the upload, part by part.
func (d *transfer) take(ctx context.Context, h *half, key string, row checkm.Row, st fetch.Stream) error {
	if st.From != h.sums.Size || st.From == 0 {
		if h.Upload != nil {
			h.ours = d.s.Work.Abort(ctx, h.Upload)
		}
		h.Upload, h.sums = nil, newSums(row)
	}
	if h.ours != nil {
		return h.ours
	}
	h.Validator = st.Validator
	buf := make([]byte, min(d.s.Work.Limits.PartSize(st.Size), max(st.Size-st.From, 0)+1))
	if st.Size < 0 {
		buf = make([]byte, d.s.Work.Limits.PartSize(-1))
	}
	for {
		n, err := fill(st, buf)
		whole := err == io.EOF
		if whole && st.Size >= 0 && h.sums.Size+int64(n) != st.Size {
			err, whole = io.ErrUnexpectedEOF, false
		}
		if err != nil && !whole {
			err = &partialError{h.sums.Size + int64(n), st.Size, fetch.Host(row.URL), err}
			if !d.s.Now().Before(d.until) {
				return d.late(ctx, h, key, buf[:n], err)
			}
			return err
		}
		if h.ours = d.part(ctx, h, key, buf[:n], whole); h.ours != nil || whole {
			return h.ours
		}
		if !d.s.Now().Before(d.until) {
			return fetch.ErrStop
		}
	}
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
// kept if it makes a part. A try that had most of the time budget for itself and
// got nothing is no progress, and says so with its cause.
func (d *transfer) late(ctx context.Context, h *half, key string, data []byte, cause error) error {
	if len(data) >= leastPart {
		if h.ours = d.part(ctx, h, key, data, false); h.ours != nil {
			return h.ours
		}
	}
	if h.sums.Size == h.began && d.until.Sub(h.since) > d.until.Sub(d.began)/2 {
		h.ours = fmt.Errorf("the source is too slow for a try of %s: %v", d.until.Sub(d.began).Round(time.Second), cause)
		return h.ours
	}
	return fetch.ErrStop
}

// part stores the next bytes. What fits into one part needs no upload in parts.
func (d *transfer) part(ctx context.Context, h *half, key string, data []byte, last bool) (err error) {
	if last && h.Upload == nil {
		_, _ = h.sums.Write(data) // a digester takes everything
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
	if h.Digests, err = h.sums.State(); err != nil {
		return err
	}
	h.All = last
	if err := d.s.putJSON(ctx, h.key, h, bucket.Condition{}); err != nil || !last {
		return err
	}
	return d.s.Work.Complete(ctx, h.Upload)
}
