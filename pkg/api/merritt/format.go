package merritt

import (
	"bytes"
	"io"
	"mime"
	"mime/multipart"
	"strings"
)

// Format is the form of an answer.
type Format string

// The formats that answers have here. Merritt has others, which its clients do not ask for.
const (
	XML  Format = "xml"
	JSON Format = "json"
)

var formats = map[string]Format{"xml": XML, "json": JSON}

// Media is the media type of a format, as Merritt sends it.
func (f Format) Media() string {
	if f == JSON {
		return "application/json"
	}
	return "text/xml"
}

// FormatOf is the form in which a request is answered: the one of the field responseForm, or else the first that the
// header Accept names, or else XML. The body may be cut, or no form at all.
func FormatOf(contentType string, body []byte, accept string) Format {
	if boundary, err := Boundary(contentType); err == nil {
		parts := multipart.NewReader(bytes.NewReader(body), boundary)
		for n := 0; n < maxParts; n++ {
			part, err := parts.NextRawPart()
			if err != nil {
				break
			}
			if part.FormName() != "responseForm" {
				continue
			}
			value, _ := io.ReadAll(io.LimitReader(part, maxName)) // what is there of it
			if form, known := formats[strings.ToLower(strings.TrimSpace(string(value)))]; known {
				return form
			}
		}
	}
	return accepted(accept)
}

// accepted is the first format in a header Accept.
func accepted(accept string) Format {
	for one := range strings.SplitSeq(accept, ",") {
		media, _, _ := mime.ParseMediaType(one)
		switch media {
		case "application/json":
			return JSON
		case "text/xml", "application/xml":
			return XML
		}
	}
	return XML
}
