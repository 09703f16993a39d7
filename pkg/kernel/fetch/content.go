package fetch

import (
	"fmt"
	"net/http"
	"strings"
	"time"

	"archivist/pkg/kernel/fault"
)

// Content is what a server says of the content that it sends. Two answers with the same validator
// are of the same content.
type Content struct {
	// Validator is a strong one (RFC 9110, section 8.8.1): an ETag, or a date of Last-Modified. ""
	// if the server sends none; then a part is never continued.
	Validator string `json:"validator,omitempty"`
	Size      int64  `json:"size,omitempty"` // of the whole content, in bytes; -1 when the server does not say
	// Encoding is how the server encoded the content although it was asked not to, e.g.
	// "gzip" (RFC 9110, section 8.4). The bytes are as received, not decoded.
	Encoding string `json:"encoding,omitempty"`
	// Unended: only the end of the connection ends the content, so what was cut looks like the whole of it
	// (RFC 9112, section 8). Its size or its digest must be known from elsewhere.
	Unended bool `json:"unended,omitempty"`
}

// CheckEnd returns an Invalid if nothing tells whether the content was received to its end: the server does not,
// and neither size nor digest is known.
func (c Content) CheckEnd(known bool) error {
	if !c.Unended || c.Size >= 0 || known {
		return nil
	}
	return fault.New(fault.Invalid, "the server gives no Content-Length and ends the content by closing the "+
		"connection, so that content that was cut looks whole. Name its size or digest, or have the server send its "+
		"length")
}

// settled is how much older than the answer a date must be, so that it is a strong validator: content that
// changes twice within a second has the same date. RFC 9110, section 8.8.2.2, demands a second;
// RFC 7232 demanded a minute, since clocks differ within a site.
const settled = time.Minute

func contentOf(resp *http.Response) Content {
	c := Content{Size: resp.ContentLength, Encoding: contentEncoding(resp)}
	c.Unended = c.Size < 0 && len(resp.TransferEncoding) == 0 && resp.ProtoMajor == 1

	tag := resp.Header.Get("ETag")
	if strings.HasPrefix(tag, `"`) {
		c.Validator = tag
		return c
	}

	modified, err := http.ParseTime(resp.Header.Get("Last-Modified"))
	if err != nil {
		return c
	}

	sent, err := http.ParseTime(resp.Header.Get("Date"))
	if err == nil && sent.Sub(modified) >= settled {
		c.Validator = resp.Header.Get("Last-Modified")
	}
	return c
}

// contentEncoding is the encoding of the content, "" for none.
func contentEncoding(resp *http.Response) string {
	coding := strings.ToLower(strings.Join(resp.Header.Values("Content-Encoding"), ", "))
	if coding == "identity" {
		return ""
	}
	return coding
}

// differs says in what the content of an answer with a part is not the one that was asked for, "" if it
// is that. A server may ignore the condition of a request, so the answer itself must say whose part it
// is: parts are combined only if they have the same strong validator (RFC 9110, section 15.3.7.3).
func (c Content) differs(asked Content, header http.Header) string {
	validator, name := header.Get("Last-Modified"), "Last-Modified"
	if strings.HasPrefix(asked.Validator, `"`) {
		validator, name = header.Get("ETag"), "ETag"
	}

	switch {
	case validator != asked.Validator:
		return fmt.Sprintf("its %s is %q, that of the first part %q", name, validator, asked.Validator)
	case asked.Size >= 0 && c.Size != asked.Size:
		return fmt.Sprintf("it is of %d bytes, the first part of %d", c.Size, asked.Size)
	case c.Encoding != asked.Encoding:
		return fmt.Sprintf("it is encoded as %q, the first part as %q", c.Encoding, asked.Encoding)
	}
	return ""
}
