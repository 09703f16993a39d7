// Package fetch gets depositors' content over HTTP: it refuses addresses
// inside our network, retries what may pass, and digests what comes.
package fetch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"archivist/pkg/backoff"
	"archivist/pkg/fault"
)

// Client fetches. Its fields are settings with a reason each.
type Client struct {
	HTTP   *http.Client
	Tries  int            // of one request
	Waits  backoff.Policy // between them, where the server does not ask for a longer one
	Jitter func() float64 // uniform in [0,1)
	Wait   func(context.Context, time.Duration) error
	Limits Limits
}

// New returns a client that keeps to g.
func New(g Guard, jitter func() float64) *Client {
	transport := &http.Transport{
		DialContext:         g.dialer().DialContext,
		MaxIdleConnsPerHost: 32,
		IdleConnTimeout:     90 * time.Second,
		DisableCompression:  true,

		MaxResponseHeaderBytes: 256 << 10,
	}
	return &Client{
		HTTP:   &http.Client{Transport: transport, CheckRedirect: redirect},
		Tries:  4,
		Waits:  backoff.Policy{First: 500 * time.Millisecond},
		Jitter: jitter,
		Wait:   backoff.Sleep,
		Limits: DefaultLimits,
	}
}

// redirect follows to http and https. net/http keeps credentials from other hosts; it
// sends the URL that redirected as Referer, whose query may be a signature.
func redirect(req *http.Request, via []*http.Request) error {
	req.Header.Del("Referer")
	if len(via) >= 5 {
		return errors.New("more than 5 redirects")
	}
	if req.URL.Scheme != "http" && req.URL.Scheme != "https" {
		return fmt.Errorf("a redirect to %s", req.URL.Scheme)
	}
	return nil
}

// Stream is content on its way.
type Stream struct {
	io.Reader
	From      int64  // offset of its first byte
	Size      int64  // of the whole content; -1 when the server does not say
	Validator string // ETag or date by which the same content is known again
}

// Partial says how much of the content is there already, and by which validator
// the rest is known to belong to it.
type Partial struct {
	Offset    int64
	Validator string
}

// ErrStop is returned by a use that wants no more of the content now. Get
// returns it as it is.
var ErrStop = errors.New("fetch: stopped")

// Get streams the content at raw to use. have is asked at each try for what is
// there already; nil means nothing ever is. A server that cannot give the rest,
// or has other content now, gives all from the beginning: From says so. A
// failure of use is tried again like one of the network, unless it is of a kind.
// The error is Invalid when trying again cannot help, else Unavailable.
func (c *Client) Get(ctx context.Context, raw string, have func() Partial, use func(Stream) error) error {
	return c.Retry(ctx, raw, func() error {
		var half Partial
		if have != nil {
			half = have()
		}
		if half.Validator == "" {
			half = Partial{}
		}
		resp, err := c.from(ctx, raw, half)
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		st := Stream{Reader: resp.Body, Size: resp.ContentLength, Validator: validator(resp)}
		switch resp.StatusCode {
		case http.StatusOK:
		case http.StatusPartialContent:
			st.From = half.Offset
			if st.Size >= 0 {
				st.Size += half.Offset
			}
		default:
			return NewStatusError(Redact(raw), resp)
		}
		return use(st)
	})
}

func (c *Client) from(ctx context.Context, raw string, half Partial) (*http.Response, error) {
	if half.Offset == 0 {
		return c.request(ctx, http.MethodGet, raw)
	}
	return c.request(ctx, http.MethodGet, raw, "Range", fmt.Sprintf("bytes=%d-", half.Offset), "If-Range", half.Validator)
}

// validator is what a range request can be conditioned on (RFC 9110, section
// 13.1.5): a strong ETag, or the date.
func validator(resp *http.Response) string {
	if tag := resp.Header.Get("ETag"); tag != "" && !strings.HasPrefix(tag, "W/") {
		return tag
	}
	return resp.Header.Get("Last-Modified")
}

func (c *Client) request(ctx context.Context, method, raw string, headers ...string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, raw, nil)
	if err != nil || req.URL.Scheme != "http" && req.URL.Scheme != "https" {
		return nil, fault.New(fault.Invalid, "%s: only http and https URLs are fetched", Redact(raw))
	}
	for i := 0; i+1 < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	return c.do(ctx, req)
}
