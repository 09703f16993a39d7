package stage

import (
	"bytes"
	"context"
	"io"

	"archivist/pkg/bucket"
	"archivist/pkg/ocfl"
)

// Texts up to these sizes, in bytes, are kept where they are named or in memory: each
// request to S3 costs more than to carry them along.
const (
	smallFile      = 64 << 10  // a system file, in the list of the system files
	smallInventory = 256 << 10 // the prepared inventory, in the plan
	smallText      = 1 << 20   // a work file that is read several times
)

// textWriter takes a text: it is in memory while it is small, else an object in the
// work bucket that is written as a stream.
type textWriter struct {
	most  int // bytes in memory
	begin func() *bucket.Writer
	small []byte
	large *bucket.Writer
}

// textAt writes a text that, if it is large, is at a key of the work bucket.
func (s *Stages) textAt(ctx context.Context, key string, most int) *textWriter {
	return &textWriter{most: most, begin: func() *bucket.Writer { return s.Work.Writer(ctx, key, bucket.Condition{}) }}
}

// Write takes the next bytes.
func (w *textWriter) Write(p []byte) (int, error) {
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
func (w *textWriter) Close() (small []byte, large bool, err error) {
	if w.large == nil {
		return w.small, false, nil
	}
	return nil, true, w.large.Close()
}

// Abort forgets the text. What is left of a large one is removed by the bucket's own
// rule.
func (w *textWriter) Abort() {
	if w.large != nil {
		_ = w.large.Abort()
	}
}

// inMemory opens a text that is in memory.
func inMemory(text []byte) ocfl.Text {
	return func(context.Context) (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(text)), nil }
}

// workText opens a work file as often as it is asked. A small one is requested once.
func (s *Stages) workText(key string) ocfl.Text {
	var small ocfl.Text
	return func(ctx context.Context) (io.ReadCloser, error) {
		if small != nil {
			return small(ctx)
		}
		body, info, err := s.Work.Open(ctx, key)
		if err != nil || info.Size > smallText {
			return body, err
		}
		defer body.Close()
		text, err := io.ReadAll(body)
		if err != nil {
			return nil, err
		}
		small = inMemory(text)
		return small(ctx)
	}
}

// textOf opens a file that is to be stored.
func (s *Stages) textOf(f ocfl.File) ocfl.Text {
	if f.Source == "" {
		return inMemory(f.Data)
	}
	return s.workText(f.Source)
}
