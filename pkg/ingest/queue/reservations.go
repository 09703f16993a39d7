package queue

import (
	"context"
	"errors"
	"slices"
	"strings"

	"archivist/pkg/ingest"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/table"
)

// Reservation is a row that a job owns: a slot, space, a lock, or a place in the line for one. The transaction that
// grants it inserts the row, and the one that gives it back deletes the row. So it cannot
// be given back twice, and the sums cannot drift.
type Reservation struct {
	table.Head
	Owner      string `dynamo:"owned_by"` // job id
	Bytes      int64  `dynamo:"bytes,omitempty"`
	Collection string `dynamo:"coll,omitempty"`
	// Related are the other lock keys of a job in line, which are of the same object.
	Related []string `dynamo:"related_locks,omitempty"`
}

// Partitions of slots and space: what is free is the capacity less the sum of their rows.
const (
	slotPK  = "SLOT"
	spacePK = "SPACE"
)

func slotKey(job string) table.Key  { return table.Key{PK: slotPK, SK: job} }
func spaceKey(job string) table.Key { return table.Key{PK: spacePK, SK: job} }

// LockKey is the key of a lock's row, e.g. of "ark#ark:/99999/fk4tq65d6k".
func LockKey(name string) table.Key { return table.Key{PK: "LOCK#" + name, SK: "LOCK"} }

// LockedBy returns the job that has a lock, "" if it is free. Jobs that wait for the lock have rows of their own, and
// are not named.
func (q *Queue) LockedBy(ctx context.Context, name string) (job string, err error) {
	var row Reservation
	err = q.Table.Get(ctx, LockKey(name), &row)
	if fault.Is(err, fault.NotFound) {
		return "", nil
	}
	return row.Owner, err
}

// missingRows are rows that a job should own but that do not exist.
type missingRows []table.Key

// missingRows returns the missing rows of a job because of which a change failed, or none
// if any other condition failed.
func (q *Queue) missingRows(ctx context.Context, err error, j *ingest.Job) (missing missingRows) {
	var ce *table.ConditionError
	if !errors.As(err, &ce) {
		return nil
	}

	for _, k := range ce.Keys {
		var row Reservation
		err := q.Table.Get(ctx, k, &row)
		// An error proves nothing: then the change fails as it did.
		unreadable := err != nil && !fault.Is(err, fault.NotFound)
		there := err == nil && row.Owner == j.ID
		if !slices.Contains(ownedKeys(j), k) || unreadable || there {
			return nil
		}
		missing = append(missing, k)
	}
	return missing
}

// ownedKeys are the keys of the reservations that a job has.
func ownedKeys(j *ingest.Job) (owned []table.Key) {
	for _, r := range Owned(j) {
		owned = append(owned, r.Key())
	}
	return owned
}

// Owned are the reservations that a job has by its row: exactly these rows exist for it. The doctor
// compares them with the rows that there are.
func Owned(j *ingest.Job) (owned []Reservation) {
	add := func(k table.Key, bytes int64) { owned = append(owned, reservation(j, k, bytes)) }

	if j.HasSlot {
		add(slotKey(j.ID), 0)
	}

	if j.HasSpace {
		add(spaceKey(j.ID), j.SpaceNeeded)
	}

	for _, name := range j.Locks {
		add(LockKey(name), 0)
	}

	for _, name := range j.QueuedLocks() {
		owned = append(owned, placeInLine(j, name))
	}
	return owned
}

// reservation is a row of a job.
func reservation(j *ingest.Job, k table.Key, bytes int64) Reservation {
	return Reservation{Head: head(k), Owner: j.ID, Bytes: bytes, Collection: j.Collection}
}

// placeInLine is the row of a job's place in the line for a lock.
func placeInLine(j *ingest.Job, lock string) Reservation {
	row := reservation(j, lineKey(lock, j.ID), 0)
	row.Related = slices.DeleteFunc(j.LockKeys(), func(key string) bool { return key == lock })
	return row
}

// reserve puts into tx the reservations that a change of a job grants and gives back, except for the missing rows.
func reserve(tx *table.Tx, prev, next ingest.Job, missing missingRows) {
	there := slices.DeleteFunc(rowsOf(&prev), func(r table.Row) bool { return slices.Contains(missing, r.Key()) })
	tx.Derive(next.ID, there, rowsOf(&next))
}

