package component

import (
	"context"

	"archivist/pkg/events/consumer"
	"archivist/pkg/kernel/fault"
)

// FollowerName is the name of the consumer and of its handler.
const FollowerName = "components"

// FollowerDefinition is the consumer that brings items up to date with their subjects. It selects
// no events of items: these are written together with the item. It handles events however long
// their chain of causes is: an item that was behind would be worked on by what is not so any
// longer. The chain ends at the MaxDepth of each component.
var FollowerDefinition = consumer.Definition{
	Name:        FollowerName,
	Version:     1,
	Description: "Says for each object, version and batch which components can work on it.",
	Filter:      "Object+All:Version+All:Batch+All",
	Target:      consumer.Target{Handler: FollowerName},
	Order:       consumer.OrderSubject,
	OwnEvents:   consumer.OwnHandle,
	MaxDepth:    consumer.AnyDepth,
	Start:       consumer.StartHorizon,
	Required:    true,
}

// Follower is the consumer's handler. It reads the events of the subject that the item does not
// know yet, so the result does not depend on which event it is called with, in which order, or how
// often. A delay is harmless, too: an item is brought up to date again when it is taken.
type Follower struct{ Store *Store }

// Handle brings the items of the events' subjects up to date. A damaged item is a failure of its
// own.
func (f Follower) Handle(ctx context.Context, b consumer.Batch) ([]consumer.Failure, error) {
	known := map[string]int64{} // the versions of subjects that are known to their items
	return consumer.Each(ctx, b, nil, func(ctx context.Context, e consumer.Item) error {
		id := IDOf(e.Subject)
		if id == "" || e.Version > 0 && e.Version <= known[id] {
			return nil
		}

		it, err := f.Store.Sync(ctx, id)
		switch {
		case fault.Is(err, fault.NotFound): // its events have expired, and a snapshot is not one
			return nil
		case err != nil:
			return err
		}

		known[id] = it.Applied
		return nil
	})
}
