package inventory

import (
	"cmp"
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"archivist/pkg/events/event"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/table"
)

// Record is a stored object to be recorded. All of it follows from the object.
type Record struct {
	Object    Object    // as it is stored; the row's own fields, and the counted ones, are not read
	First     string    // the job that stored its first version
	Versions  []Version // those that are missing, oldest first
	Withdrawn []string  // local ids that are the object's no more; see Release
	Actor     string
	Job       string // the one that stored the newest version just now; "" when rows are rebuilt
	Change    string // what that job has changed, if it brought no content; see Detail
}

// Detail of the events of an object: what was recorded.
type Detail struct {
	Version  int      `json:"version"`       // the newest
	Versions int      `json:"versions"`      // rows of versions that were written with it
	LocalIDs []string `json:"localIds"`      // those that were not known before
	Job      string   `json:"job,omitempty"` // that stored the version; "" when rows were rebuilt
	// Change is what a version without new content is: "correction", or what it decides about the object, e.g.
	// "withdraw".
	Change string `json:"change,omitempty"`
	// RetainUntil is the last day of the retention, if the version changes that.
	RetainUntil string `json:"retainUntil,omitempty"`
	// EmbargoUntil is the last day of the embargo, if the version changes that.
	EmbargoUntil string `json:"embargoUntil,omitempty"`
}

