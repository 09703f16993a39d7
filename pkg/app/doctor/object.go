package doctor

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"archivist/pkg/events/event"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/table"
	"archivist/pkg/objects/inventory"
	"archivist/pkg/objects/ocfl"
)

// checkObject checks an object's row: the object is stored, its newest version is recorded,
// and its history is complete. The check of the storage root compares the contents. It costs
// one HEAD of S3 and one query for each object.
func checkObject(ctx context.Context, x *rowCheck) error {
	var o inventory.Object
	if !x.decode(&o) {
		return nil
	}

	x.subject = o.ARK
	if x.PK != "OBJECT#"+o.ARK {
		x.add("row-key", restoreRow, nil, "the row says that it is %s", o.ARK)
		return nil
	}

	etag, err := x.root().ETag(ctx, o.ARK)
	if err != nil {
		return err
	}

	if etag == "" {
		x.add("object-stored", lostContent(o.ARK), nil,
			"version %d is recorded, but the storage root has no inventory of it", o.HeadOf)
	}

	var last []inventory.Version
	query := table.Query{PK: x.PK, Prefix: inventory.VersionPrefix, Desc: true, Limit: 1}
	if _, err := x.Queue.Table.Page(ctx, query, &last); err != nil {
		return err
	}

	found := 0
	if len(last) > 0 {
		found = last[0].Number
	}

	if found != o.HeadOf {
		x.rebuilt(etag, o.ARK, "version-row",
			"the newest version is %d, the newest with a row is %d", o.HeadOf, found)
	}

	should := o
	should.Place()
	err = errors.Join(x.history(ctx, subjectOf(event.Object, o.ARK), o.Number, ""), x.shown(ctx, &o))
	x.placed(o.Head, should.Head, false, func(tx *table.Tx) { tx.Save(&should) })
	return err
}

// rebuilt is a problem of the rows of an object, which are made again if it is stored. etag
// is that of the root inventory, "" if the storage root has none: what is lost there cannot
// be made from the rows, since they have no content.
func (x *rowCheck) rebuilt(etag, ark, invariant, evidence string, args ...any) {
	if etag == "" {
		x.add(invariant, lostContent(ark), nil, evidence, args...)
		return
	}
	x.add(invariant, "archivist object reindex "+ark, x.reindex(ark), evidence, args...)
}

// checkVersion checks that the version before this one is recorded, and the object itself. By
// induction over all rows, the versions of an object are then without gaps. The row of the
// object sorts before those of its versions, so both are usually the row before this one,
// without a read.
//
// Two versions by one job mean that a stage has stored twice, against the rule that a stored
// job has one version. That is looked at only where it costs no read.
func checkVersion(ctx context.Context, x *rowCheck) error {
	var v inventory.Version
	if !x.decode(&v) {
		return nil
	}

	ark := strings.TrimPrefix(x.PK, "OBJECT#")
	x.subject = ark
	if v.ARK != ark || inventory.VersionKey(ark, v.Number) != x.Key {
		x.add("row-key", restoreRow, nil, "the row says that it is %s v%d", v.ARK, v.Number)
		return nil
	}

	needs, what := table.Key{PK: x.PK, SK: "OBJECT"}, "the object"
	if v.Number > 1 {
		needs, what = inventory.VersionKey(ark, v.Number-1), fmt.Sprintf("version %d", v.Number-1)
	}

	var previous inventory.Version
	if x.before.Key == needs {
		twice := v.Number > 1 && x.before.Decode(&previous) == nil && v.Job != "" &&
			v.Job == previous.Job
		if twice {
			x.add("version-twice", "archivist object show "+ark, nil,
				"job %s has stored the versions %d and %d", v.Job,
				previous.Number, v.Number)
		}
		return nil
	}

	missing, err := x.missing(ctx, needs)
	if err != nil || !missing {
		return err
	}

	etag, err := x.root().ETag(ctx, ark)
	if err != nil {
		return err
	}
	x.rebuilt(etag, ark, "version-row", "version %d has a row, but %s has none", v.Number, what)
	return nil
}

