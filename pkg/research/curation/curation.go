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

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"archivist/pkg/kernel/fault"
)

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
