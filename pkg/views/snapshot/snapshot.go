// Package snapshot reads everything that is stored, as events: with them a consumer is
// rebuilt, although the events that led there may be older than the log.
package snapshot

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"slices"

	"golang.org/x/sync/errgroup"

	"archivist/pkg/events/consumer"
	"archivist/pkg/events/envelope"
	"archivist/pkg/events/event"
	"archivist/pkg/ingest/collection"
	"archivist/pkg/kernel/bucket"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/objects/inventory"
	"archivist/pkg/objects/ocfl"
)

// Root lists the stored objects; an ocfl.Root is one. The methods are explained there.
type Root interface {
	Objects(ctx context.Context, cursor, to string) (keys []string, next string, err error)
	At(ctx context.Context, key string) (id string, err error)
}

// Reader reads what is stored. It is the consumer.State of a deployment. It only reads. What changes
// meanwhile is in the log as well.
type Reader struct {
	Root        Root
	Inventory   inventory.Store
	Collections collection.Store
	Log         consumer.Log // its partitions name the collections
}

// perObject is about how many events an object has: itself, and its versions. It divides the limit of a
// page, which counts snapshots, into a number of objects. An object of many versions makes a page
// larger; the limit is not exact.
const perObject = 2

// parallel is how many objects are read at once. Each takes a request to S3 and some to the table,
// which mostly wait.
const parallel = 8

// Snapshots returns the snapshots of the next objects of one part, of at most 16: those whose place in
// the storage root begins with its hexadecimal digit. The first part begins with the collections that
// have events. An object that is damaged is one unreadable snapshot. next is "" at the end of the part.
// A page may be empty before the end. A part other than 0 to 15 of 16 is an Invalid; other errors are
// those of S3 or the table, and the page is to be read again with the same cursor.
func (r Reader) Snapshots(ctx context.Context, part, parts int, cursor string,
	limit int) (all []consumer.Snapshot,
	next string, err error) {
	if parts != 16 || part < 0 || part >= parts {
		return nil, "", fault.New(fault.Invalid, "snapshot: part %d of %d; there are 16", part,
			parts)
	}

	if cursor == "" && part == 0 {
		if all, err = r.collections(ctx); err != nil {
			return nil, "", err
		}
	}

	if cursor == "" {
		// Keys of objects begin with a hexadecimal digit, so a digit alone is before all keys of its
		// part.
		cursor = fmt.Sprintf("%x", part)
	}

	to := ""
	if part < parts-1 {
		to = fmt.Sprintf("%x", part+1)
	}

	keys, next, err := r.Root.Objects(ctx, cursor, to)
	if err != nil {
		return nil, "", err
	}

	if most := max(1, limit/perObject); len(keys) > most {
		keys = keys[:most]
		// Keys are cursors: the next page begins after this one.
		next = keys[most-1]
	}

	objects, err := r.objects(ctx, keys)
	return append(all, objects...), next, err
}

// objects reads the objects that are declared at keys, in their order. One whose first version was
// never committed, or that has no row, is left out. An error of one ends all: the page is repeated. The
// order of the result does not depend on which was read first.
func (r Reader) objects(ctx context.Context, keys []string) ([]consumer.Snapshot, error) {
	all := make([][]consumer.Snapshot, len(keys))
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(parallel)
	for i, key := range keys {
		g.Go(func() (err error) {
			all[i], err = r.object(ctx, key)
			return err
		})
	}

	err := g.Wait()
	return slices.Concat(all...), err
}

// object reads the object that is declared at a key. It is read a second time before it counts as
// damaged: the first answer may have been cut off. An object that is damaged must not stop a rebuild of
// all others: it becomes a snapshot that says so, and its subject is the key, since the id could not be
// read. The result is nil for what is not there.
func (r Reader) object(ctx context.Context, key string) ([]consumer.Snapshot, error) {
	ark, err := r.Root.At(ctx, key)
	if damaged(ctx, err) {
		ark, err = r.Root.At(ctx, key)
	}

	if damaged(ctx, err) {
		unrecorded, failure := r.unrecorded(ctx, key)
		if failure != nil || unrecorded {
			return readable(nil), failure
		}

		e := envelope.Event{
			ID:      fmt.Sprintf("%s.%s", envelope.Snapshot, key),
			Type:    envelope.Snapshot,
			Subject: envelope.Ref{Type: event.Object.String(), ID: key},
			Action:  envelope.Create,
		}
		return []consumer.Snapshot{{Event: e, Unreadable: err.Error()}}, nil
	}

	if fault.Is(err, fault.NotFound) {
		return nil, nil // its first version was never committed
	}

	if err != nil {
		return readable(nil), err
	}

	events, err := r.Inventory.Snapshot(ctx, ark)
	if fault.Is(err, fault.NotFound) {
		return nil, nil // it has no row
	}
	return readable(events), err
}

// unrecorded reports whether an object that cannot be read has no row, if its key tells its id. A job may be writing
// its first version just now.
func (r Reader) unrecorded(ctx context.Context, key string) (bool, error) {
	id := ocfl.IDOf(ocfl.Folder(key))
	if id == "" {
		return false, nil
	}

	_, err := r.Inventory.Object(ctx, id)
	if fault.Is(err, fault.NotFound) {
		return true, nil
	}
	return false, err
}

// damaged reports whether an error of the storage root is about what is stored, not about S3 or the
// call. An error with a kind, a request that failed, and the end of the call pass; reading the object
// again would help there. What is left is about the bytes that are stored.
func damaged(ctx context.Context, err error) bool {
	var s3 *bucket.Error
	var network net.Error
	return err != nil && ctx.Err() == nil && fault.Of(err) == "" && !errors.As(err, &s3) &&
		!errors.As(err, &network)
}

// readable makes snapshots of events that could be read. It is never nil.
func readable(events []envelope.Event) []consumer.Snapshot {
	all := make([]consumer.Snapshot, len(events))
	for i, e := range events {
		all[i].Event = e
	}
	return all
}

// collections are the snapshots of all collections, with their profiles. A collection is known by its
// partitions in the log, which it has from its first event on; the partition of what belongs to no
// collection is left out. A collection whose log was split has several partitions, and one snapshot.
// Their order is that of the partitions.
func (r Reader) collections(ctx context.Context) (all []consumer.Snapshot, err error) {
	partitions, err := r.Log.Partitions(ctx)
	if err != nil {
		return nil, err
	}

	seen := map[string]bool{envelope.Site: true}
	for _, p := range partitions {
		if seen[p.Log] {
			continue
		}

		seen[p.Log] = true
		profile, _, err := r.Collections.Profile(ctx, p.Log)
		if err != nil {
			return nil, err
		}

		e := envelope.Event{
			ID:          fmt.Sprintf("%s.%s.%s", envelope.Snapshot, event.Collection, p.Log),
			Subject:     envelope.Ref{Type: event.Collection.String(), ID: p.Log},
			Version:     1,
			Type:        envelope.Snapshot,
			Action:      envelope.Create,
			Outcome:     event.Success,
			Identifiers: []string{p.Log},
			Schema:      1,
		}

		if e.Detail, err = json.Marshal(profile); err != nil {
			return nil, err
		}

		all = append(all, consumer.Snapshot{Event: e})
	}
	return all, nil
}
