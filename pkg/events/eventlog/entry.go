package eventlog

import (
	"bytes"
	"encoding/json"

	"archivist/pkg/events/envelope"
	"archivist/pkg/events/event"
	"archivist/pkg/kernel/table"
)

// maxFacts: facts that are larger are read from the event's row.
const maxFacts = table.MaxRowBytes - 8<<10

// entry is an event that is to be placed, with its row as it was read.
type entry struct {
	row   event.Row
	event envelope.Event
	log   string

	// facts is JSON; "" if they are too large for the reference.
	facts string

	// rank is its time, at least that of the subject's event before: by it the events of several
	// subjects are put in order, and those of one are never exchanged.
	rank int64
}

// newEntry is an event's row as it is to be placed. The log is decided by the event, and so is the
// same in each release.
func newEntry(r event.Row) (entry, error) {
	e, err := r.Envelope()
	if err != nil {
		return entry{}, err
	}

	var text bytes.Buffer
	enc := json.NewEncoder(&text)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(e.Facts()); err != nil {
		return entry{}, err
	}

	if text.Len() > maxFacts {
		text.Reset()
	}
	return entry{row: r, event: e, log: e.Log(), facts: text.String()}, nil
}

// reference is the row of a place, seq, of the event. now is when it got the place, in milliseconds
// since 1970.
func (e entry) reference(partition string, seq, now int64) *reference {
	return &reference{
		Head:        table.Head{PK: partitionKey(partition), SK: seqSK(seq)},
		SubjectType: e.row.SubjectType,
		SubjectID:   e.row.SubjectID,
		Version:     e.row.Version,
		Placed:      now,
		Facts:       e.facts,
	}
}
