package workspace

import (
	"bytes"
	"context"
	"io"

	"archivist/pkg/kernel/bucket"
	"archivist/pkg/objects/ocfl"
)

// Texts up to these sizes, in bytes, are kept in the file that names them or in memory: a
// request to S3 costs more than to keep them there.
const (
	SmallFile = 64 << 10 // a system file, in the list of the system files

	smallInventory = 256 << 10 // the prepared inventory, in the plan
	smallText      = 1 << 20   // a work file that is read several times
)

// TextWriter writes a text: in memory while it is small, else as a stream to an object in
// the work bucket. It belongs to one goroutine.
type TextWriter struct {
	most  int // bytes in memory
	begin func() *bucket.Writer
	small []byte
	large *bucket.Writer
}

// Create begins a text. If it has more than most bytes, it is written to the key in the
// work bucket.
func (s Store) Create(ctx context.Context, key string, most int) *TextWriter {
	return &TextWriter{most: most,
		begin: func() *bucket.Writer { return s.Writer(ctx, key, bucket.Condition{}) }}
}

// Write adds the next bytes.
func (w *TextWriter) Write(p []byte) (int, error) {
	if w.large == nil && len(w.small)+len(p) <= w.most {
		w.small = append(w.small, p...)
		return len(p), nil
	}

	if w.large == nil {
		w.large = w.begin()
		if _, err := w.large.Write(w.small); err != nil {
			return 0, err
		}
		w.small = nil
	}

	return w.large.Write(p)
}

// Close ends the text. It returns a small one, and whether it is an object instead.
func (w *TextWriter) Close() (small []byte, large bool, err error) {
	if w.large == nil {
		return w.small, false, nil
	}
	return nil, true, w.large.Close()
}

// Abort discards the text. The bucket's lifecycle rule removes the rest of a large one.
func (w *TextWriter) Abort() {
	if w.large != nil {
		_ = w.large.Abort()
	}
}

// InMemory opens a text that is in memory.
func InMemory(text []byte) ocfl.Text {
	return func(context.Context) (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(text)), nil
	}
}

// Text opens a work file, also several times. A small one is requested once. The result is for one
// goroutine, and a missing file is a NotFound.
func (s Store) Text(key string) ocfl.Text {
	var small ocfl.Text
	return func(ctx context.Context) (io.ReadCloser, error) {
		if small != nil {
			return small(ctx)
		}

		body, info, err := s.Open(ctx, key)
		if err != nil || info.Size > smallText {
			return body, err
		}

		defer body.Close()
		text, err := io.ReadAll(body)
		if err != nil {
			return nil, err
		}

		small = InMemory(text)
		return small(ctx)
	}
}

// TextOf opens a file that is to be stored.
func (s Store) TextOf(f ocfl.File) ocfl.Text {
	if f.Source == "" {
		return InMemory(f.Data)
	}
	return s.Text(f.Source)
}
