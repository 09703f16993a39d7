package container

import (
	"errors"
	"fmt"
	"io"
)

// corruptError says what is wrong with compressed data.
type corruptError struct{ why string }

func (e *corruptError) Error() string { return e.why }

func corrupt(format string, args ...any) error { return &corruptError{fmt.Sprintf(format, args...)} }

// errCut is compressed data that ends too early.
var errCut = corrupt("it ends in the middle: it was cut")

// input reads compressed data in blocks, from any place.
type input struct {
	from io.ReaderAt
	size int64 // where the data ends
	buf  []byte
	off  int64 // of the bytes in buf
	i    int   // the next of them
}

// inputBlock is how much is read at once.
const inputBlock = 256 << 10

func newInput(from io.ReaderAt, at, size int64) *input {
	return &input{from: from, size: size, off: at}
}

// pos is the place of the next byte.
func (in *input) pos() int64 { return in.off + int64(in.i) }

// seek continues at another place.
func (in *input) seek(at int64) {
	if at >= in.off && at <= in.off+int64(len(in.buf)) {
		in.i = int(at - in.off)
		return
	}
	in.off, in.buf, in.i = at, in.buf[:0], 0
}

// ahead are the next bytes that are in memory; there may be more behind them.
func (in *input) ahead() []byte { return in.buf[in.i:] }

// skip goes on behind bytes that are in memory.
func (in *input) skip(n int) { in.i += n }

// more reads the next block. io.EOF is the end of the data.
func (in *input) more() error {
	at := in.pos()
	n := min(inputBlock, in.size-at)
	if n <= 0 {
		return io.EOF
	}

	if int64(cap(in.buf)) < n { // most inputs are small
		in.buf = make([]byte, 0, n)
	}

	got, err := in.from.ReadAt(in.buf[:n], at)
	in.off, in.i, in.buf = at, 0, in.buf[:got]
	if got > 0 {
		return nil
	}
	if err == nil || errors.Is(err, io.EOF) { // the size says that there is more
		err = io.ErrUnexpectedEOF
	}
	return err
}

// readByte reads a byte.
func (in *input) readByte() (byte, error) {
	if in.i == len(in.buf) {
		if err := in.more(); err != nil {
			return 0, err
		}
	}
	in.i++
	return in.buf[in.i-1], nil
}

// read reads some bytes; the end of the data is errCut.
func (in *input) read(p []byte) (int, error) {
	if in.i == len(in.buf) {
		if err := in.more(); err == io.EOF {
			return 0, errCut
		} else if err != nil {
			return 0, err
		}
	}
	n := copy(p, in.buf[in.i:])
	in.i += n
	return n, nil
}

// bytes reads n bytes; fewer are errCut.
func (in *input) bytes(n int) ([]byte, error) {
	b := make([]byte, n)
	for got := 0; got < n; {
		m, err := in.read(b[got:])
		if err != nil {
			return nil, err
		}
		got += m
	}
	return b, nil
}

// zeros skips the zeros that fill up the last block of a tape. io.EOF: there is nothing else.
func (in *input) zeros() error {
	for {
		c, err := in.readByte()
		if err != nil {
			return err
		}
		if c != 0 {
			in.seek(in.pos() - 1)
			return nil
		}
	}
}
