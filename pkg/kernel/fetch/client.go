package fetch

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"archivist/pkg/kernel/backoff"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/source"
)

// Client downloads content.
type Client struct {
	HTTP      *http.Client
	UserAgent string         // see UserAgent; "" is net/http's own
	Tries     int            // of one request
	Waits     backoff.Policy // between tries, unless the server asks for a longer wait
	Jitter    func() float64 // uniform in [0,1)
	Wait      func(context.Context, time.Duration) error
	Limits    Limits

	submitted bool // its Access answers requests for URLs that only submissions have: those of s3, and of uploads
}

// New returns a client that connects only to addresses that g allows.
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

// maxRedirects is the maximum number of redirects of one request.
const maxRedirects = 5

// redirect checks a redirect before it is followed. net/http sends no credentials to other
// hosts, but it sends the redirecting URL as Referer, whose query may be a signature.
func redirect(req *http.Request, via []*http.Request) error {
	req.Header.Del("Referer")
	if len(via) >= maxRedirects {
		return fmt.Errorf("more than %d redirects", maxRedirects)
	}
	if !source.Fetched(req.URL) {
		return &RefusedError{Scheme: req.URL.Scheme}
	}
	return nil
}

// UserAgent identifies this software in requests: "archivist/1.2.3 (+URL)", so that the
// operator of a source knows whom to contact. contact is a web page or a mailto URL, or "".
func UserAgent(version, contact string) string {
	agent := "archivist/" + strings.TrimPrefix(visible(version), "v")
	contact = visible(contact)
	if contact != "" {
		agent += " (+" + contact + ")"
	}
	return agent
}

// visible removes characters that a product or comment cannot have (RFC 9110, section 5.6).
func visible(text string) string {
	return strings.Map(func(c rune) rune {
		if c <= ' ' || c > '~' || strings.ContainsRune("();", c) {
			return -1
		}
		return c
	}, text)
}

// ErrStop is returned by a use that needs no more of the content. Get returns it
// unchanged.
var ErrStop = errors.New("fetch: stopped")

// request sends one request. headers are names and values in turn.
func (c *Client) request(ctx context.Context, method, raw string,
	headers ...string) (*http.Response, error) {
	check := source.Check
	if c.submitted {
		check = source.CheckPayload
	}
	if err := check(raw); err != nil {
		return nil, fault.New(fault.Invalid, "%s: %w", Redact(raw), err)
	}

	req, err := http.NewRequestWithContext(ctx, method, raw, nil)
	if err != nil {
		return nil, fault.New(fault.Invalid, "%s", unreadable)
	}

	req.Header.Set("Accept-Encoding", "identity") // the file itself is stored, not a compressed form
	if c.UserAgent != "" {
		req.Header.Set("User-Agent", c.UserAgent)
	}

	for i := 0; i+1 < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	return c.do(ctx, req)
}

// Do sends a request of any method with the time limits. It is one try: see Retry. Closing the response's body
// ends it.
func (c *Client) Do(req *http.Request) (*http.Response, error) {
	if c.UserAgent != "" {
		req.Header.Set("User-Agent", c.UserAgent)
	}
	return c.do(req.Context(), req)
}

// do sends a request with time limits. Closing the response's body ends it.
func (c *Client) do(ctx context.Context, req *http.Request) (*http.Response, error) {
	w := watched(ctx, c.Limits)
	resp, err := c.HTTP.Do(req.WithContext(w.ctx))
	if err != nil {
		err = refusedBy(w.cause(err))
		w.end()
		return nil, err
	}
	w.pause()
	resp.Body = &body{resp.Body, w}
	return resp, nil
}
