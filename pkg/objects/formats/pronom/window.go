package pronom

import (
	"context"
	"errors"
	"io"
	"sync"
)

// blockBytes is what is read at once; mostBlocks is how many are kept. That is 4 MiB for each file
// that is being identified.
const (
	blockBytes = 256 << 10
	mostBlocks = 16
)

// window shows a file to siegfried, which reads it by IsSlicer, Size, Slice and EofSlice (its package
// siegreader) from several goroutines at once. It ends reading without an error of its own: the
// caller asks failed and cut afterwards.
type window struct {
	ctx     context.Context
	content io.ReaderAt
	size    int64
	closed  bool // the container is not to be opened

	mu     sync.Mutex
	left   int64 // bytes that may still be read
	cut    bool  // more would have been read
	blocks map[int64][]byte
	order  []int64 // of the blocks, the oldest first
	err    error   // of content
}

// Read is never called: the window is a slicer.
func (w *window) Read([]byte) (int, error) {
	return 0, errors.New("pronom: the window is read by slices")
}

// IsSlicer makes siegfried use the other functions.
func (w *window) IsSlicer() bool { return true }

// Size of the file in bytes.
func (w *window) Size() int64 { return w.size }

// triggerBytes is what siegfried asks for to decide whether a file is a container, and nothing else.
const triggerBytes = 8

// errClosed is the answer to triggerBytes: siegfried then leaves the matcher of containers out.
var errClosed = errors.New("pronom: the container is not opened")

// Slice returns bytes from an offset on. Fewer come with io.EOF: the file ends there, or what may
// be read of it.
func (w *window) Slice(off int64, n int) ([]byte, error) {
	if w.closed && off == 0 && n == triggerBytes {
		return nil, errClosed
	}

	if off < 0 || off >= w.size {
		return nil, io.EOF
	}

	end := min(off+int64(n), w.size)
	var out []byte
	w.mu.Lock()
	defer w.mu.Unlock()
	for at := off; at < end; at = off + int64(len(out)) {
		number := at / blockBytes
		block := w.block(number)
		from := at - number*blockBytes
		if from >= int64(len(block)) {
			return out, io.EOF
		}
		out = append(out, block[from:min(int64(len(block)), end-number*blockBytes)]...)
	}

	if len(out) < n {
		return out, io.EOF
	}
	return out, nil
}

// EofSlice returns n bytes that end off bytes before the end.
func (w *window) EofSlice(off int64, n int) ([]byte, error) {
	if off >= w.size {
		return nil, io.EOF
	}
	from := max(0, w.size-off-int64(n))
	out, err := w.Slice(from, int(w.size-off-from))
	if err == nil && from == 0 {
		err = io.EOF
	}
	return out, err
}

// block is a block of the file, empty if no more may be read or content fails. The caller has the lock.
func (w *window) block(number int64) []byte {
	if b, known := w.blocks[number]; known {
		return b
	}

	n := min(blockBytes, w.size-number*blockBytes)
	switch {
	case w.err != nil || w.ctx.Err() != nil:
		return nil
	case n > w.left:
		w.cut = true
		return nil
	}

	b := make([]byte, n)
	read, err := w.content.ReadAt(b, number*blockBytes)
	if err == io.EOF && int64(read) < n {
		err = io.ErrUnexpectedEOF
	}

	if err != nil && err != io.EOF {
		w.err = err
		return nil
	}

	w.left -= n
	if len(w.order) == mostBlocks {
		delete(w.blocks, w.order[0])
		w.order = w.order[1:]
	}

	w.blocks[number], w.order = b, append(w.order, number)
	return b
}

// failed is the error of content, or the end of the context.
func (w *window) failed() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err != nil {
		return w.err
	}
	return w.ctx.Err()
}
