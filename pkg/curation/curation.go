// Package curation reads what curators say of episodes and clips: a message of a queue, and files of
// many records, as CSV or as JSON Lines.
//
//	err := curation.Read(file, curation.FormatOf(name), func(line int, r curation.Record) error {
//		return send(r)
//	})
//
// A file is read as a stream. Columns and fields are those of Record; another one is refused by its name,
// because a misspelt column would be lost in silence. Whether a record can be kept is decided where it is
// kept.
package curation

import (
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"archivist/pkg/fault"
)

// MaxRecord is how many bytes a record can have.
const MaxRecord = 64 << 10

// Record is what a curator says of an episode or a clip.
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

// Message is a record of a queue.
type Message struct {
	Project string `json:"project"`
	Kind    string `json:"kind"` // "episode" or "clip"
	Record  `json:",inline"`
}

// Time is a time in milliseconds since 1970, 0 if it is not given. In JSON and CSV it is that number, an
// RFC 3339 time, or a date, which is midnight UTC.
type Time int64

// ParseTime reads a time.
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

// UnmarshalJSON reads a number or a string.
func (t *Time) UnmarshalJSON(data []byte) (err error) {
	text := string(data)
	if data[0] == '"' {
		err = json.Unmarshal(data, &text)
	}
	if err == nil {
		*t, err = ParseTime(text)
	}
	return err
}

// Decode reads a message of a queue. It returns an Invalid for what is none.
func Decode(body string) (m Message, err error) {
	if len(body) > MaxRecord {
		return m, fault.New(fault.Invalid, "the message has %d bytes; at most %d are accepted", len(body), MaxRecord)
	}
	err = decode([]byte(body), &m)
	if err != nil {
		return m, fault.New(fault.Invalid, "the message is no curated record: %w", err)
	}
	return m, nil
}

// decode reads JSON, and refuses fields that do not exist or that come twice.
func decode(data []byte, into any) error {
	err := json.Unmarshal(data, into, json.RejectUnknownMembers(true))
	var semantic *json.SemanticError
	var syntactic *jsontext.SyntacticError
	switch {
	case errors.As(err, &semantic) && errors.Is(err, json.ErrUnknownName):
		return fmt.Errorf("column %d: there is no field %q; the fields are %s", semantic.ByteOffset+1,
			clip(semantic.JSONPointer.LastToken()), fields(into))
	case errors.As(err, &semantic):
		return fmt.Errorf("column %d: %s: %s", semantic.ByteOffset+1, clip(semantic.JSONPointer.LastToken()),
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

func semanticReason(e *json.SemanticError) string {
	if e.Err != nil {
		return e.Err.Error()
	}
	return fmt.Sprintf("a JSON %s is not possible here", e.JSONKind)
}

func clip(s string) string {
	if len(s) <= 60 {
		return s
	}
	return s[:60] + "…"
}
