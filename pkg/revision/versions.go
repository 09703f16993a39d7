package revision

import (
	"context"
	"encoding/json"
	"time"

	"archivist/pkg/archive"
	"archivist/pkg/consumer"
	"archivist/pkg/fault"
	"archivist/pkg/inventory"
	"archivist/pkg/table"
)

// VersionsName is the name of the consumer and of its handler.
const VersionsName = "object-archives"

// VersionsDefinition is the consumer that notifies the versions of objects that are archives. It begins at the oldest
// event: an archive can be registered before the consumer is there.
var VersionsDefinition = consumer.Definition{
	Name: VersionsName, Version: 1,
	Description: "Notifies the revision queue of each version of an object that is registered as an archive.",
	Filter:      "Version+Create",
	Target:      consumer.Target{Handler: VersionsName},
	Order:       consumer.OrderNone, Start: consumer.StartHorizon,
}

// Versions is the consumer's handler.
type Versions struct{ Store *Store }

// Handle notifies the versions of the events. Notices can come again and in any order, so events can, too.
func (v Versions) Handle(ctx context.Context, b consumer.Batch) ([]consumer.Failure, error) {
	return consumer.Each(ctx, b, nil, func(ctx context.Context, e consumer.Item) error {
		object, n, err := inventory.ParseVersionID(e.Subject.ID)
		if err != nil {
			return err
		}
		// The digest of the version's inventory is the transaction of the revision: see package object. An event that
		// does not have it says nothing of which version it is.
		var detail inventory.VersionDetail
		_ = json.Unmarshal(e.Detail, &detail)
		return v.Store.NotifyVersion(ctx, object, Notice{Revision: int64(n), Transaction: detail.Digest}, e.Time)
	})
}

// skew is how much the clocks of two functions differ at most.
const skew = time.Minute

// NotifyVersion notifies the archives of an object of a version that was recorded at a time. An archive that was
// registered later has looked at the object itself, and begins where it was then. One that is deleted meanwhile, or
// that stops because the version is another than it was, needs nothing more.
func (s *Store) NotifyVersion(ctx context.Context, object string, n Notice, recorded int64) error {
	n.Object = object
	return s.owners(ctx, table.Query{PK: objectKey(object, "").PK}, func(r lineRow) (bool, error) {
		a, err := s.known(ctx, r.Owner)
		if err == nil && recorded >= a.Created-skew.Milliseconds() {
			_, err = s.Notify(ctx, r.Owner, n, By{Actor: VersionsName})
		}
		if fault.Is(err, fault.NotFound) || fault.Is(err, fault.Conflict) {
			err = nil
		}
		return true, err
	})
}

// objectKey is the row that says that an object is an archive. It is there from the archive's registration to its
// deletion.
func objectKey(object, archive string) table.Key {
	return table.Key{PK: "ARCHIVEOF#" + object, SK: archive}
}

// linkObject puts into a transaction that an object is an archive, or is none any more.
func (s *Store) linkObject(ctx context.Context, tx *table.Tx, a *archiveRow, is bool) error {
	if a.Location.Kind != archive.Object {
		return nil
	}
	k := objectKey(a.Location.ARK, a.Name)
	r := &lineRow{Head: headOf(k), Owner: a.Name}
	err := s.get(ctx, k, r, nil, nil)
	switch {
	case err != nil:
	case is:
		put(tx, r, r.Rev)
	case r.Rev > 0:
		tx.Remove(r)
	}
	return err
}

// sameObject returns a Conflict if settings would make an archive of another object: versions of one object are no
// revisions of another.
func (a *archiveRow) sameObject(set Settings) error {
	if a.Location.ARK == set.Location.ARK {
		return nil
	}
	return fault.New(fault.Conflict, "location: the archive %s is that of %s and cannot become that of %s; delete it, "+
		"or take another name", a.Name, a.Location, set.Location)
}
