package event

import (
	"fmt"

	"archivist/pkg/envelope"
)

// upcasters bring an event of a type from one schema to the next.
var upcasters = map[form]func(e *envelope.Event) error{}

// form is a schema of a type of events.
type form struct {
	eventType string
	schema    int
}

// upcast brings an event to the next schema of its type.
func upcast(e *envelope.Event) error {
	up, known := upcasters[form{e.Type, e.Schema}]
	if !known {
		return fmt.Errorf("there is no upcaster to schema %d", e.Schema+1)
	}
	return up(e)
}
