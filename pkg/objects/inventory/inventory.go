// Package inventory records what is preserved: objects, their versions, and the local ids
// by which depositors know them.
//
// Its rows are an index of the storage root, and can be made again from there at any
// time (package reindex). An object has these rows:
//
//	OBJECT#{ark}            OBJECT    the object and its newest version
//	OBJECT#{ark}            V#{n}     a version
//	OBJECT#{ark}            EV#{n}    an event of its history
//	LOCAL#{collection}#{id} LOCAL     the object that a local id names in a collection
//	ARK#{ark}               ARK       the ark is reserved, permanently
//
// The last two are put before anything of the object is stored, so that two submissions
// with one identifier cannot make two objects.
package inventory

import (
	"context"
	"fmt"
	"time"

	"archivist/pkg/events/event"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/table"
)

// Object is a preserved object's row. Times are milliseconds since 1970.
type Object struct {
	table.Head
	Number     int64    `dynamo:"version"` // of its events
	ARK        string   `dynamo:"ark"`
	Collection string   `dynamo:"coll"`
	Title      string   `dynamo:"title,omitempty"`
	Who        string   `dynamo:"who,omitempty"`
	When       string   `dynamo:"when_said,omitempty"`
	LocalIDs   []string `dynamo:"local_ids,omitempty"`      // the first of them, MaxListed at most
	LocalCount int      `dynamo:"local_id_count,omitempty"` // of all
	HeadOf     int      `dynamo:"head_version"`
	Created    int64    `dynamo:"created"`
	Modified   int64    `dynamo:"modified"`
	Digest     string   `dynamo:"inventory_digest"` // sha512 of the head's inventory

	// Repaired is when a file of the object, in either storage root, was last restored, in milliseconds since
	// 1970; 0: never.
	Repaired int64 `dynamo:"repaired_ms,omitempty"`

	Policies
}

// Version is a version's row. It never changes once it is written. Created is in milliseconds since
// 1970.
type Version struct {
	table.Head
	ARK     string `dynamo:"ark"`
	Number  int    `dynamo:"ocfl_version"`
	Created int64  `dynamo:"created"`
	Job     string `dynamo:"job,omitempty"`
	Files   int    `dynamo:"files"`
	Bytes   int64  `dynamo:"bytes"`
	Digest  string `dynamo:"inventory_digest"`
}

// LocalID is the row of a local id in a collection: the object that it names.
type LocalID struct {
	table.Head
	ARK string `dynamo:"ark"`
}

// MaxListed is how many local ids an object's row lists. An object may have more:
// each has a row of its own.
const MaxListed = 100

// Reserved is the permanent row of an ark: it is never used for another object, nor by
// another collection. Job is the job that reserved it; once there is a version, the job
// that stored the first.
type Reserved struct {
	table.Head
	Job        string `dynamo:"job"`
	Collection string `dynamo:"coll,omitempty"`
}

func subject(ark string) event.Subject { return event.Subject{Type: event.Object, ID: ark} }
func objectKey(ark string) table.Key   { return subject(ark).Key() }

// VersionPrefix begins the sort keys of versions.
const VersionPrefix = "V#"

// VersionKey is the key of a version's row. With leading zeros, keys sort as numbers do.
func VersionKey(ark string, n int) table.Key {
	return table.Key{PK: objectKey(ark).PK, SK: fmt.Sprintf("%s%06d", VersionPrefix, n)}
}

// localKey is the key of a local id. The name of a collection has no "#", so two pairs never have
// one key.
func localKey(collection, id string) table.Key {
	return table.Key{PK: "LOCAL#" + collection + "#" + id, SK: "LOCAL"}
}

// ReservedKey is the key of an ark's permanent row.
func ReservedKey(ark string) table.Key { return table.Key{PK: "ARK#" + ark, SK: "ARK"} }

func head(k table.Key) table.Head { return table.Head{PK: k.PK, SK: k.SK} }

// Reserve puts the permanent row of an ark into a transaction, which fails if
// there is one.
func Reserve(tx *table.Tx, ark, collection, job string) {
	tx.Insert(&Reserved{Head: head(ReservedKey(ark)), Job: job, Collection: collection})
}

// Store reads the inventory.
type Store struct{ Table *table.Table }

// Object reads an object. A missing one is a NotFound.
func (s Store) Object(ctx context.Context, ark string) (*Object, error) {
	var row Object
	if err := s.Table.Get(ctx, objectKey(ark), &row); err != nil {
		if fault.Is(err, fault.NotFound) {
			return nil, fault.New(fault.NotFound, "there is no object %s", ark)
		}
		return nil, err
	}
	return &row, nil
}