// Missing are the numbers of the versions up to head that have no row, in order. Any of them may be
// missing after a restore of the table, so all rows are looked through.
func (s Store) Missing(ctx context.Context, ark string, head int) (numbers []int, err error) {
	next := 1
	for cursor, first := "", true; first || cursor != ""; first = false {
		var rows []Version
		rows, cursor, err = s.Versions(ctx, ark, cursor)
		if err != nil {
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

// readers is how many local ids are looked up at once.
const readers = 16

// Fresh returns those of an object's local ids that have no row yet. A Conflict names
// those that are another object's; the others are returned with it.
func (s Store) Fresh(ctx context.Context, o *Object) (fresh []string, err error) {
	arks, err := s.byLocalIDs(ctx, o.Collection, o.LocalIDs)
	if err != nil {
		return nil, err
	}

	var conflicts []string
	for i, id := range o.LocalIDs {
		switch arks[i] {
		case "":
			fresh = append(fresh, id)
		case o.ARK:
		default:
			conflicts = append(conflicts,
				fmt.Sprintf("the local id %q is that of %s, not of %s", id, arks[i], o.ARK))
		}
	}

	if len(conflicts) > 0 {
		err = fault.New(fault.Conflict, "%s",
			strings.Join(conflicts[:min(len(conflicts), mostNamed)], "; "))
	}
	return fresh, err
}

// mostNamed is how many conflicts an error names.
const mostNamed = 20

// byLocalIDs looks up the ark of each local id, "" where it has none.
func (s Store) byLocalIDs(ctx context.Context, collection string, ids []string) ([]string, error) {
	arks := make([]string, len(ids))
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(readers)
	for i, id := range ids {
		g.Go(func() (err error) {
			arks[i], err = s.ByLocalID(ctx, collection, id)
			return err
		})
	}
	return arks, g.Wait()
}

// PutLocalIDs puts rows of local ids into a transaction, which fails if there is one. So of two
// objects that claim an id at the same time only one gets it.
func PutLocalIDs(tx *table.Tx, o *Object, ids []string) {
	for _, id := range ids {
		tx.Insert(&LocalID{Head: head(localKey(o.Collection, id)), ARK: o.ARK})
	}
}

// Release removes the rows of local ids that were withdrawn from an object, so that they are free for another one.
// One that is another object's by now is left alone. A Stale means that a row was changed
// meanwhile: the call can be repeated.
func (s Store) Release(ctx context.Context, o *Object, withdrawn []string, newID func() string) error {
	rows := make([]LocalID, len(withdrawn))
	g, reading := errgroup.WithContext(ctx)
	g.SetLimit(readers)
	for i, id := range withdrawn {
		g.Go(func() error {
			err := s.Table.Get(reading, localKey(o.Collection, id), &rows[i])
			if fault.Is(err, fault.NotFound) {
				return nil
			}
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}

	rows = slices.DeleteFunc(rows, func(row LocalID) bool { return row.ARK != o.ARK })
	for some := range slices.Chunk(rows, releasedAtOnce) {
		tx := s.Table.Begin(newID())
		for i := range some {
			tx.Remove(&some[i])
		}
		if err := tx.Commit(ctx); err != nil {
			return err
		}
	}
	return nil
}

// releasedAtOnce is how many rows one transaction removes. DynamoDB takes 100 (TransactWriteItems).
const releasedAtOnce = 50

// Prepare returns a function that puts the record into a transaction: the missing rows of
// its local ids and versions, of the ark's reservation, and the object's own. nil means
// that all of it is recorded already.
//
// A Conflict names either local ids that are another object's, or what the rows have that
// the stored object does not have. In the first case the function puts the other rows; in
// the second it is nil.
func (s Store) Prepare(ctx context.Context, r Record, now int64) (func(*table.Tx) error, error) {
	prev, err := s.row(ctx, &r.Object)
	if err != nil {
		return nil, err
	}

	reserved, err := s.Reserved(ctx, prev.ARK)
	if err != nil {
		return nil, err
	}

	fresh, conflict := s.Fresh(ctx, &r.Object)
	if conflict != nil && !fault.Is(conflict, fault.Conflict) {
		return nil, conflict
	}

	next := prev.with(r.Object)
	held := reserved.isOf(&next, r.First)
	// Then nothing is written: a reindex of what is recorded makes no event.
	recorded := held && len(r.Versions) == 0 && len(fresh) == 0 && prev.Rev > 0 &&
		reflect.DeepEqual(prev, next)
	if recorded {
		return nil, conflict
	}

	putVersions, err := s.PrepareVersions(ctx, r, now)
	if err != nil {
		return nil, err
	}
	return func(tx *table.Tx) error {
		if !held {
			reserve(tx, reserved, &next, r.First)
		}

		PutLocalIDs(tx, &next, fresh)
		if err := putVersions(tx); err != nil {
			return err
		}

		e := event.New{
			Time:      now,
			Actor:     r.Actor,
			Component: "record",
			Before:    prev.properties(),
			Detail: Detail{
				Version:  next.HeadOf,
				Versions: len(r.Versions),
				LocalIDs: fit(without(next.LocalIDs, prev.LocalIDs)),
				Job:      r.Job,
				Change:   r.Change,

				RetainUntil:  changed(prev.Retention, next.Retention),
				EmbargoUntil: changed(prev.Embargo, next.Embargo),
			},
		}
		return next.put(tx, r, e)
	}, conflict
}

// changed is the last day of a decision that a row has, and the one before has not; else "".
func changed(prev, next *Decision) string {
	if next == nil || prev != nil && prev.Until == next.Until {
		return ""
	}
	return next.Until
}

// row reads the row of a stored object, or makes a new one, without a revision. It
// returns a Conflict if the row cannot be that of the stored object.
func (s Store) row(ctx context.Context, o *Object) (Object, error) {
	row := Object{Head: head(objectKey(o.ARK)), ARK: o.ARK, Collection: o.Collection}
	err := s.Table.Get(ctx, row.Key(), &row)
	if fault.Is(err, fault.NotFound) {
		// Events outlive the row. A number that has an event already would be refused.
		row.Number, err = s.lastEvent(ctx, o.ARK)
	}
	if err == nil {
		err = agree(&row, o)
	}
	return row, err
}

// isOf reports whether the reservation names the object's collection, and the job that
// stored the first version, if that is known.
func (r *Reserved) isOf(o *Object, first string) bool {
	return r != nil && r.Collection == o.Collection && (first == "" || r.Job == first)
}

// without are the ids of a list that another does not have.
func without(ids, others []string) []string {
	return slices.DeleteFunc(slices.Clone(ids),
		func(id string) bool { return slices.Contains(others, id) })
}

// agree returns a Conflict unless a row describes the stored object, or an earlier state
// of it: rows are made from the storage root, where versions are never removed.
func agree(row, stored *Object) error {
	switch {
	case row.Rev == 0:
		return nil
	case row.Collection != stored.Collection:
		return fault.New(fault.Conflict,
			"the row of %s is of another collection than the stored object", row.ARK)
	case row.HeadOf > stored.HeadOf:
		return fault.New(fault.Conflict,
			"the row of %s is at version %d, the stored object at version %d",
			row.ARK, row.HeadOf, stored.HeadOf)
	case row.HeadOf == stored.HeadOf && row.Digest != stored.Digest:
		return fault.New(fault.Conflict,
			"version %d of %s was recorded with the inventory digest %s, "+
				"the stored inventory has %s", row.HeadOf, row.ARK, row.Digest, stored.Digest)
	}
	return nil
}

// Place puts the row at its place in the index "list": last changed last. Thirteen digits hold
// milliseconds until the year 2286, so the texts sort as the times do.
func (row *Object) Place() {
	row.Head.ListPK = "objects#" + row.Collection
	row.Head.ListSK = fmt.Sprintf("%013d#%s", row.Modified, row.ARK)
}

// with is the row that a stored object should have.
func (row Object) with(o Object) Object {
	row.Title, row.Who, row.When, row.HeadOf, row.Digest = o.Title, o.Who, o.When, o.HeadOf,
		o.Digest
	row.LocalIDs, row.LocalCount = o.LocalIDs, len(o.LocalIDs)
	if len(o.LocalIDs) > MaxListed {
		row.LocalIDs = o.LocalIDs[:MaxListed]
	}
	row.Created, row.Modified, row.Policies = o.Created, o.Modified, o.Policies
	row.Place()
	return row
}

// put writes the row with its event. An object is created once: if its row was lost, its history goes on.
func (row *Object) put(tx *table.Tx, r Record, e event.New) error {
	e.Type = "object.modify"
	if row.Number == 0 {
		e.Type = "object.create"
	}

	row.Number++
	e.After = row.properties()
	e.Parents, e.Identifiers, e.Objects = row.parents(), row.identifiers(), r.acted(row)
	tx.InsertOrSave(row)
	return event.Append(tx, subject(row.ARK), row.Number, e)
}

// reserve makes the ark's permanent row say which object it is. A row that says something else is
// corrected: the storage root decides. Who does not know the job leaves the one that is known.
func reserve(tx *table.Tx, prev *Reserved, o *Object, job string) {
	if prev == nil {
		Reserve(tx, o.ARK, o.Collection, job)
		return
	}
	next := *prev
	next.Collection, next.Job = o.Collection, cmp.Or(job, prev.Job)
	tx.Save(&next)
}

// lastEvent is the version of an object's last event, 0 if it has none. If the row was
// lost, the history continues from it.
func (s Store) lastEvent(ctx context.Context, ark string) (int64, error) {
	var rows []event.Row
	_, err := s.Table.Page(ctx, table.Query{
		PK:     objectKey(ark).PK,
		Prefix: "EV#",
		Desc:   true,
		Limit:  1,
	}, &rows)
	if err != nil || len(rows) == 0 {
		return 0, err
	}
	return rows[0].Version, nil
}
