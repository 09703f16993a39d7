package fetch

import (
	"fmt"
	"net/http"
	"strconv"
	"time"
)

// StatusError is a response that is not a success.
type StatusError struct {
	URL    string // redacted
	Status int
	After  time.Duration // the wait that the server asks for; 0 for none
}

// NewStatusError makes an error of a response. name is the URL for messages, without
// secrets.
func NewStatusError(name string, resp *http.Response) *StatusError {
	return &StatusError{name, resp.StatusCode, retryAfter(resp.Header)}
}

// Error names the URL and the status.
func (e *StatusError) Error() string {
	text := fmt.Sprintf("%s answered %d %s", e.URL, e.Status, http.StatusText(e.Status))
	if e.After > 0 {
		text += fmt.Sprintf(" and asks to wait %g s", e.After.Seconds())
	}
	return text
}

// Final reports whether another try cannot help.
func (e *StatusError) Final() bool {
	switch e.Status {
	case http.StatusRequestTimeout, http.StatusTooEarly, http.StatusTooManyRequests:
		return false
	}
	return e.Status >= 400 && e.Status < 500
}

// retryAfter is the wait that a server asks for (RFC 9110, section 10.2.3): seconds, or a
// date, which is compared with the server's own clock.
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
