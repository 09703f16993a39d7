// Package reindex writes the rows of the inventory that are missing, from the storage
// root alone.
//
// Each stored version contains the object's identifiers, its collection and the list of
// its files. So the inventory can be rebuilt after its table was lost or restored to an
// earlier time. A job that has stored a version records it in the same way.
//
//	x := reindex.Reindexer{Root: root, Inventory: objects, NewID: newID, Preserved: queue.Preserved, Now: time.Now}
//	changed, done, err := x.Object(ctx, "ark:/99999/fk4...", "ada", until)
package reindex

import (
	"context"
	"errors"
	"fmt"
	"time"

	"archivist/pkg/ingest"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/table"
	"archivist/pkg/objects/aip"
	"archivist/pkg/objects/inventory"
	"archivist/pkg/objects/ocfl"
)

// Limits of the rows of one transaction. The last one has as many local ids and versions
// as fit in addition to what a job at its limits releases; those before have nothing else.
const (
	idsAtLast      = ingest.MaxLocalIDs
	versionsAtLast = 5  // each with its event
	rowsAtOnce     = 50 // two for a version: it has an event
)

// ErrStopped means that the time is up. What was written stays; the same call continues.
var ErrStopped = errors.New("reindex: the time is up")

// Reindexer reads stored objects and writes rows.
type Reindexer struct {
	Root      ocfl.Root
	Inventory inventory.Store
	NewID     func() string // of transactions
	Now       func() time.Time

	// Preserved notes on a failed job that it stored a version after all: its worker
	// committed too late to note it.
	Preserved func(ctx context.Context, job, ark string, version int) error
}

// By is who requested that rows are written.
type By struct {
	Actor string
	Job   string // the job that stored the newest version, "" if a person asks
	// Change is what that job has changed, if it brought no content; see [ingest.Job.Change].
	Change string
	Known  [][]byte // small system files that the job wrote: they need not be read again

	// Digest is the sha512 of the root inventory that the job has committed, or found unchanged, as
	// Version; "" if that is not known. It vouches for the inventory.
	Digest  string
	Version int
}

// Missing reads a stored object and writes those of its missing rows that do not fit into
// one transaction: local ids first, then versions. It returns a function that puts the
// rest into a transaction, or nil if no row is missing; see [inventory.Store.Prepare]. A
// Conflict names local ids that are another object's.
func (x Reindexer) Missing(ctx context.Context, ark string, by By,
	until time.Time) (func(*table.Tx) error, error) {
	stored, err := x.stored(ctx, ark, by)
	if err != nil {
		return nil, err
	}

	for _, file := range by.Known { // a file is used only if the object names its digest
		stored.Know(file)
	}

	r, err := aip.Head(x.Root, stored).Record(ctx)
	if err != nil {
		return nil, err
	}

	r.Actor = by.Actor
	if by.Job != "" && stored.Job(stored.Head) == by.Job {
		r.Job, r.Change = by.Job, by.Change
	}

	if err := x.Inventory.Release(ctx, &r.Object, r.Withdrawn, x.NewID); err != nil {
		return nil, err
	}

	if len(r.Object.LocalIDs) > idsAtLast {
		err := x.putLocalIDs(ctx, &r.Object, idsAtLast, until)
		if err != nil && !fault.Is(err, fault.Conflict) { // Prepare returns the conflict
			return nil, err
		}
	}

	r.Versions, err = x.versions(ctx, stored, r, by.Job, until)
	if err != nil {
		return nil, err
	}
	return x.Inventory.Prepare(ctx, r, x.Now().UnixMilli())
}

// stored reads an object that can be trusted. A damaged one is a *ocfl.DamagedError: rows that are
// made from it would vouch for the damage.
func (x Reindexer) stored(ctx context.Context, ark string, by By) (*ocfl.Stored, error) {
	// The usual case of Record: one request instead of a judgement. Another digest is judged as
	// usual.
	if by.Digest != "" {
		stored, err := x.Root.Head(ctx, ark)
		if err == nil && stored.Digest == by.Digest {
			return stored, nil
		}
	}

	v, err := x.Root.Judge(ctx, ark)
	switch {
	case err != nil:
		return nil, err
	case v.Trust == ocfl.Damaged:
		return nil, v.Err()
	case by.Version > 0 && (v.Object == nil || v.Object.Head < by.Version):
		return nil, &ocfl.DamagedError{
			ID:  ark,
			Why: fmt.Sprintf("its version %d was committed, and is gone", by.Version),
		}
	case v.Trust == ocfl.Unused:
		return nil, fault.New(fault.NotFound, "there is no object %s in the storage root", ark)
	}
	return v.Object, nil
}

