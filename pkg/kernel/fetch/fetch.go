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
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
)

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

// restOf reads the position of the content of a 206 response from its header (RFC 9110,
// section 14.4), and does not assume that it is the rest that was asked for: bytes in the wrong
// place, or of other content, would be detected only if the depositor gave a digest.
func (s *Stream) restOf(resp *http.Response, part Partial) error {
	said := resp.Header.Get("Content-Range")
	bounds, total, _ := strings.Cut(strings.TrimPrefix(said, "bytes "), "/")
	first, _, _ := strings.Cut(bounds, "-")
	from, err := strconv.ParseInt(first, 10, 64)
	if err != nil || from != part.Offset {
		return fmt.Errorf("answered %s with the range %q when asked for the bytes from %d",
			resp.Status, said, part.Offset)
	}

	s.From = from
	size, err := strconv.ParseInt(total, 10, 64)
	if err == nil {
		s.Size = size
	} else if s.Size >= 0 {
		s.Size += from
	}

	if part.Offset == 0 {
		return nil // nothing that it could differ from
	}
	if differs := s.differs(part.Content, resp.Header); differs != "" {
		return fmt.Errorf("answered %s with a part of other content than was asked for: %s", resp.Status, differs)
	}
	return nil
}

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
