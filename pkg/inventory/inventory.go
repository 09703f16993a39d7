// Package inventory records what is preserved: objects, their versions, and
// the local ids by which depositors know them.
package inventory

import (
	"context"
	"fmt"

	"archivist/pkg/event"
	"archivist/pkg/fault"
	"archivist/pkg/table"
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
	LocalIDs   []string `dynamo:"local_ids,omitempty"`
	HeadOf     int      `dynamo:"head_version"`
	Created    int64    `dynamo:"created"`
	Modified   int64    `dynamo:"modified"`
	Digest     string   `dynamo:"inventory_digest"` // sha512 of the head's inventory
}

// Version is a version's row.
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

type localID struct {
	table.Head
	ARK string `dynamo:"ark"`
}

// reserved is the permanent row of an ark: it is never used for another object.
type reserved struct {
	table.Head
	Job string `dynamo:"job"`
}

func subject(ark string) event.Subject { return event.Subject{Type: event.Object, ID: ark} }
func objectKey(ark string) table.Key   { return subject(ark).Key() }
func versionKey(ark string, n int) table.Key {
	return table.Key{PK: objectKey(ark).PK, SK: fmt.Sprintf("V#%06d", n)}
}
func localKey(collection, id string) table.Key {
	return table.Key{PK: "LOCAL#" + collection + "#" + id, SK: "LOCAL"}
}

// ReservedKey is the key of an ark's permanent row.
func ReservedKey(ark string) table.Key { return table.Key{PK: "ARK#" + ark, SK: "ARK"} }

func head(k table.Key) table.Head { return table.Head{PK: k.PK, SK: k.SK} }

// Reserve puts the permanent row of a new ark into a transaction, which fails
// if the ark was ever used.
func Reserve(tx *table.Tx, ark, job string) {
	tx.Insert(&reserved{Head: head(ReservedKey(ark)), Job: job})
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

// ByLocalID returns the ark that a local id stands for in a collection, or "".
func (s Store) ByLocalID(ctx context.Context, collection, id string) (string, error) {
	var row localID
	err := s.Table.Get(ctx, localKey(collection, id), &row)
	if fault.Is(err, fault.NotFound) {
		return "", nil
	}
	return row.ARK, err
}

// Versions lists an object's versions, oldest first, a page at a time.
func (s Store) Versions(ctx context.Context, ark, cursor string) ([]Version, string, error) {
	var rows []Version
	next, err := s.Table.Page(ctx, table.Query{PK: objectKey(ark).PK, Prefix: "V#", Cursor: cursor}, &rows)
	return rows, next, err
}

// Collection lists a collection's arks, last changed first, a page at a time.
func (s Store) Collection(ctx context.Context, collection, cursor string) ([]string, string, error) {
	var rows []struct {
		table.Head
		ARK string `dynamo:"ark"`
	}
	next, err := s.Table.Page(ctx, table.Query{Index: "list", PK: "objects#" + collection, Desc: true, Limit: 50, Cursor: cursor}, &rows)
	arks := make([]string, len(rows))
	for i, r := range rows {
		arks[i] = r.ARK
	}
	return arks, next, err
}

// Record is a stored object to be recorded.
type Record struct {
	Object   Object    // as it shall be; ARK, Collection, Title, Who, When, LocalIDs, HeadOf and Digest are read
	Versions []Version // its versions beyond those that are recorded, oldest first
	Actor    string
}

// Known is how many versions of an object are recorded.
func (s Store) Known(ctx context.Context, ark string) (int, error) {
	o, err := s.Object(ctx, ark)
	if fault.Is(err, fault.NotFound) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	return o.HeadOf, nil
}

// Prepare reads what stands and returns what puts the record into a
// transaction. nil means that all of it is recorded already. A local id that is
// another object's is a Conflict.
func (s Store) Prepare(ctx context.Context, r Record, now int64) (func(*table.Tx) error, error) {
	row := Object{Head: head(objectKey(r.Object.ARK)), ARK: r.Object.ARK, Collection: r.Object.Collection}
	err := s.Table.Get(ctx, row.Key(), &row)
	if fault.Is(err, fault.NotFound) {
		row.Number, err = s.lastEvent(ctx, r.Object.ARK)
	}
	if err != nil {
		return nil, err
	}
	fresh, err := s.fresh(ctx, &r.Object)
	if err != nil {
		return nil, err
	}
	var versions []Version
	for _, v := range r.Versions {
		if v.Number > row.HeadOf {
			versions = append(versions, v)
		}
	}
	if len(versions) == 0 && len(fresh) == 0 {
		return nil, nil
	}
	kind := "modify"
	if row.Rev == 0 {
		kind = "create"
	}
	if len(versions) > 0 {
		row.Title, row.Who, row.When = r.Object.Title, r.Object.Who, r.Object.When
		row.LocalIDs, row.HeadOf, row.Digest = r.Object.LocalIDs, r.Object.HeadOf, r.Object.Digest
		row.Modified = versions[len(versions)-1].Created
		if row.Created == 0 {
			row.Created = versions[0].Created
		}
	}
	return func(tx *table.Tx) error {
		return put(tx, row, versions, fresh, event.New{Type: "object." + kind, Time: now, Actor: r.Actor, Component: "record",
			Detail: map[string]any{"version": row.HeadOf, "versions": len(versions), "localIds": fresh}})
	}, nil
}

// fresh are the local ids that stand for no object yet.
func (s Store) fresh(ctx context.Context, o *Object) (fresh []string, err error) {
	for _, id := range o.LocalIDs {
		ark, err := s.ByLocalID(ctx, o.Collection, id)
		switch {
		case err != nil:
			return nil, err
		case ark == "":
			fresh = append(fresh, id)
		case ark != o.ARK:
			return nil, fault.New(fault.Conflict, "the local id %q is that of %s, not of %s", id, ark, o.ARK)
		}
	}
	return fresh, nil
}

func put(tx *table.Tx, row Object, versions []Version, fresh []string, e event.New) error {
	row.Number++
	row.Head.Shelf, row.Head.Since = "objects#"+row.Collection, fmt.Sprintf("%013d#%s", row.Modified, row.ARK)
	if row.Rev == 0 {
		tx.Insert(&row)
	} else {
		tx.Save(&row)
	}
	for _, v := range versions {
		v.Head, v.ARK = head(versionKey(row.ARK, v.Number)), row.ARK
		tx.Insert(&v)
	}
	for _, id := range fresh {
		tx.Insert(&localID{Head: head(localKey(row.Collection, id)), ARK: row.ARK})
	}
	return event.Append(tx, subject(row.ARK), row.Number, e)
}

// lastEvent is the version of an object's last event, 0 if it has none: the
// history stands also where the row was lost.
func (s Store) lastEvent(ctx context.Context, ark string) (int64, error) {
	var rows []event.Row
	_, err := s.Table.Page(ctx, table.Query{PK: objectKey(ark).PK, Prefix: event.Prefix, Desc: true, Limit: 1}, &rows)
	if err != nil || len(rows) == 0 {
		return 0, err
	}
	return rows[0].Version, nil
}
