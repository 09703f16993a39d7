package revision

import (
	"context"
	"encoding/json"
	"time"

	"archivist/pkg/events/consumer"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/table"
	"archivist/pkg/objects/inventory"
)

// VersionsName is the name of the consumer and of its handler. It is also the actor of what it
// notifies.
const VersionsName = "object-archives"

// VersionsDefinition is the consumer that notifies the versions of objects that are archives. It
// begins at the oldest event: an archive can be registered before the consumer is there.
var VersionsDefinition = consumer.Definition{
	Name:        VersionsName,
	Version:     1,
	Description: "Notifies the revision queue of each version of an object that is registered as an archive.",
	Filter:      "Version+Create",
	Target:      consumer.Target{Handler: VersionsName},
	Order:       consumer.OrderNone,
	Start:       consumer.StartHorizon,
}

// Versions is the consumer's handler. Store needs no Open: it only records notices.
type Versions struct{ Store *Store }

// Handle notifies the versions of the events. Notices can come again and in any order, so events
// can, too. An event that fails is tried again by the consumer, without the others.
func (v Versions) Handle(ctx context.Context, b consumer.Batch) ([]consumer.Failure, error) {
	return consumer.Each(ctx, b, nil, func(ctx context.Context, e consumer.Item) error {
		object, n, err := inventory.ParseVersionID(e.Subject.ID)
		if err != nil {
			return err
		}
		// The digest of the version's inventory is the transaction of the revision: see package
		// object. An event that does not have it says nothing of which version it is.
		var detail inventory.VersionDetail
		_ = json.Unmarshal(e.Detail, &detail)
		return v.Store.NotifyVersion(ctx, object,
			Notice{Revision: int64(n), Transaction: detail.Digest}, e.Time)
	})
}

// skew is how much the clocks of two functions differ at most: of the one that recorded a version,
// and of the one that registered the archive.
const skew = time.Minute

// NotifyVersion notifies the archives of an object of a version that was recorded at a time, in
// milliseconds since 1970. An archive that was registered later has looked at the object itself,
// and begins where it was then. One that is deleted meanwhile, or that stops because the version is
// another than it was, needs nothing more. It may be repeated; an error of one archive keeps it
// from going on to the next.
func (s *Store) NotifyVersion(ctx context.Context, object string, n Notice, recorded int64) error {
	n.Object = object
	return s.owners(ctx, table.Query{PK: objectKey(object, "").PK}, func(r lineRow) (bool, error) {
		err := s.notifySince(ctx, r.Owner, n, recorded)
		if fault.Is(err, fault.NotFound) || fault.Is(err, fault.Conflict) {
			err = nil
		}
		return true, err
	})
}

// notifySince notifies an archive of a version, unless that was recorded before its registration.
func (s *Store) notifySince(ctx context.Context, archive string, n Notice, recorded int64) error {
	a, err := s.known(ctx, archive)
	if err != nil || recorded < a.Created-skew.Milliseconds() {
		return err
	}
	_, err = s.Notify(ctx, archive, n, By{Actor: VersionsName})
	return err
}
