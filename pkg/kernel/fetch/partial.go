package fetch

import (
	"errors"
	"io"
	"strconv"
)

// PartialError reports how much of the content was received before a failure.
type PartialError struct {
	Received int64 // bytes, including those of earlier tries
	Size     int64 // of the whole content; -1 when the server does not say
	Err      error // why there is no more
}

// Error names both sizes and the cause.
func (e *PartialError) Error() string {
	text := "received " + grouped(e.Received)
	if e.Size >= 0 {
		text += " of " + grouped(e.Size)
	}

	var silent *SilentError
	switch {
	case errors.Is(e.Err, io.ErrUnexpectedEOF):
		return text + " bytes, then the connection was closed"
	case errors.As(e.Err, &silent) && silent.For == 0 && e.Received > 0: // it may have sent until then
		return text + " bytes when the time for this try was up"
	case errors.As(e.Err, &silent):
		return text + " bytes, then nothing" + silent.howLong()
	}
	return text + " bytes, then: " + e.Err.Error()
}

// Unwrap returns the cause.
func (e *PartialError) Unwrap() error { return e.Err }

// grouped writes a number with a comma after each three digits.
func grouped(n int64) string {
	text := strconv.FormatInt(n, 10)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

// counted counts the received content.
type counted struct {
	r              io.Reader
	received, size int64
}

// Read returns a PartialError when the content ends before its end.
func (c *counted) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.received += int64(n)
	if err == io.EOF && c.size >= 0 && c.received != c.size {
		err = io.ErrUnexpectedEOF
	}
	if err != nil && err != io.EOF {
		err = &PartialError{c.received, c.size, err}
	}
	return n, err
}
