package fetch

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
)

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
