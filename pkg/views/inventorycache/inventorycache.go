// Package inventorycache keeps summaries of large inventories, so that a process that has just
// started finds a file of an object without reading an inventory of hundreds of MB.
//
// A consumer of events replaces the summary of an object when the object changes:
//
//	inventories/{place of the object in the storage root}/summary.json
//
// A reader compares the ETag in the summary with that of the inventory, by one request. So what it
// gets is never out of date, whether the consumer has handled the change or not.
package inventorycache

import (
	"context"
	"errors"

	"archivist/pkg/events/consumer"
	"archivist/pkg/kernel/bucket"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/objects/ocfl"
)

// Name of the consumer and of its handler.
const Name = "cache"

// Definition is the consumer that replaces summaries.
var Definition = consumer.Definition{
	Name:        Name,
	Version:     1,
	Description: "Replaces cached summaries of large inventories.",
	Filter:      "Object+Create|Modify",
	Target:      consumer.Target{Handler: Name},
	MaxDepth:    consumer.AnyDepth,
	Order:       consumer.OrderSubject,
	Coalesce:    &consumer.Coalesce{},
	Start:       consumer.StartHorizon,
}

// Least is the size from which on an inventory has a summary, in bytes: about 1,400 files. Smaller
// ones are read as fast as a summary.
const Least = 1 << 20

// Cache is the consumer's handler, and what readers use. A Cache that only reads needs no Least.
type Cache struct {
	Root    ocfl.Root
	Derived bucket.Bucket
	Least   int64 // see Least
}

// Handle replaces the summaries of objects. An error of S3, or the end of the call, makes the batch
// Unavailable: it is tried again. Any other error is the object's own, e.g. an inventory that cannot be
// read, and becomes a failure of its event.
func (c Cache) Handle(ctx context.Context, b consumer.Batch) ([]consumer.Failure, error) {
	return consumer.Each(ctx, b, nil, func(ctx context.Context, it consumer.Item) error {
		err := c.replace(ctx, it.Subject.ID)
		var s3 *bucket.Error
		if errors.As(err, &s3) || ctx.Err() != nil { // the object is not to blame
			return fault.New(fault.Unavailable, "inventorycache: %s: %w", it.Subject.ID, err)
		}
		return err
	})
}

// Key is where the summary of an object is.
func Key(id string) string { return "inventories/" + ocfl.Prefix(id) + "summary.json" }

// replace replaces the summary of an object. Of two calls at once the later may write the older
// summary; readers then read the inventory itself. An object that is gone loses its summary. One whose
// inventory has become smaller than Least keeps an old summary, which no reader uses: its ETag differs.
func (c Cache) replace(ctx context.Context, id string) error {
	stored, err := c.Root.Head(ctx, id)
	if fault.Is(err, fault.NotFound) {
		return c.Derived.Delete(ctx, Key(id))
	}

	if err != nil || stored.InventoryBytes() < c.Least {
		return err
	}

	text, err := stored.Summary()
	if err != nil {
		return err
	}
	return c.Derived.Put(ctx, Key(id), text, bucket.Condition{})
}

// Head is ocfl.Root.Head, from the summary if that is up to date. A cache that cannot be read is like
// an empty one, and so is one whose bucket has no name. It costs one request for the summary and one
// for the ETag of the inventory. The errors are those of ocfl.Root.Head: a missing object is a
// NotFound.
func (c Cache) Head(ctx context.Context, id string) (*ocfl.Stored, error) {
	if c.Derived.Name == "" {
		return c.Root.Head(ctx, id)
	}

	if text, _, err := c.Derived.Read(ctx, Key(id)); err == nil {
		stored, err := ocfl.ReadSummary(text)
		if err == nil && stored.ID == id {
			if same, err := c.Root.Same(ctx, stored); err == nil && same {
				return stored, nil
			}
		}
	}
	return c.Root.Head(ctx, id)
}
