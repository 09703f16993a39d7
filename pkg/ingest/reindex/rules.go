package reindex

import (
	"context"
	"fmt"
	"strings"
	"time"

	"archivist/pkg/events/check"
	"archivist/pkg/events/event"
	"archivist/pkg/ingest"
	"archivist/pkg/ingest/queue"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/table"
	"archivist/pkg/objects/inventory"
	"archivist/pkg/objects/ocfl"
)

// Rules are the rules of what is recorded of stored objects: its rows are made again from the storage root.
func (x Reindexer) Rules(pg *check.Page) check.Rules {
	r := &rules{Reindexer: x, pg: pg}
	return check.Rules{Kinds: []check.Kind{
		check.Subjects(event.Object, r.checkObject),
		{PK: "OBJECT", SK: inventory.VersionPrefix, Rule: r.checkVersion},
		{PK: "LOCAL", SK: "LOCAL", Rule: r.checkLocalID},
		{PK: "ARK", SK: "ARK"},
		{PK: runsPK, SK: runPrefix, Expires: true},
		check.Subjects(event.Job, r.checkCompleted),
	}}
}

// rules are the rules of a page.
type rules struct {
	Reindexer
	pg *check.Page
}

// Lost is what a person does about lost keys of an object.
func Lost(ark string) string { return LostKeys(ocfl.Prefix(ark)) }

// LostKeys is what a person does about lost keys below a prefix.
func LostKeys(prefix string) string {
	return "restore the objects below " + prefix +
		" in the storage bucket: aws s3api list-object-versions shows " +
		"earlier versions and delete markers"
}

// checker is the actor of what the doctor makes again.
const checker = "doctor"

// Repair writes the rows of an object from the storage root, at most until then. It can be repeated at any time.
// If the time ends before it has, its error says so.
func (x Reindexer) Repair(ctx context.Context, ark string, until time.Time) error {
	_, done, err := x.Object(ctx, ark, checker, until)
	if err != nil {
		return err
	}
	if !done {
		return fault.New(fault.Unavailable, "the time was not enough; run it again")
	}
	return nil
}

func (r *rules) repair(ark string) func(context.Context) error {
	return func(ctx context.Context) error { return r.Repair(ctx, ark, r.pg.Until) }
}

// checkObject checks an object's row: the object is stored, its newest version is recorded,
// and its history is complete. The check of the storage root compares the contents. It costs
// one HEAD of S3 and one query for each object.
func (r *rules) checkObject(ctx context.Context, x *check.Row) error {
	var o inventory.Object
	if !x.Into(&o) {
		return nil
	}

	x.Subject = o.ARK
	if x.PK != "OBJECT#"+o.ARK {
		x.Add("row-key", check.Restore, nil, "the row says that it is %s", o.ARK)
		return nil
	}

	etag, err := r.Root.ETag(ctx, o.ARK)
	if err != nil {
		return err
	}

	if etag == "" {
		x.Add("object-stored", Lost(o.ARK), nil,
			"version %d is recorded, but the storage root has no inventory of it", o.HeadOf)
	}

	var last []inventory.Version
	query := table.Query{PK: x.PK, Prefix: inventory.VersionPrefix, Desc: true, Limit: 1}
	if _, err := x.Table.Page(ctx, query, &last); err != nil {
		return err
	}

	found := 0
	if len(last) > 0 {
		found = last[0].Number
	}

	if found != o.HeadOf {
		r.rebuilt(x, etag, o.ARK, "version-row",
			"the newest version is %d, the newest with a row is %d", o.HeadOf, found)
	}

	should := o
	should.Place()
	err = x.History(ctx, event.Subject{Type: event.Object, ID: o.ARK}, o.Number, "")
	x.Placed(o.Head, should.Head, func(tx *table.Tx) { tx.Save(&should) })
	return err
}

// rebuilt is a problem of the rows of an object, which are made again if it is stored. etag
// is that of the root inventory, "" if the storage root has none: what is lost there cannot
// be made from the rows, since they have no content.
func (r *rules) rebuilt(x *check.Row, etag, ark, invariant, evidence string, args ...any) {
	if etag == "" {
		x.Add(invariant, Lost(ark), nil, evidence, args...)
		return
	}
	x.Add(invariant, "archivist object reindex "+ark, r.repair(ark), evidence, args...)
}

