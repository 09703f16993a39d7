package curation

import (
	"fmt"
	"strconv"
	"time"

	"github.com/go-json-experiment/json"
)

// MaxRecord is how many bytes a record can have. All fields at their longest have much less.
const MaxRecord = 64 << 10

// Record is what a curator says of an episode or a clip. Here only its form is checked; what values
// are possible, and what a missing one means, is decided by package research (Curated).
type Record struct {
	Source    string `json:"source"` // of whom ID is an identifier
	ID        string `json:"id"`
	Title     string `json:"title,omitzero"`
	URL       string `json:"url"`           // of the recording
	Size      int64  `json:"size,omitzero"` // bytes; 0 = not known
	SHA256    string `json:"sha256,omitzero"`
	Withdrawn bool   `json:"withdrawn,omitzero"`
	Priority  *int   `json:"priority,omitzero"` // nil: it is not changed
	Curated   Time   `json:"curated,omitzero"`  // when the curator said this
	Initial   Time   `json:"initial,omitzero"`  // when it was curated first; 0 = as Curated
}

// Message is a record of a queue. A file has one project and one kind, so its records do not name
// them.
type Message struct {
	Project string `json:"project"` // its name
	Kind    string `json:"kind"`    // "episode" or "clip"
	Record  `json:",inline"`
}

// Time is a time in milliseconds since 1970, 0 if it is not given. In JSON and CSV it is that
// number, an RFC 3339 time, or a date, which is midnight UTC.
type Time int64

// ParseTime reads a time in one of its three forms. Its error, which says what was found and
// expected, has no kind: the caller knows where it was found.
func ParseTime(text string) (Time, error) {
	ms, err := strconv.ParseInt(text, 10, 64)
	if err == nil {
		return Time(ms), nil
	}

	for _, layout := range []string{time.RFC3339, time.DateOnly} {
		at, err := time.Parse(layout, text)
		if err == nil {
			return Time(at.UnixMilli()), nil
		}
	}
	return 0, fmt.Errorf("found %q; expected a time like 2026-11-22T10:00:00Z, a date, or milliseconds since 1970",
		clip(text))
}

// UnmarshalJSON reads a number or a string. data is one JSON value without spaces around it, never
// empty.
func (t *Time) UnmarshalJSON(data []byte) (err error) {
	text := string(data)
	if data[0] == '"' {
		err = json.Unmarshal(data, &text)
	}
	if err != nil {
		return err
	}
	*t, err = ParseTime(text)
	return err
}

// clip is the beginning of what somebody wrote, for messages.
func clip(s string) string {
	if len(s) <= 60 {
		return s
	}
	return s[:60] + "…"
}
