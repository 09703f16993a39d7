package queue

import (
	"context"
	"errors"
	"slices"

	"archivist/pkg/fault"
	"archivist/pkg/ingest"
	"archivist/pkg/table"
)

// Reservation is a row that is owned by a job: a slot, space, or a lock. It is
// inserted by the transaction that grants it and deleted by the one that
// leaves, so it cannot be given back twice and cannot drift.
type Reservation struct {
	table.Head
	Owner      string `dynamo:"owned_by"` // job id
	Bytes      int64  `dynamo:"bytes,omitempty"`
	Collection string `dynamo:"coll,omitempty"`
}

// Partitions of the rows that count: what is free is the capacity less these.
const (
	slotPK  = "SLOT"
	spacePK = "SPACE"
)

func slotKey(job string) table.Key  { return table.Key{PK: slotPK, SK: job} }
func spaceKey(job string) table.Key { return table.Key{PK: spacePK, SK: job} }

// LockKey is the key of a lock's row, e.g. of "ark#ark:/99999/fk4tq65d6k".
func LockKey(name string) table.Key { return table.Key{PK: "LOCK#" + name, SK: "LOCK"} }

// missingRows are rows that a job should own and that are not there.
type missingRows []table.Key

// missingRows returns which rows of a job a change failed for because they are not
// there; none if anything else was not as it should be.
func (q *Queue) missingRows(ctx context.Context, err error, j *ingest.Job) (missing missingRows) {
	var ce *table.ConditionError
	if !errors.As(err, &ce) {
		return nil
	}
	var owned []table.Key
	if j.HasSlot {
		owned = append(owned, slotKey(j.ID))
	}
	if j.HasSpace {
		owned = append(owned, spaceKey(j.ID))
	}
	for _, name := range j.Locks {
		owned = append(owned, LockKey(name))
	}
	for _, name := range j.QueuedLocks() {
		owned = append(owned, lineKey(name, j.ID))
	}
	for _, k := range ce.Keys {
		var row Reservation
		err := q.Table.Get(ctx, k, &row)
		if !slices.Contains(owned, k) || err != nil && !fault.Is(err, fault.NotFound) || err == nil && row.Owner == j.ID {
			return nil
		}
		missing = append(missing, k)
	}
	return missing
}

// reserve puts into tx what a change of a job takes and gives back, but for the
// rows that are missing.
func reserve(tx *table.Tx, prev, next ingest.Job, missing missingRows) {
	grant := func(k table.Key, bytes int64) {
		tx.Insert(&Reservation{Head: head(k), Owner: next.ID, Bytes: bytes, Collection: next.Collection})
	}
	remove := func(k table.Key) {
		if !slices.Contains(missing, k) {
			tx.RemoveOwned(k, next.ID)
		}
	}
	switch {
	case next.HasSlot && !prev.HasSlot:
		grant(slotKey(next.ID), 0)
	case prev.HasSlot && !next.HasSlot:
		remove(slotKey(next.ID))
	}
	switch {
	case next.HasSpace && (!prev.HasSpace || slices.Contains(missing, spaceKey(next.ID))):
		grant(spaceKey(next.ID), next.SpaceNeeded)
	case prev.HasSpace && !next.HasSpace:
		remove(spaceKey(next.ID))
	case next.HasSpace && prev.SpaceNeeded != next.SpaceNeeded:
		tx.Count(spaceKey(next.ID), map[string]int64{"bytes": next.SpaceNeeded - prev.SpaceNeeded})
	}
	each := func(had, has []string, key func(name string) table.Key) {
		for _, l := range has {
			if !slices.Contains(had, l) {
				grant(key(l), 0)
			}
		}
		for _, l := range had {
			if !slices.Contains(has, l) {
				remove(key(l))
			}
		}
	}
	each(prev.Locks, next.Locks, LockKey)
	each(prev.QueuedLocks(), next.QueuedLocks(), func(name string) table.Key { return lineKey(name, next.ID) })
}

// lineKey is a job's place in the line before a lock. Job ids rise with the
// submissions, so the line is in their order.
func lineKey(name, job string) table.Key { return table.Key{PK: LockKey(name).PK, SK: "WAITS#" + job} }

// blockedBy returns the first of the job's wanted locks that is not its turn: who
// owns the lock, or who stands in line before it.
func (q *Queue) blockedBy(ctx context.Context, j *ingest.Job) (lock, owner string, err error) {
	for _, l := range j.LockKeys() {
		if owner, err = q.before(ctx, l, j.ID); err != nil || owner != "" {
			return l, owner, err
		}
	}
	return "", "", nil
}

// before returns who owns a lock, or stands first in line for it; "" if that is
// the job, or nobody.
func (q *Queue) before(ctx context.Context, lock, job string) (owner string, err error) {
	var rows []Reservation
	if _, err := q.Table.Page(ctx, table.Query{PK: LockKey(lock).PK, Limit: 2}, &rows); err != nil {
		return "", err
	}
	for _, row := range rows { // the lock sorts before the line
		if row.Owner != job {
			return row.Owner, nil
		}
		if row.SK != LockKey(lock).SK {
			break
		}
	}
	return "", nil
}

// free counts what the gates can give out now.
func (q *Queue) free(ctx context.Context) (ingest.Free, error) {
	f := ingest.Free{Slots: q.Settings.MaxInFlight, Space: q.Settings.Space, Capacity: q.Settings.Space, Reserve: q.Settings.Reserve, Share: q.Settings.Share, Patience: q.Settings.Patience, Taken: map[string]int{}}
	err := q.each(ctx, table.Query{PK: slotPK, Limit: 1000}, func(s Reservation) {
		if s.Owner == "" {
			return // not a slot: an event of a collection of that name, by an earlier release
		}
		f.Slots--
		f.Taken[s.Collection]++
	})
	if err != nil {
		return f, err
	}
	err = q.each(ctx, table.Query{PK: spacePK, Limit: 1000}, func(s Reservation) { f.Space -= s.Bytes })
	return f, err
}

func (q *Queue) each(ctx context.Context, query table.Query, f func(Reservation)) error {
	for {
		var page []Reservation
		next, err := q.Table.Page(ctx, query, &page)
		if err != nil {
			return err
		}
		for _, s := range page {
			f(s)
		}
		if query.Cursor = next; next == "" {
			return nil
		}
	}
}
