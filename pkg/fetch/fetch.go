// Package fetch gets depositors' content over HTTP: it refuses addresses
// inside our network, retries what may pass, and digests what comes.
package fetch

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"archivist/pkg/fault"
)

// Client fetches. Its fields are settings with a reason each.
type Client struct {
	HTTP   *http.Client
	Tries  int            // of one request
	Jitter func() float64 // uniform in [0,1)
	First  time.Duration  // wait before the second try at most; it doubles
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
		Jitter: jitter,
		First:  500 * time.Millisecond,
		Wait:   wait,
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

func wait(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}

// StatusError is an answer other than a success.
type StatusError struct {
	URL    string // redacted
	Status int
	After  time.Duration // what the server asks to wait for; 0: it does not say
}

// Error names the URL and the status.
func (e *StatusError) Error() string {
	text := fmt.Sprintf("%s answered %d %s", e.URL, e.Status, http.StatusText(e.Status))
	if e.After > 0 {
		text += fmt.Sprintf(" and asks to wait %g s", e.After.Seconds())
	}
	return text
}

func statusError(raw string, resp *http.Response) *StatusError {
	return &StatusError{Redact(raw), resp.StatusCode, retryAfter(resp.Header)}
}

// retryAfter is how long a server asks to wait (RFC 9110, section 10.2.3): seconds,
// or a date, which is compared with the server's own clock.
func retryAfter(h http.Header) time.Duration {
	value := h.Get("Retry-After")
	if seconds, err := strconv.ParseUint(value, 10, 31); err == nil {
		return time.Duration(seconds) * time.Second
	}
	at, err := http.ParseTime(value)
	now, nowErr := http.ParseTime(h.Get("Date"))
	if err != nil || nowErr != nil {
		return 0
	}
	return max(0, at.Sub(now))
}

// Final reports whether asking again cannot help.
func (e *StatusError) Final() bool {
	return e.Status >= 400 && e.Status < 500 && e.Status != 408 && e.Status != 425 && e.Status != 429
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
	return c.try(ctx, raw, func() error {
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
			return statusError(raw, resp)
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

// Post sends a body and expects a success. headers are asked for at each try.
// The error is Invalid when trying again cannot help, else Unavailable. It names the
// host only: who may call such a URL is often said by its path.
func (c *Client) Post(ctx context.Context, raw string, body []byte, headers func() map[string]string) error {
	site := site(raw)
	return c.try(ctx, site, func() error {
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, raw, bytes.NewReader(body))
		if err != nil {
			return fault.New(fault.Invalid, "the URL cannot be read")
		}
		for name, value := range headers() {
			req.Header.Set(name, value)
		}
		direct := *c.HTTP
		direct.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse } // what is signed goes to whom it is for
		direct.Timeout = postTimeout
		resp, err := direct.Do(req)
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, 64<<10)) // so that the connection can be used again
		if resp.StatusCode < 200 || resp.StatusCode > 299 {
			return statusError(site, resp)
		}
		return nil
	})
}

// postTimeout bounds one try: four must fit into a function's time.
const postTimeout = 8 * time.Second

// Size asks for the size of the content at raw in bytes: by HEAD, else by a
// GET of its first byte. An error says why it is not known.
func (c *Client) Size(ctx context.Context, raw string) (int64, error) {
	size, err := c.sizeBy(ctx, http.MethodHead, raw)
	if err == nil {
		return size, nil
	}
	return c.sizeBy(ctx, http.MethodGet, raw, "Range", "bytes=0-0")
}

func (c *Client) sizeBy(ctx context.Context, method, raw string, headers ...string) (int64, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, c.Limits.Small, &SilentError{"whole answer to a " + method, c.Limits.Small})
	defer cancel()
	resp, err := c.request(ctx, method, raw, headers...)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	switch {
	case resp.StatusCode == http.StatusPartialContent:
		_, total, _ := strings.Cut(resp.Header.Get("Content-Range"), "/")
		if size, err := strconv.ParseInt(total, 10, 64); err == nil {
			return size, nil
		}
	case resp.StatusCode != http.StatusOK:
		return 0, statusError(raw, resp)
	case resp.ContentLength >= 0:
		return resp.ContentLength, nil
	}
	return 0, fmt.Errorf("%s does not say its size", Redact(raw))
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

// maxRetryAfter bounds the wait that a server asks for: with it, all tries end
// within the time budget of a long stage.
const maxRetryAfter = time.Minute

// pause waits before the next try. It reports false if there is no time for it.
func (c *Client) pause(ctx context.Context, err error, bound time.Duration) bool {
	d := time.Duration(c.Jitter() * float64(bound))
	var status *StatusError
	if errors.As(err, &status) {
		d = max(d, min(status.After, maxRetryAfter))
	}
	return ctx.Err() == nil && c.Wait(ctx, d) == nil
}

// try does f until it succeeds, cannot, or the tries are used up.
func (c *Client) try(ctx context.Context, raw string, f func() error) error {
	bound := c.First
	for n := 1; ; n++ {
		err := f()
		if err == nil || fault.Of(err) != "" || errors.Is(err, ErrStop) {
			return err
		}
		var status *StatusError
		var refused *RefusedError
		if errors.As(err, &refused) || errors.As(err, &status) && status.Final() {
			return &fault.Error{Kind: fault.Invalid, Msg: message(raw, err), Err: err}
		}
		if n == c.Tries || !c.pause(ctx, err, bound) {
			return &fault.Error{Kind: fault.Unavailable, Msg: message(raw, err) + times(n), Err: err}
		}
		bound *= 2
	}
}

func times(n int) string {
	if n == 1 {
		return ""
	}
	return fmt.Sprintf(" (tried %d times)", n)
}
