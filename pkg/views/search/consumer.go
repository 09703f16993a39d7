package search

import (
	"context"

	"archivist/pkg/events/consumer"
	"archivist/pkg/events/event"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/views/history"
)

// Name of the consumer, and of its handler.
const Name = "search"

// maxBatch is how many events one call of the handler has at most. All of their objects
// become one snapshot of the index.
const maxBatch = consumer.MaxBatch

// Definition of the consumer that keeps the index: the objects that were created or changed, or
// whose formats were identified, each once in a window. A failure is one of the index or of the
// storage, never of one object, so the cursor waits for its end.
func Definition() consumer.Definition {
	return consumer.Definition{
		Name:        Name,
		Version:     2,
		Description: "Keeps the search index.",
		Filter: "Object+Create|Modify|Modify_Metadata|Add|Remove|Delete|Install:" +
			"ComponentItem+Modify{type=component.ran, component=format-identification}",
		Target:      consumer.Target{Handler: Name},
		MaxDepth:    consumer.AnyDepth,
		Order:       consumer.OrderSubject,
		Coalesce:    &consumer.Coalesce{},
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

	// Exists reports whether there is an object with that ARK: for Prune.
	Exists func(ctx context.Context, ark string) (bool, error)
}

// Handle updates the documents of the objects that the events are about. Every error is Unavailable: no
// event is to blame for it, and the same call may succeed later. The events of an object become one
// change, with the version of the newest of them. An object that is gone is removed, whatever the
// events say. It can be called again after any crash, and at the same time by several processes.
func (c Consumer) Handle(ctx context.Context, b consumer.Batch) ([]consumer.Failure, error) {
	at := map[string]int{}
	var changed []Change
	for _, e := range b.Events {
		ark := history.ObjectOf(e.Event)
		if ark == "" {
			continue // an item of something else
		}
		i, known := at[ark]
		if !known {
			i = len(changed)
			at[ark] = i
			changed = append(changed, Change{ARK: ark})
		}
		if e.Subject.Type == event.Object.String() { // the others count events of their own
			changed[i].Version = max(changed[i].Version, e.Version)
		}
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

// removal is newer than all events of an object. It is exact as a number of double precision, which
// many readers of JSON use (RFC 8259, section 6), and far above the number of events that an object can
// have.
const removal = 1 << 53

// Prune removes the documents of objects that do not exist, of the next page of documents. It is a
// consumer.Pruner: the events of an object that is made meanwhile are handled afterwards. It is for
// deletions of which the consumer has seen no event. next is "" at the end. After an error the same
// page is to be looked at again; what is removed by then stays removed.
func (c Consumer) Prune(ctx context.Context, cursor string) (next string, err error) {
	arks, next, err := c.Index.ARKs(ctx, cursor)
	if err != nil {
		return "", fault.New(fault.Unavailable, "search: %w", err)
	}

	var gone []Change
	for _, ark := range arks {
		exists, err := c.Exists(ctx, ark)
		if err != nil {
			return "", err
		}
		if !exists {
			gone = append(gone, Change{ARK: ark, Version: removal})
		}
	}

	if len(gone) == 0 {
		return next, nil
	}

	if err := c.Index.Update(ctx, gone, c.still); err != nil {
		return "", fault.New(fault.Unavailable, "search: %w", err)
	}
	return next, nil
}

// still reads an object that does not exist. One that was made meanwhile is an error, so that the page
// is repeated.
func (c Consumer) still(ctx context.Context, ark string) (*Document, error) {
	d, err := c.Read(ctx, ark)
	if err != nil {
		return nil, err
	}

	if d != nil {
		return nil, fault.New(fault.Stale, "%s was made meanwhile", ark)
	}
	return nil, nil
}