// rowsOf are the rows of Owned.
func rowsOf(j *ingest.Job) []table.Row {
	owned := Owned(j)
	rows := make([]table.Row, len(owned))
	for i := range owned {
		rows[i] = &owned[i]
	}
	return rows
}

// blockedBy returns the first of the locks that the job needs and cannot have now, and the
// job that owns it or is in line before this one. The owner of a place in a line of manifests is row 0 of its batch.
func (q *Queue) blockedBy(ctx context.Context, j *ingest.Job) (lock, owner string, err error) {
	for _, l := range j.QueuedLocks() {
		if owner, err = q.jobAhead(ctx, l, j.ID); err != nil || owner != "" {
			return l, owner, err
		}
	}

	if !j.AwaitsManifests(q.Now()) {
		return "", "", nil
	}
	owner, err = q.firstManifest(ctx, j.ManifestLine())
	lock, owner = manifestBefore(j, owner)
	return lock, owner, err
}

// firstManifest returns the first manifest of a line that is not read yet, "" if there is none.
func (q *Queue) firstManifest(ctx context.Context, line string) (owner string, err error) {
	var rows []Reservation
	query := table.Query{PK: LockKey(line).PK, Prefix: linePrefix, Limit: 1}
	if _, err := q.Table.Page(ctx, query, &rows); err != nil || len(rows) == 0 {
		return "", err
	}
	return rows[0].Owner, nil
}

// manifestBefore returns the line of manifests and its first one, if that was submitted before a
// job.
func manifestBefore(j *ingest.Job, first string) (line, owner string) {
	if batch, _, _ := strings.Cut(first, "-"); first == "" || batch >= j.Batch {
		return "", ""
	}
	return j.ManifestLine(), first
}

// waitsForLock reports whether a job needs a lock that it cannot have now. It costs a read of the
// job, and one of each of its locks, unless they are among those that were seen before.
func (q *Queue) waitsForLock(ctx context.Context, id string, seen *glance) (bool, error) {
	row, err := q.jobSeen(ctx, id, seen)
	if err != nil {
		return false, err
	}
	lock, _, err := q.blocks(ctx, &row.Job, seen)
	return lock != "", err
}

// jobAhead returns the job that owns a lock, or is first in line for it; "" if that is the
// job itself, or none.
func (q *Queue) jobAhead(ctx context.Context, lock, job string) (owner string, err error) {
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

// unused is what the gates can grant while no job has a slot or space.
func (q *Queue) unused() ingest.Free {
	return ingest.Free{
		Slots:    q.Settings.MaxInFlight,
		Space:    q.Settings.Space,
		Capacity: q.Settings.Space,
		Reserve:  q.Settings.Reserve,
		Share:    q.Settings.Share,
		Patience: q.Settings.Patience,
		Taken:    map[string]int{},
	}
}

// free counts what the gates can grant now.
func (q *Queue) free(ctx context.Context) (ingest.Free, error) {
	f := q.unused()
	if _, err := q.slots(ctx, &f); err != nil {
		return f, err
	}
	_, err := q.spaces(ctx, &f, table.Query{PK: spacePK, Limit: 1000})
	return f, err
}

// slots subtracts the slots that jobs have from what is free, and returns these jobs.
func (q *Queue) slots(ctx context.Context, f *ingest.Free) (jobs []string, err error) {
	err = q.each(ctx, table.Query{PK: slotPK, Limit: 1000}, func(s Reservation) {
		if s.Owner == "" {
			return // not a slot: an event of a collection of that name, by an earlier release
		}
		f.Slots--
		f.Taken[s.Collection]++
		jobs = append(jobs, s.Owner)
	})
	return jobs, err
}

// spaces subtracts the space that jobs have from what is free, and returns how many rows of it
// there are.
func (q *Queue) spaces(ctx context.Context, f *ingest.Free, query table.Query) (rows int, err error) {
	err = q.each(ctx, query, func(s Reservation) {
		rows++
		take(f, s)
	})
	return rows, err
}

// take subtracts the space that a job has from what is free.
func take(f *ingest.Free, s Reservation) {
	f.Space -= s.Bytes
	if s.Bytes > f.Most.Space {
		f.Most = ingest.Holder{Job: s.Owner, Space: s.Bytes}
	}
}

// each calls f for all rows of a partition, which it reads page by page.
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

		query.Cursor = next
		if next == "" {
			return nil
		}
	}
}
