package queue

import (
	"context"
	"errors"
	"slices"

	"archivist/pkg/fault"
	"archivist/pkg/ingest"
	"archivist/pkg/table"
)

// Scarce is a row that is owned by a job: a slot, space, or a lock. It is
// inserted by the transaction that grants it and deleted by the one that
// leaves, so it cannot be given back twice and cannot drift.
type Scarce struct {
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

// goneRows are rows that a job should own and that are not there.
type goneRows []table.Key

// goneRows returns which rows of a job a change failed for because they are not
// there; none if anything else was not as it should be.
func (q *Queue) goneRows(ctx context.Context, err error, j *ingest.Job) (gone goneRows) {
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
	for _, name := range j.Chain() {
		owned = append(owned, lineKey(name, j.ID))
	}
	for _, k := range ce.Keys {
		var row Scarce
		err := q.Table.Get(ctx, k, &row)
		if !slices.Contains(owned, k) || err != nil && !fault.Is(err, fault.NotFound) || err == nil && row.Owner == j.ID {
			return nil
		}
		gone = append(gone, k)
	}
	return gone
}

// scarce puts into tx what a change of a job takes and gives back, but for the
// rows that are gone.
func scarce(tx *table.Tx, was, is ingest.Job, gone goneRows) {
	grant := func(k table.Key, bytes int64) {
		tx.Insert(&Scarce{Head: head(k), Owner: is.ID, Bytes: bytes, Collection: is.Collection})
	}
	remove := func(k table.Key) {
		if !slices.Contains(gone, k) {
			tx.RemoveOwned(k, is.ID)
		}
	}
	switch {
	case is.HasSlot && !was.HasSlot:
		grant(slotKey(is.ID), 0)
	case was.HasSlot && !is.HasSlot:
		remove(slotKey(is.ID))
	}
	switch {
	case is.HasSpace && (!was.HasSpace || slices.Contains(gone, spaceKey(is.ID))):
		grant(spaceKey(is.ID), is.SpaceNeeded)
	case was.HasSpace && !is.HasSpace:
		remove(spaceKey(is.ID))
	case is.HasSpace && was.SpaceNeeded != is.SpaceNeeded:
		tx.Count(spaceKey(is.ID), map[string]int64{"bytes": is.SpaceNeeded - was.SpaceNeeded})
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
	each(was.Locks, is.Locks, LockKey)
	each(was.Chain(), is.Chain(), func(name string) table.Key { return lineKey(name, is.ID) })
}

// lineKey is a job's place in the line before a lock. Job ids rise with the
// submissions, so the line is in their order.
func lineKey(name, job string) table.Key { return table.Key{PK: LockKey(name).PK, SK: "WAITS#" + job} }

// taken returns the first of the job's wanted locks that is not its turn: who
// owns the lock, or who stands in line before it.
func (q *Queue) taken(ctx context.Context, j *ingest.Job) (lock, owner string, err error) {
	for _, l := range j.Wanted() {
		if owner, err = q.before(ctx, l, j.ID); err != nil || owner != "" {
			return l, owner, err
		}
	}
	return "", "", nil
}

// before returns who owns a lock, or stands first in line for it; "" if that is
// the job, or nobody.
func (q *Queue) before(ctx context.Context, lock, job string) (owner string, err error) {
	var rows []Scarce
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
	err := q.each(ctx, table.Query{PK: slotPK, Limit: 1000}, func(s Scarce) {
		if s.Owner == "" {
			return // not a slot: an event of a collection of that name, by an earlier release
		}
		f.Slots--
		f.Taken[s.Collection]++
	})
	if err != nil {
		return f, err
	}
	err = q.each(ctx, table.Query{PK: spacePK, Limit: 1000}, func(s Scarce) { f.Space -= s.Bytes })
	return f, err
}

func (q *Queue) each(ctx context.Context, query table.Query, f func(Scarce)) error {
	for {
		var page []Scarce
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