// LocalIDs writes the missing rows of an object's local ids. A Conflict names those that
// are another object's; the others are written.
func (x Reindexer) LocalIDs(ctx context.Context, o *inventory.Object, until time.Time) error {
	return x.putLocalIDs(ctx, o, 0, until)
}

// ReserveLocalIDs writes the missing rows of an object's local ids, all or none: a
// Conflict names those that are another object's.
func (x Reindexer) ReserveLocalIDs(ctx context.Context, o *inventory.Object) error {
	fresh, err := x.Inventory.Fresh(ctx, o)
	if err != nil || len(fresh) == 0 {
		return err
	}
	return x.commit(ctx,
		func(tx *table.Tx) error { inventory.PutLocalIDs(tx, o, fresh); return nil })
}

// putLocalIDs leaves the last rows, at most that many, for another transaction.
func (x Reindexer) putLocalIDs(ctx context.Context, o *inventory.Object, last int,
	until time.Time) error {
	fresh, conflict := x.Inventory.Fresh(ctx, o)
	if conflict != nil && !fault.Is(conflict, fault.Conflict) {
		return conflict
	}

	for len(fresh) > last {
		if !x.Now().Before(until) {
			return ErrStopped
		}
		chunk := fresh[:min(rowsAtOnce, len(fresh)-last)]
		err := x.commit(ctx,
			func(tx *table.Tx) error { inventory.PutLocalIDs(tx, o, chunk); return nil })
		if err != nil {
			return err
		}
		fresh = fresh[len(chunk):]
	}
	return conflict
}

// versions writes the missing rows of an object's versions but for the last ones, which
// it returns. The earlier ones first: what is written when the time is up is not read again.
func (x Reindexer) versions(
	ctx context.Context, stored *ocfl.Stored, r inventory.Record, job string, until time.Time,
) (last []inventory.Version, err error) {
	missing, err := x.Inventory.Missing(ctx, stored.ID, stored.Head)
	if err != nil {
		return nil, err
	}

	for i, n := range missing {
		if len(last) == rowsAtOnce {
			if err := x.putVersions(ctx, r, last); err != nil {
				return nil, err
			}
			last = nil
		}

		if i > 0 && !x.Now().Before(until) {
			return nil, errors.Join(x.putVersions(ctx, r, last), ErrStopped)
		}

		row, err := x.version(ctx, stored, n, job)
		if err != nil {
			return nil, err
		}

		last = append(last, row)
	}

	// All but the newest, whose row goes with that of the object.
	if n := len(last) - 1; n >= versionsAtLast {
		if err := x.putVersions(ctx, r, last[:n]); err != nil {
			return nil, err
		}
		last = last[n:]
	}
	return last, nil
}

// version reads the row of a version. If it is not by the job that is recorded now, its
// job has failed after it stored the version. Preserved leaves a job of any other state, or without
// a row, as it is.
func (x Reindexer) version(ctx context.Context, stored *ocfl.Stored, n int,
	job string) (inventory.Version, error) {
	row, err := aip.Of(x.Root, stored, n).Row(ctx)
	if err == nil && row.Job != "" && row.Job != job {
		err = x.Preserved(ctx, row.Job, stored.ID, n)
	}
	return row, err
}

// putVersions writes the rows of versions of a recorded object, with their events.
func (x Reindexer) putVersions(ctx context.Context, r inventory.Record,
	versions []inventory.Version) error {
	if len(versions) == 0 {
		return nil
	}
	r.Versions = versions
	put, err := x.Inventory.PrepareVersions(ctx, r, x.Now().UnixMilli())
	if err != nil {
		return err
	}
	return x.commit(ctx, put)
}

// commit commits one transaction. A Stale means that a row was written meanwhile.
func (x Reindexer) commit(ctx context.Context, put func(*table.Tx) error) error {
	tx := x.Inventory.Table.Begin(x.NewID())
	if err := put(tx); err != nil {
		return err
	}
	return tx.Commit(ctx)
}
