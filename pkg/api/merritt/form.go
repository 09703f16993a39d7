// Package merritt reads the forms that clients of Merritt's ingest service send, and writes its answers.
//
// A form is multipart/form-data: the fields of a submission, and one file (RFC 7578). Read takes it apart, with
// bounds; Request makes of it what the API takes. The answers are those that Merritt's clients read, in XML or JSON:
// State for a submission that is accepted, Refusal for one that is not.
//
//	form, err := merritt.Read(contentType, body)
//	in, err := form.Request(merritt.Route{Update: true})
//	data, media := merritt.FormatOf(contentType, body, accept).Encode(merritt.State{Batch: id})
//
// All functions are pure. Their errors are Invalids that name the field as Merritt does.
// (Sources: the specification "Merritt Ingest Service", sections 5.6 and 5.7; the service CDLUC3/mrt-ingest and its
// clients CDLUC3/mrt-ingest-ruby and CDLUC3/mrt-dashboard, as docs/merritt.md lists them.)
package merritt

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net/textproto"
	"slices"
	"strings"
	"unicode/utf8"

	"archivist/pkg/ingest"
	"archivist/pkg/kernel/fault"
)

// MaxForm is the size of a form in bytes. A function of AWS gets at most 6 MB with a request, in which a form is base64
// ("Lambda quotas"); the other 0.6 MB are for its headers.
const MaxForm = 4 << 20

// Bounds of a form. Merritt has some 40 fields; the longest that we take are 20 local ids of 500 bytes.
const (
	maxParts = 100
	maxField = 16 << 10 // bytes of a value
	maxName  = 100      // bytes of a field's name
)

// Form is a form that was read. A field that is blank counts as absent.
type Form struct {
	fields []field // in their order
	File   []byte  // the content of the file
	Name   string  // the last part of its name, as the client gives it; it may be ""
}

// field is a value of a form.
type field struct{ name, value string }

// errMedia: the request has no form.
var errMedia = errors.New("expected multipart/form-data with a boundary")

// Boundary returns the boundary of a form, or an error if a Content-Type is not that of a form.
func Boundary(contentType string) (string, error) {
	media, params, err := mime.ParseMediaType(contentType)
	if err != nil || media != "multipart/form-data" || params["boundary"] == "" {
		return "", fmt.Errorf("Content-Type: found %q; %w", ingest.Cut(contentType, 100), errMedia)
	}
	return params["boundary"], nil
}

// Read takes a form apart. It has each part of a body that ends as a form has to: nothing is made of one that was cut.
func Read(contentType string, body []byte) (f Form, err error) {
	boundary, err := Boundary(contentType)
	if err != nil {
		return f, fault.New(fault.Invalid, "%w", err)
	}

	parts, files := multipart.NewReader(bytes.NewReader(body), boundary), 0
	for n := 0; ; n++ {
		part, err := parts.NextRawPart()
		if err == io.EOF { // not errors.Is: a form that is cut ends with another error that wraps it
			break
		}
		if err != nil {
			return f, broken(err)
		}
		if n == maxParts {
			return f, fault.New(fault.Invalid, "the form has more than %d parts", maxParts)
		}
		if err := f.take(part, &files); err != nil {
			return f, err
		}
	}
	if files == 0 {
		return f, fault.New(fault.Invalid, `file: it is missing; send one part "file" with a name of the file, as `+
			"curl -F file=@NAME does")
	}
	return f, nil
}

// broken is the error about a body that is not a whole form.
func broken(err error) error {
	return fault.New(fault.Invalid, "the body is no complete form: %s; send it again",
		strings.TrimPrefix(err.Error(), "multipart: "))
}

// take adds a part of a form: a field, or the file.
func (f *Form) take(part *multipart.Part, files *int) error {
	name := part.FormName()
	switch {
	case name == "":
		return fault.New(fault.Invalid, "a part of the form has no name; expected "+
			"Content-Disposition: form-data; "+
			`name="…"`)
	case len(name) > maxName || !utf8.ValidString(name):
		return fault.New(fault.Invalid, "%q: the name of a field has at most %d bytes of UTF-8",
			ingest.Cut(name, maxName), maxName)
	}
	if err := plain(name, part.Header); err != nil {
		return err
	}

	if !isFile(part) {
		return f.takeField(name, part)
	}
	*files++
	if name != "file" || *files > 1 {
		return fault.New(fault.Invalid, "%s: a submission has one file, in the part \"file\"; "+
			"send several as a "+
			"container (zip or tar), or by a manifest of their URLs", name)
	}
	content, err := io.ReadAll(part)
	if err != nil {
		return broken(err)
	}
	f.File, f.Name = content, part.FileName()
	return nil
}

// isFile reports whether a part is a file: it has a name of one, which may be empty or in another charset.
func isFile(part *multipart.Part) bool {
	_, params,
		_ := mime.ParseMediaType(part.Header.Get("Content-Disposition")) // it had a name: it was parsed
	_, is := params["filename"]
	return is
}

// plain refuses a part that is encoded, or has parts itself: its bytes would not be those that were meant.
func plain(name string, header textproto.MIMEHeader) error {
	coding := strings.ToLower(header.Get("Content-Transfer-Encoding"))
	if !slices.Contains([]string{"", "7bit", "8bit", "binary"}, coding) {
		return fault.New(fault.Invalid, "%s: the part has the Content-Transfer-Encoding %q; "+
			"send its bytes as they are",
			name, ingest.Cut(coding, 100))
	}
	if strings.HasPrefix(strings.ToLower(header.Get("Content-Type")), "multipart/") {
		return fault.New(fault.Invalid, "%s: the part has parts itself; send one file", name)
	}
	return nil
}

// takeField adds a field. One that is blank counts as absent, as Merritt's own clients leave it out.
func (f *Form) takeField(name string, part io.Reader) error {
	value, err := io.ReadAll(io.LimitReader(part, maxField+1))
	if err != nil {
		return broken(err)
	}
	text := strings.TrimSpace(string(value))
	switch {
	case name == "file":
		return fault.New(fault.Invalid, "file: it is a field without the name of a file; with "+
			"curl: -F file=@NAME")
	case len(value) > maxField:
		return fault.New(fault.Invalid, "%s: the value has more than %d bytes", name, maxField)
	case !utf8.ValidString(text):
		return fault.New(fault.Invalid, "%s: the value is not UTF-8", name)
	case text != "":
		f.fields = append(f.fields, field{name, text})
	}
	return nil
}
