package premis

import (
	"encoding/xml"
	"fmt"
	"io"
	"time"
)

// Limits of a document that is read. An archive of a million events has many documents: one of
// each object.
const (
	// MaxEntry is in bytes, too. What is above a limit is refused, not cut.
	MaxBytes   = 64 << 20 // of the document
	MaxEntries = 10_000   // events and agents together
	MaxEntry   = 256 << 10
	MaxDepth   = 64 // of elements inside each other
)

// readAhead is how much the decoder may have read of what follows (its own buffer).
const readAhead = 4 << 10

// reader reads one document. space tells the version of PREMIS, by which elements are judged.
type reader struct {
	d    *xml.Decoder
	in   *budget
	zone *time.Location

	space   string // the namespace of the root, "" before it
	depth   int    // of open elements
	entries int    // that were read

	line    int    // in which the entry begins
	problem string // the first of the entry
}

// newReader begins a document in UTF-8; another encoding in its declaration is an error.
func newReader(in io.Reader, zone *time.Location) *reader {
	b := &budget{in: in, total: MaxBytes + 1}
	r := &reader{in: b, zone: zone, d: xml.NewDecoder(b)}
	r.d.CharsetReader = func(label string, _ io.Reader) (io.Reader, error) {
		return nil, fmt.Errorf("the encoding is %q; save the file as UTF-8", label)
	}
	return r
}

// budget limits how much is read of a document, and of one part of it: the decoder keeps a
// whole token in memory. A part that is read up is set again before the next one.
type budget struct {
	in          io.Reader
	total, part int
}

func (b *budget) Read(p []byte) (int, error) {
	switch {
	case b.total == 0:
		return 0, fmt.Errorf("the document has more than %d bytes; split it", MaxBytes)
	case b.part == 0:
		return 0, fmt.Errorf("an event, agent or text has more than %d bytes", MaxEntry)
	}
	n, err := b.in.Read(p[:min(len(p), b.total, b.part)])
	b.total -= n
	b.part -= n
	return n, err
}

// broken says where a document cannot be read. Nothing follows such an error.
func (r *reader) broken(err error) error {
	if err == io.EOF {
		err = fmt.Errorf("it has no element")
	}
	line, _ := r.d.InputPos()
	return fmt.Errorf("premis: line %d: %w", line, err)
}

// token reads a token within the limits.
func (r *reader) token() (xml.Token, error) {
	token, err := r.d.Token()
	if err != nil {
		return nil, err
	}

	switch token.(type) {
	case xml.Directive:
		return nil, fmt.Errorf("it has a document type declaration, which PREMIS does not need; remove it")
	case xml.StartElement:
		r.depth++
	case xml.EndElement:
		r.depth--
	}

	if r.depth > MaxDepth {
		return nil, fmt.Errorf("more than %d elements are inside each other", MaxDepth)
	}
	return token, nil
}

// skip leaves out the rest of an element. Each of its texts can be as large as an entry if it
// is not part of one. The start of the element has been read.
func (r *reader) skip(large bool) error {
	for until := r.depth - 1; r.depth > until; {
		if large {
			r.in.part = MaxEntry + readAhead
		}
		if _, err := r.token(); err != nil {
			return err
		}
	}
	return nil
}

// refuse keeps the first reason why an entry cannot be read.
func (r *reader) refuse(format string, args ...any) {
	if r.problem == "" {
		r.problem = fmt.Sprintf(format, args...)
	}
}