// checkVersion checks that the version before this one is recorded, and the object itself. By
// induction over all rows, the versions of an object are then without gaps. The row of the
// object sorts before those of its versions, so both are usually the row before this one,
// without a read.
//
// Two versions by one job mean that a stage has stored twice, against the rule that a stored
// job has one version. That is looked at only where it costs no read.
func (r *rules) checkVersion(ctx context.Context, x *check.Row) error {
	var v inventory.Version
	if !x.Into(&v) {
		return nil
	}

	ark := strings.TrimPrefix(x.PK, "OBJECT#")
	x.Subject = ark
	if v.ARK != ark || inventory.VersionKey(ark, v.Number) != x.Key {
		x.Add("row-key", check.Restore, nil, "the row says that it is %s v%d", v.ARK, v.Number)
		return nil
	}

	needs, what := table.Key{PK: x.PK, SK: "OBJECT"}, "the object"
	if v.Number > 1 {
		needs, what = inventory.VersionKey(ark, v.Number-1), fmt.Sprintf("version %d", v.Number-1)
	}

	var previous inventory.Version
	if x.Before.Key == needs {
		twice := v.Number > 1 && x.Before.Decode(&previous) == nil && v.Job != "" &&
			v.Job == previous.Job
		if twice {
			x.Add("version-twice", "archivist object show "+ark, nil,
				"job %s has stored the versions %d and %d", v.Job,
				previous.Number, v.Number)
		}
		return nil
	}

	missing, err := x.Missing(ctx, needs)
	if err != nil || !missing {
		return err
	}

	etag, err := r.Root.ETag(ctx, ark)
	if err != nil {
		return err
	}
	r.rebuilt(x, etag, ark, "version-row", "version %d has a row, but %s has none", v.Number, what)
	return nil
}

// checkLocalID checks that the object of a local id is reserved. Without the reservation,
// another job could mint or take the same ARK.
func (r *rules) checkLocalID(ctx context.Context, x *check.Row) error {
	var row inventory.LocalID

	if !x.Into(&row) {
		return nil
	}

	missing, err := x.Missing(ctx, inventory.ReservedKey(row.ARK))
	if err != nil || !missing {
		return err
	}

	etag, err := r.Root.ETag(ctx, row.ARK)
	switch {
	case err != nil:
	case etag == "":
		x.Add("local-id", "restore the row ARK#"+row.ARK+" from a backup of the table", nil,
			"it is the local id of %s, which is not reserved and not stored", row.ARK)
	default:
		x.Add("local-id", "archivist object reindex "+row.ARK, r.repair(row.ARK),
			"it is the local id of %s, which is stored, but not reserved", row.ARK)
	}
	return err
}

// checkCompleted checks that the version of a Completed job is recorded. The check of the storage
// root compares what is recorded with what is stored. The stages write the version's row
// before the job is Completed, so no order of events explains one that is missing.
func (r *rules) checkCompleted(ctx context.Context, x *check.Row) error {
	var j queue.Job
	if !x.Into(&j) || j.State != ingest.Completed {
		return nil
	}
	x.Subject = "job:" + j.Job.ID

	if j.Primary == "" || j.ObjectVersion == 0 {
		x.Add("completed-version", "archivist job show "+j.Job.ID, nil,
			"the job is Completed, but names no stored version")
		return nil
	}

	missing, err := x.Missing(ctx, inventory.VersionKey(j.Primary, j.ObjectVersion))
	if err != nil || !missing {
		return err
	}

	stored, err := r.Root.Head(ctx, j.Primary)
	switch {
	case fault.Is(err, fault.NotFound):
		x.Add("completed-stored", Lost(j.Primary), nil,
			"the job is Completed as %s v%d, which is not in the storage root", j.Primary,
			j.ObjectVersion)
	case err != nil:
		return err
	case stored.Head < j.ObjectVersion:
		x.Add("completed-stored", Lost(j.Primary), nil,
			"the job is Completed as %s v%d; the stored object is at v%d", j.Primary,
			j.ObjectVersion, stored.Head)
	default:
		x.Add("completed-recorded", "archivist object reindex "+j.Primary, r.repair(j.Primary),
			"the job is Completed as %s v%d, which is stored, but not recorded", j.Primary,
			j.ObjectVersion)
	}
	return nil
}

// Recorded compares the rows of a stored object with it, and returns what is wrong, ""
// if nothing is. repairable reports whether reindexing corrects it.
//
// The storage root is the truth of what is stored, so rows that are behind it are made again
// from it. Not so if they are ahead of it, or know another inventory of the same version:
// then content was lost or replaced, and rows that agree with the damage would hide it.
func (x Reindexer) Recorded(ctx context.Context, s *ocfl.Stored) (why string, repairable bool, err error) {
	rows := x.Inventory
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
