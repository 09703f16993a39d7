package ocfl

import (
	"bufio"
	"fmt"
	"io"
	"time"

	"github.com/go-json-experiment/json/jsontext"
)

// encoder writes an inventory as a stream, without blanks: the search for a digest in a
// part of an inventory relies on that, see firstEntry. It keeps the first error. So a caller may
// write several parts, and look at err once.
type encoder struct {
	out  *bufio.Writer
	json *jsontext.Encoder
	err  error
}

// newEncoder begins an inventory.
func newEncoder(w io.Writer) *encoder {
	out := bufio.NewWriterSize(w, 64<<10)

	// Digests and versions are unique. To remember all of them would hold the whole inventory.
	e := &encoder{out: out, json: jsontext.NewEncoder(out, jsontext.AllowDuplicateNames(true))}
	e.token(jsontext.BeginObject)
	return e
}

// close ends the inventory.
func (e *encoder) close() error {
	e.end()
	if e.err == nil {
		e.err = e.out.Flush()
	}
	return e.err
}

func (e *encoder) token(t jsontext.Token) {
	if e.err == nil {
		e.err = e.json.WriteToken(t)
	}
}

// begin begins a member that is an object, end ends it.
func (e *encoder) begin(name string) {
	e.token(jsontext.String(name))
	e.token(jsontext.BeginObject)
}

func (e *encoder) end() { e.token(jsontext.EndObject) }

// text writes a member that is a string.
func (e *encoder) text(name, value string) {
	e.token(jsontext.String(name))
	e.token(jsontext.String(value))
}

// entry writes a digest with its paths: a member of the manifest, of a state, or of a
// fixity block.
func (e *encoder) entry(digest string, paths []string) error {
	e.token(jsontext.String(digest))
	e.token(jsontext.BeginArray)
	for _, path := range paths {
		e.token(jsontext.String(path))
	}
	e.token(jsontext.EndArray)
	return e.err
}

// beginVersion begins a version and its state.
func (e *encoder) beginVersion(n int) error {
	e.begin(fmt.Sprintf("v%d", n))
	e.begin("state")
	return e.err
}

// endVersion ends the state and the version.
func (e *encoder) endVersion(v Version) error {
	e.end()
	// RFC 3339, with the fractions that there are (OCFL 1.1, section 3.5.3.1).
	e.text("created", v.Created.Format(time.RFC3339Nano))
	if v.Message != "" {
		e.text("message", v.Message)
	}

	if v.User != nil {
		e.begin("user")
		e.text("name", v.User.Name)
		if v.User.Address != "" {
			e.text("address", v.User.Address)
		}
		e.end()
	}

	e.end()
	return e.err
}
