package inventory

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"

	"archivist/pkg/event"
	"archivist/pkg/fault"
	"archivist/pkg/table"
)

// Record is a stored object to be recorded. All of it follows from the object.
type Record struct {
	Object   Object    // as it is stored: all but the row's own fields and the counted ones is read
	First    string    // the job that stored its first version
	Versions []Version // those that are missing, oldest first
	Actor    string
	Job      string // the one that stored the newest version just now; "" when rows are rebuilt
}

// Detail of the events of an object: what was recorded.
type Detail struct {
	Version  int      `json:"version"`       // the newest
	Versions int      `json:"versions"`      // rows of versions that were written with it
	LocalIDs []string `json:"localIds"`      // those that were not known before
	Job      string   `json:"job,omitempty"` // that stored the version; "" when rows were rebuilt
}

// Missing are the numbers of the versions up to head that have no row, in order.
func (s Store) Missing(ctx context.Context, ark string, head int) (numbers []int, err error) {
	next := 1
	for cursor, first := "", true; first || cursor != ""; first = false {
		var rows []Version
		if rows, cursor, err = s.Versions(ctx, ark, cursor); err != nil {
			return nil, err
		}
		for _, row := range rows {
			for ; next < row.Number && next <= head; next++ {
				numbers = append(numbers, next)
			}
			next = max(next, row.Number+1)
		}
	}
	for ; next <= head; next++ {
		numbers = append(numbers, next)
	}
	return numbers, nil
}

// readers bounds how many local ids are looked up side by side.
const readers = 16

// Fresh are those of an object's local ids that have no row yet. A Conflict names
// those that are another object's, and comes with the others.
func (s Store) Fresh(ctx context.Context, o *Object) (fresh []string, err error) {
	arks, errs := make([]string, len(o.LocalIDs)), make([]error, len(o.LocalIDs))
	gate := make(chan struct{}, readers)
	var wg sync.WaitGroup
	for i, id := range o.LocalIDs {
		gate <- struct{}{}
		wg.Go(func() {
			defer func() { <-gate }()
			arks[i], errs[i] = s.ByLocalID(ctx, o.Collection, id)
		})
	}
	wg.Wait()
	var taken []string
	for i, id := range o.LocalIDs {
		switch {
		case errs[i] != nil:
			return nil, errs[i]
		case arks[i] == "":
			fresh = append(fresh, id)
		case arks[i] != o.ARK:
			taken = append(taken, fmt.Sprintf("the local id %q is that of %s, not of %s", id, arks[i], o.ARK))
		}
	}
	if len(taken) > 0 {
		err = fault.New(fault.Conflict, "%s", strings.Join(taken[:min(len(taken), 20)], "; "))
	}
	return fresh, err
}

// PutLocalIDs puts rows of local ids into a transaction, which fails if there is one.
func PutLocalIDs(tx *table.Tx, o *Object, ids []string) {
	for _, id := range ids {
		tx.Insert(&localID{Head: head(localKey(o.Collection, id)), ARK: o.ARK})
	}
}

// PutVersions puts rows of versions into a transaction, which fails if there is one.
func PutVersions(tx *table.Tx, ark string, versions []Version) {
	for _, v := range versions {
		v.Head, v.ARK = head(versionKey(ark, v.Number)), ark
		tx.Insert(&v)
	}
}

