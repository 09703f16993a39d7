// Package curation reads what curators say of episodes and clips: a message of a queue, and files
// of many records, as CSV or as JSON Lines.
//
//	err := curation.Read(file, curation.FormatOf(name), func(line int, r curation.Record) error {
//		return send(r)
//	})
//
// A file is read as a stream. Columns and fields are those of Record; another one is refused by its
// name, because a misspelt column would be lost in silence. Whether a record can be kept is decided
// where it is kept.
package curation

import (
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"archivist/pkg/kernel/fault"
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

// Decode reads a message of a queue. It returns an Invalid for what is none: the message can never
// be kept.
func Decode(body string) (m Message, err error) {
	if len(body) > MaxRecord {
		return m, fault.New(fault.Invalid, "the message has %d bytes; at most %d are accepted",
			len(body), MaxRecord)
	}
	err = decode([]byte(body), &m)
	if err != nil {
		return m, fault.New(fault.Invalid, "the message is no curated record: %w", err)
	}
	return m, nil
}

// decode reads JSON, and refuses fields that do not exist or that come twice. Its errors have no
// kind; they name the column, counted in bytes from 1, and the field, in words of JSON instead of
// Go.
func decode(data []byte, into any) error {
	err := json.Unmarshal(data, into, json.RejectUnknownMembers(true))
	var semantic *json.SemanticError
	var syntactic *jsontext.SyntacticError
	// A semantic error is about a value or a name, a syntactic one about the form. An error of
	// neither kind comes at the end of data that is not complete.
	switch {
	case errors.As(err, &semantic) && errors.Is(err, json.ErrUnknownName):
		return fmt.Errorf("column %d: there is no field %q; the fields are %s",
			semantic.ByteOffset+1,
			clip(semantic.JSONPointer.LastToken()), fields(into))
	case errors.As(err, &semantic):
		return fmt.Errorf("column %d: %s: %s", semantic.ByteOffset+1,
			clip(semantic.JSONPointer.LastToken()),
			semanticReason(semantic))
	case errors.As(err, &syntactic) && errors.Is(err, jsontext.ErrDuplicateName):
		return fmt.Errorf("column %d: the field %q is there twice", syntactic.ByteOffset+1,
			clip(syntactic.JSONPointer.LastToken()))
	case errors.As(err, &syntactic):
		return fmt.Errorf("column %d: %w", syntactic.ByteOffset+1, syntactic.Err)
	case err != nil:
		return fmt.Errorf("column %d: %w", len(data)+1, err)
	}
	return nil
}

// semanticReason says why a value does not fit its field.
func semanticReason(e *json.SemanticError) string {
	if e.Err != nil {
		return e.Err.Error()
	}
	return fmt.Sprintf("a JSON %s is not possible here", e.JSONKind)
}

// clip is the beginning of what somebody wrote, for messages.
func clip(s string) string {
	if len(s) <= 60 {
		return s
	}
	return s[:60] + "…"
}
