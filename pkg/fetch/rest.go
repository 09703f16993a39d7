package fetch

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
)

// restOf reads the position of the content of a 206 response from its header (RFC 9110,
// section 14.4), and does not assume the requested position: bytes in the wrong place would
// be detected only if the depositor gave a digest.
func (s *Stream) restOf(resp *http.Response, asked int64) error {
	said := resp.Header.Get("Content-Range")
	bounds, total, _ := strings.Cut(strings.TrimPrefix(said, "bytes "), "/")
	first, _, _ := strings.Cut(bounds, "-")
	if from, err := strconv.ParseInt(first, 10, 64); err != nil || from != asked {
		return fmt.Errorf("answered %s with the range %q when asked for the bytes from %d", resp.Status, said, asked)
	}

	s.From = asked
	if size, err := strconv.ParseInt(total, 10, 64); err == nil {
		s.Size = size
	} else if s.Size >= 0 {
		s.Size += asked
	}
	return nil
}