// checkLocalID checks that the object of a local id is reserved. Without the reservation,
// another job could mint or take the same ARK.
func checkLocalID(ctx context.Context, x *rowCheck) error {
	var row struct {
		table.Head
		ARK string `dynamo:"ark"`
	}

	if !x.decode(&row) {
		return nil
	}

	missing, err := x.missing(ctx, inventory.ReservedKey(row.ARK))
	if err != nil || !missing {
		return err
	}

	etag, err := x.root().ETag(ctx, row.ARK)
	switch {
	case err != nil:
	case etag == "":
		x.add("local-id", "restore the row ARK#"+row.ARK+" from a backup of the table", nil,
			"it is the local id of %s, which is not reserved and not stored", row.ARK)
	default:
		x.add("local-id", "archivist object reindex "+row.ARK, x.reindex(row.ARK),
			"it is the local id of %s, which is stored, but not reserved", row.ARK)
	}
	return err
}

// checkReserved finds an ARK that is reserved at a registry, and that nothing will be stored under. A registry that
// cannot be asked is a finding, and the run goes on.
func checkReserved(ctx context.Context, x *rowCheck) error {
	if x.Registry == nil {
		return nil
	}

	ark := strings.TrimPrefix(x.PK, "ARK#")
	x.subject = ark
	left, err := x.Registry.Left(ctx, ark)
	switch {
	case fault.Is(err, fault.Unavailable), fault.Is(err, fault.Denied):
		x.add("ark-registry", "archivist consumer show ezid", nil, "it could not be asked for: %v", err)
		return nil
	case left:
		x.add("ark-reserved", "", func(ctx context.Context) error { return x.Registry.Free(ctx, ark) },
			"it is reserved at EZID, the job that reserved it is over, and nothing is stored under it")
	}
	return err
}

// recordedAs compares the rows of a stored object with it, and returns what is wrong, ""
// if nothing is. repairable reports whether reindexing corrects it.
//
// The storage root is the truth of what is stored, so rows that are behind it are made again
// from it. Not so if they are ahead of it, or know another inventory of the same version:
// then content was lost or replaced, and rows that agree with the damage would hide it.
func (d Doctor) recordedAs(ctx context.Context,
	s *ocfl.Stored) (why string, repairable bool, err error) {
	rows := d.Reindexer.Inventory
	o, err := rows.Object(ctx, s.ID)
	if fault.Is(err, fault.NotFound) {
		return "the object has no row", true, nil
	}

	if err != nil {
		return "", false, err
	}

	switch {
	case o.HeadOf > s.Head:
		return fmt.Sprintf("version %d is recorded, the stored object is at version %d", o.HeadOf,
			s.Head), false, nil
	case o.HeadOf < s.Head:
		return fmt.Sprintf("version %d is recorded, the stored object is at version %d", o.HeadOf,
			s.Head), true, nil
	case o.Digest != s.Digest:
		return fmt.Sprintf("version %d was recorded with the inventory digest %s, the stored inventory has %s",
			o.HeadOf, o.Digest, s.Digest), false, nil
	}

	missing, err := rows.Missing(ctx, s.ID, s.Head)
	if err != nil || len(missing) > 0 {
		return fmt.Sprintf("the versions %v have no row", missing), true, err
	}

	reserved, err := rows.Reserved(ctx, s.ID)
	if err != nil || reserved == nil {
		return "the ARK has no reservation", true, err
	}

	fresh, err := rows.Fresh(ctx, o)
	switch {
	case fault.Is(err, fault.Conflict):
		return err.Error(), false, nil
	case err != nil || len(fresh) > 0:
		return fmt.Sprintf("its local ids %q have no row", fresh), true, err
	}
	return "", false, nil
}
