package fetch

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"
)

// Size requests the size of the content at raw in bytes: by HEAD, else by a GET of its
// first byte. The error is the reason if it is not known.
func (c *Client) Size(ctx context.Context, raw string) (int64, error) {
	size, err := c.sizeBy(ctx, http.MethodHead, raw)
	if err == nil {
		return size, nil
	}
	return c.sizeBy(ctx, http.MethodGet, raw, "Range", "bytes=0-0")
}

func (c *Client) sizeBy(ctx context.Context, method, raw string, headers ...string) (int64, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, c.Limits.Small,
		&SilentError{"whole answer to a " + method,
			c.Limits.Small})

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
		return 0, NewStatusError(Redact(raw), resp)
	case resp.ContentLength >= 0:
		return resp.ContentLength, nil
	}
	return 0, fmt.Errorf("%s does not state its size", Redact(raw))
}