// Objects reads objects, all at once, in the order of their ARKs. One that is missing is left out.
func (s Store) Objects(ctx context.Context, arks []string) ([]*Object, error) {
	keys := make([]table.Key, len(arks))
	for i, ark := range arks {
		keys[i] = objectKey(ark)
	}
	found, err := s.Table.Many(ctx, keys)
	if err != nil {
		return nil, err
	}

	var rows []*Object
	for _, k := range keys {
		if raw, there := found[k]; there {
			var row Object
			if err := raw.Decode(&row); err != nil {
				return nil, err
			}
			rows = append(rows, &row)
		}
	}
	return rows, nil
}

// Recorded is the newest version of an object that is on record, and the sha512 of its inventory; 0 if
// the object has no row. See ocfl.Root.
func (s Store) Recorded(ctx context.Context, ark string) (head int, digest string, err error) {
	o, err := s.Object(ctx, ark)
	if fault.Is(err, fault.NotFound) {
		return 0, "", nil
	}

	if err != nil {
		return 0, "", err
	}
	return o.HeadOf, o.Digest, nil
}

// Version reads the row of a version. A missing one is a NotFound.
func (s Store) Version(ctx context.Context, ark string, n int) (row Version, err error) {
	err = s.Table.Get(ctx, VersionKey(ark, n), &row)
	if fault.Is(err, fault.NotFound) {
		err = fault.New(fault.NotFound, "version %d of %s is not recorded", n, ark)
	}
	return row, err
}

// VersionDigest is the recorded sha512 of the inventory of a version, "" if the version has no row.
func (s Store) VersionDigest(ctx context.Context, ark string, n int) (string, error) {
	row, err := s.Version(ctx, ark, n)
	if fault.Is(err, fault.NotFound) {
		return "", nil
	}
	return row.Digest, err
}

// Reserved reads the permanent row of an ark, nil if it was never used.
func (s Store) Reserved(ctx context.Context, ark string) (*Reserved, error) {
	row := Reserved{Head: head(ReservedKey(ark))}
	err := s.Table.Get(ctx, row.Key(), &row)
	if fault.Is(err, fault.NotFound) {
		return nil, nil
	}
	return &row, err
}

// ByLocalID returns the ark that a local id stands for in a collection, or "".
func (s Store) ByLocalID(ctx context.Context, collection, id string) (string, error) {
	var row LocalID
	err := s.Table.Get(ctx, localKey(collection, id), &row)
	if fault.Is(err, fault.NotFound) {
		return "", nil
	}
	return row.ARK, err
}

// Versions lists an object's versions, oldest first, a page at a time. An object that is not
// recorded has an empty page.
func (s Store) Versions(ctx context.Context, ark, cursor string) ([]Version, string, error) {
	var rows []Version
	next, err := s.Table.Page(ctx, table.Query{
		PK:     objectKey(ark).PK,
		Prefix: VersionPrefix,
		Cursor: cursor,
	}, &rows)
	return rows, next, err
}

// Collection lists a collection's arks, last changed first, a page at a time. The index may lag: an
// object that was recorded just now may be missing.
func (s Store) Collection(ctx context.Context, collection,
	cursor string) ([]string, string, error) {
	var rows []struct {
		table.Head
		ARK string `dynamo:"ark"`
	}

	next, err := s.Table.Page(ctx, table.Query{
		Index:  "list",
		PK:     "objects#" + collection,
		Desc:   true,
		Limit:  50,
		Cursor: cursor,
	}, &rows)

	arks := make([]string, len(rows))
	for i, r := range rows {
		arks[i] = r.ARK
	}
	return arks, next, err
}

// Open returns a Denied if the object is withdrawn, or under an embargo at a time: none of its files is given out.
func (o *Object) Open(now time.Time) error {
	switch until := o.EmbargoUntil(now); {
	case o.Withdrawal != nil:
		return fault.New(fault.Denied,
			"%s is withdrawn since %s: %s", o.ARK, o.Withdrawal.At, o.Withdrawal.Reason)
	case until != "":
		return fault.New(fault.Denied,
			"%s is under an embargo until %s: %s", o.ARK, until, o.Embargo.Reason)
	}
	return nil
}

// EmbargoUntil is the last day of the embargo that an object is under at a time, "" if there is none.
func (o *Object) EmbargoUntil(now time.Time) string {
	if o.Embargo == nil || !Lasts(o.Embargo.Until, now) {
		return ""
	}
	return o.Embargo.Until
}