// Prepare reads what stands and returns what puts the record into a transaction:
// the missing rows of its local ids and versions, of the ark's reservation, and the
// object's own. nil means that all of it is recorded already. A Conflict names the
// local ids that are another object's, and comes with what puts the rest; or it says
// what the rows have that the stored object has not, and comes with nil.
func (s Store) Prepare(ctx context.Context, r Record, now int64) (func(*table.Tx) error, error) {
	row := Object{Head: head(objectKey(r.Object.ARK)), ARK: r.Object.ARK, Collection: r.Object.Collection}
	err := s.Table.Get(ctx, row.Key(), &row)
	if fault.Is(err, fault.NotFound) {
		row.Number, err = s.lastEvent(ctx, r.Object.ARK)
	}
	if err != nil {
		return nil, err
	}
	if err := agree(&row, &r.Object); err != nil {
		return nil, err
	}
	reserved, err := s.Reserved(ctx, row.ARK)
	if err != nil {
		return nil, err
	}
	fresh, taken := s.Fresh(ctx, &r.Object)
	if taken != nil && !fault.Is(taken, fault.Conflict) {
		return nil, taken
	}
	is := row.with(r.Object)
	added := slices.DeleteFunc(slices.Clone(is.LocalIDs),
		func(id string) bool { return slices.Contains(row.LocalIDs, id) })
	held := reserved != nil && reserved.Collection == is.Collection && (r.First == "" || reserved.Job == r.First)
	if held && row.Rev > 0 && len(r.Versions) == 0 && len(fresh) == 0 && reflect.DeepEqual(row, is) {
		return nil, taken
	}
	return func(tx *table.Tx) error {
		if !held {
			reserve(tx, reserved, &is, r.First)
		}
		PutLocalIDs(tx, &is, fresh)
		PutVersions(tx, is.ARK, r.Versions)
		return is.put(tx, event.New{Time: now, Actor: r.Actor, Component: "record",
			Detail: Detail{is.HeadOf, len(r.Versions), added, r.Job}})
	}, taken
}

// agree returns a Conflict if a row is not one of the stored object, or an earlier
// one: rows are made from the storage root, and nothing there goes back.
func agree(row, stored *Object) error {
	switch {
	case row.Rev == 0:
		return nil
	case row.Collection != stored.Collection:
		return fault.New(fault.Conflict, "the row of %s is of another collection than the stored object", row.ARK)
	case row.HeadOf > stored.HeadOf:
		return fault.New(fault.Conflict, "the row of %s is at version %d, the stored object at version %d",
			row.ARK, row.HeadOf, stored.HeadOf)
	case row.HeadOf == stored.HeadOf && row.Digest != stored.Digest:
		return fault.New(fault.Conflict, "version %d of %s was recorded with the inventory digest %s, the stored "+
			"one is %s",
			row.HeadOf, row.ARK, row.Digest, stored.Digest)
	}
	return nil
}

// with is the row as it shall be for a stored object.
func (row Object) with(o Object) Object {
	row.Title, row.Who, row.When, row.HeadOf, row.Digest = o.Title, o.Who, o.When, o.HeadOf, o.Digest
	row.LocalIDs, row.LocalCount = o.LocalIDs, len(o.LocalIDs)
	if len(o.LocalIDs) > MaxListed {
		row.LocalIDs = o.LocalIDs[:MaxListed]
	}
	row.Created, row.Modified = o.Created, o.Modified
	row.Head.ListPK, row.Head.ListSK = "objects#"+row.Collection, fmt.Sprintf("%013d#%s", row.Modified, row.ARK)
	return row
}

// put writes the row with its event.
func (row *Object) put(tx *table.Tx, e event.New) error {
	row.Number++
	if e.Type = "object.modify"; row.Rev == 0 {
		e.Type = "object.create"
		tx.Insert(row)
	} else {
		tx.Save(row)
	}
	return event.Append(tx, subject(row.ARK), row.Number, e)
}

// reserve makes the ark's permanent row say which object it is.
func reserve(tx *table.Tx, prev *Reserved, o *Object, job string) {
	if prev == nil {
		Reserve(tx, o.ARK, o.Collection, job)
		return
	}
	next := *prev
	next.Collection, next.Job = o.Collection, job
	tx.Save(&next)
}

// lastEvent is the version of an object's last event, 0 if it has none: the
// history stands also where the row was lost.
func (s Store) lastEvent(ctx context.Context, ark string) (int64, error) {
	var rows []event.Row
	_, err := s.Table.Page(ctx, table.Query{PK: objectKey(ark).PK, Prefix: "EV#", Desc: true, Limit: 1}, &rows)
	if err != nil || len(rows) == 0 {
		return 0, err
	}
	return rows[0].Version, nil
}
