package event

import (
	"encoding/json"
	"fmt"

	"archivist/pkg/events/envelope"
	"archivist/pkg/kernel/table"
)

// Row is one event (source: the object-model-events text, "Contents of an Event"). Its key is that
// of the subject and the version, "EV#000000000001". Time is in milliseconds since 1970. Detail,
// Before and After are JSON, typed per event type and schema, "" for none. Names of attributes are
// stored, and stay. Envelope has the fields' meanings.
type Row struct {
	table.Head
	ID          string `dynamo:"id"`
	SubjectType string `dynamo:"subject_type"`
	SubjectID   string `dynamo:"subject_id"`
	Version     int64  `dynamo:"version"`
	Type        string `dynamo:"event_type"`
	Time        int64  `dynamo:"at_ms"`
	Outcome     string `dynamo:"outcome"`
	Detail      string `dynamo:"detail,omitempty"`
	Actor       string `dynamo:"actor"`
	Component   string `dynamo:"component"`
	Tx          string `dynamo:"tx_id"`
	Schema      int    `dynamo:"schema_version"`

	TxIndex     int               `dynamo:"tx_index"`
	TxCount     int               `dynamo:"tx_count"`
	Software    string            `dynamo:"component_version,omitempty"`
	Modules     []envelope.Module `dynamo:"modules,omitempty"`
	Request     string            `dynamo:"request_id,omitempty"`
	Cause       envelope.Cause    `dynamo:"cause,omitempty"`
	Objects     []envelope.Ref    `dynamo:"objects,omitempty"`
	Parents     []envelope.Ref    `dynamo:"parents,omitempty"`
	Identifiers []string          `dynamo:"identifiers,omitempty"`
	Before      string            `dynamo:"was,omitempty"`
	After       string            `dynamo:"is_now,omitempty"`

	// The place in the log. Seq 0: it has none yet. Package eventlog sets them; nothing else of
	// an event ever changes.
	Partition string `dynamo:"log_name,omitempty"`
	Seq       int64  `dynamo:"log_seq,omitempty"`
}

// Subject returns what the event is about. An unknown type, one of a newer release, is an error.
func (r Row) Subject() (Subject, error) {
	for _, t := range Types {
		if t.name == r.SubjectType {
			return Subject{Type: t, ID: r.SubjectID}, nil
		}
	}
	return Subject{}, fmt.Errorf("event: %s is about a %q, which this release does not know",
		r.Key(), r.SubjectType)
}

// payload is stored JSON, nil for none.
func payload(stored string) json.RawMessage {
	if stored == "" || stored == "null" {
		return nil
	}
	return json.RawMessage(stored)
}
