package fetch

import (
	"compress/gzip"
	"context"
	"io"
	"net/http"

	"archivist/pkg/kernel/fault"
)

// Validators identify the content that a server sent, in its own words (RFC 9110, section 8.8).
type Validators struct {
	ETag     string
	Modified string // Last-Modified
}

// Document is what a server answered to a request for content that may have changed.
type Document struct {
	Validators
	Unchanged bool   // since the content of the validators that were sent
	URL       string // of the answer, after redirects
	// Moved is where the content is permanently (RFC 9110, section 15.4.2), "" if it is where it was
	// requested. A permanent redirect behind a temporary one does not count.
	Moved string
}

// IfChanged gives use the content at raw, decoded, unless it is unchanged since known. Content of
// more than most bytes, as sent or decoded, is an Invalid. use is called again if a try fails.
func (c *Client) IfChanged(ctx context.Context, raw string, known Validators, most int64,
	use func(Document, io.Reader) error) (d Document, err error) {
	err = c.Retry(ctx, raw, func() error {
		resp, err := c.request(ctx, http.MethodGet, raw, known.headers()...)
		if err != nil {
			return err
		}

		defer resp.Body.Close()
		d = document(resp)
		switch {
		case resp.StatusCode == http.StatusOK:
		case resp.StatusCode == http.StatusNotModified && known != (Validators{}):
			d.Unchanged, d.Validators = true, d.or(known)
			return nil
		default:
			return NewStatusError(Redact(raw), resp)
		}

		content, err := decoded(resp, most)
		if err != nil {
			return err
		}
		return use(d, content)
	})
	return d, err
}

// headers of a request for what has changed. The entity tag is the better validator, but some servers
// know only the date (RFC 9110, section 13.1.3).
func (v Validators) headers() []string {
	headers := []string{"Accept-Encoding", "gzip"}
	if v.ETag != "" {
		headers = append(headers, "If-None-Match", v.ETag)
	}
	if v.Modified != "" {
		headers = append(headers, "If-Modified-Since", v.Modified)
	}
	return headers
}

// or fills in what an answer without content left out.
func (v Validators) or(known Validators) Validators {
	if v == (Validators{}) {
		return known
	}
	return v
}

func document(resp *http.Response) Document {
	d := Document{URL: resp.Request.URL.String(),
		Validators: Validators{ETag: resp.Header.Get("ETag"),
			Modified: resp.Header.Get("Last-Modified")}}

	for req := resp.Request; req.Response != nil; req = req.Response.Request {
		switch status := req.Response.StatusCode; {
		case status != http.StatusMovedPermanently && status != http.StatusPermanentRedirect:
			d.Moved = ""
		case d.Moved == "":
			d.Moved = req.URL.String()
		}
	}
	return d
}

// decoded is the content of a response, of at most so many bytes.
func decoded(resp *http.Response, most int64) (io.Reader, error) {
	url := Redact(resp.Request.URL.String())
	r := &bounded{&counted{r: resp.Body, size: resp.ContentLength}, url, most, most}
	switch coding := contentEncoding(resp); coding {
	case "":
		return r, nil
	case "gzip", "x-gzip":
		unzipped, err := gzip.NewReader(r)
		return &bounded{unzipped, url, most, most}, err
	default:
		return nil, fault.New(fault.Invalid,
			"%s: the content is encoded as %q, which was not asked for", url, coding)
	}
}

// bounded ends content that is too large with an error.
type bounded struct {
	io.Reader
	url        string // for the message
	left, most int64
}

// Read returns an Invalid when there is more than the most.
func (b *bounded) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	b.left -= int64(n)
	if b.left < 0 {
		return 0, fault.New(fault.Invalid, "%s: the content has more than %s bytes", b.url,
			grouped(b.most))
	}
	return n, err
}
