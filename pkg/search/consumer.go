package search

import (
	"context"

	"archivist/pkg/consumer"
	"archivist/pkg/fault"
)

// Name of the consumer, and of its handler.
const Name = "search"

// maxBatch is how many events one call of the handler has at most. All of their objects
// become one snapshot of the index.
const maxBatch = consumer.MaxBatch

// Definition of the consumer that keeps the index: the objects that were created or changed,
// each once in a window. A failure is one of the index or of the storage, never of one
// object, so the cursor waits for its end.
func Definition() consumer.Definition {
	return consumer.Definition{Name: Name, Version: 1,
		Description: "Keeps the search index.",
		Filter:      "Object+Create|Modify|Modify_Metadata|Add|Remove|Delete|Install",
		Target:      consumer.Target{Handler: Name},
		Order:       consumer.OrderSubject,
		Coalesce:    &consumer.Merge{},
		Batch:       maxBatch,
		Concurrency: 1,
		OnFailure:   consumer.Block,
		Start:       consumer.StartHorizon,
		Required:    true,
	}
}

// Consumer makes the documents of objects follow their events.
type Consumer struct {
	Index Index
	Read  Reader
}

// Handle updates the documents of the objects that the events are about. Every error is
// Unavailable: no event is to blame for it, and the same call may succeed later.
func (c Consumer) Handle(ctx context.Context, b consumer.Batch) ([]consumer.Failure, error) {
	at := map[string]int{}
	var changed []Change
	for _, e := range b.Events {
		i, known := at[e.Subject.ID]
		if !known {
			i = len(changed)
			at[e.Subject.ID] = i
			changed = append(changed, Change{ARK: e.Subject.ID})
		}
		changed[i].Version = max(changed[i].Version, e.Version)
	}
	if len(changed) == 0 {
		return nil, nil
	}
	if c.Index == nil {
		return nil, fault.New(fault.Unavailable, "search: this function has no index")
	}
	if err := c.Index.Update(ctx, changed, c.Read); err != nil {
		return nil, fault.New(fault.Unavailable, "search: %w", err)
	}
	return nil, nil
}
