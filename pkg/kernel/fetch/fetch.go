// Package fetch downloads depositors' content over HTTP.
//
// A Client refuses addresses inside our network (Guard), bounds each phase of a request
// (Limits), retries temporary errors (Retry), and requests only the rest of content of
// which a part exists already. A Digester computes several digests in one pass:
//
//	client := fetch.New(fetch.Guard{}, rand.Float64)
//	digests := fetch.NewDigester("md5")
//	err := client.Get(ctx, url, nil, func(s fetch.Stream) error {
//		_, err := io.Copy(digests, s)
//		return err
//	})
//
// The error of a request is of the kind Invalid if another try cannot help (404, a refused
// address), else Unavailable. Its message begins with the URL, without its secrets.
package fetch

import (
	"context"
	"errors"
	"fmt"
	"io"
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

	s3 bool // its Access answers requests for s3 URLs
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

// Stream is content that is being received.
type Stream struct {
	io.Reader
	From int64 // offset of its first byte
	Content
}

// Partial is the part of the content that exists already: its length, and whose it is.
type Partial struct {
	Offset int64
	Content
}

// ErrStop is returned by a use that needs no more of the content. Get returns it
// unchanged.
var ErrStop = errors.New("fetch: stopped")

// Get streams the content at raw to use. Before each try, have returns the part that
// exists already; nil means that there never is one. A server that cannot send the rest,
// or has other content now, sends everything from the beginning; From is then 0. So does one
// that sends the rest of other content than that of the part: what it sends is not used. An error
// of use without a kind is retried like one of the network. The error is Invalid if
// another try cannot help, else Unavailable.
func (c *Client) Get(ctx context.Context, raw string, have func() Partial,
	use func(Stream) error) error {
	whole := false // the server sent another part than requested
	return c.Retry(ctx, raw, func() error {
		var part Partial
		if have != nil {
			part = have()
		}

		if part.Validator == "" || whole {
			part = Partial{} // the rest could be of other content
		}

		resp, err := c.from(ctx, raw, part)
		if err != nil {
			return err
		}

		defer resp.Body.Close()

		st := Stream{Content: contentOf(resp)}

		switch resp.StatusCode {
		case http.StatusOK:
		case http.StatusPartialContent:
			err := st.restOf(resp, part)
			if err != nil {
				whole = true
				return err
			}
		default:
			return NewStatusError(Redact(raw), resp)
		}

		st.Reader = &counted{r: resp.Body, received: st.From, size: st.Size}
		return use(st)
	})
}

func (c *Client) from(ctx context.Context, raw string, part Partial) (*http.Response, error) {
	if part.Offset == 0 {
		return c.request(ctx, http.MethodGet, raw)
	}
	rest := fmt.Sprintf("bytes=%d-", part.Offset)
	return c.request(ctx, http.MethodGet, raw, "Range", rest, "If-Range", part.Validator)
}

// request sends one request. headers are names and values in turn.
func (c *Client) request(ctx context.Context, method, raw string,
	headers ...string) (*http.Response, error) {
	check := source.Check
	if c.s3 {
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
