package revision

import (
	"context"
	"fmt"
	"slices"

	"archivist/pkg/kernel/table"
	"archivist/pkg/revisions/archive"
	"archivist/pkg/revisions/workflow"
)

// The sort keys in the line of an archive: what is to be done, by kind.
const (
	// A revision that was notified: plan#{ref}#{n}.
	toPlan = "plan"

	// An instance that has ended, and others may wait for it: settle#{order}#{ref}.
	toSettle = "settle"

	// An instance whose edges are satisfied, and whose filter of paths is to be asked:
	// filter#{order}#{ref}.
	toFilter = "filter"

	// An instance whose edges are satisfied, and that awaits the ends of those that it supersedes:
	// cancel#{order}#{ref}. While it waits for a certain one, it is among the waiters of that
	// instead.
	toCancel = "cancel"

	// An instance that can start, but for the number that run: start#{order}#{ref}.
	toStart = "start"

	// It is dispatched or runs: run#{order}#{ref}. Their number is that of what runs at once.
	running = "run"

	// A revision or a run goes into the bucket, if it has ended for long: keep#{time}#{id}.
	toBucket = "keep"

	// Something is to be done with an instance at a time: due#{time}#{order}#{ref}. See due.
	dueSK = "due"
)

// archivePlace is the partition of the index work that lists the archives that are to be looked at,
// by time.
const archivePlace = "revisions"

// linePK is the partition of what is to be done in an archive, in all of its epochs: what is left
// of an epoch that has ended is settled, too.
func linePK(archive string) string { return "TASKLINE#" + archive }

// livePK is the line of the instances of a task that have not ended. A superseder finds there
// what it supersedes.
func livePK(ref, task string) string { return "TASKLIVE#" + ref + "#" + task }

// cancelPK is the line of those that wait for the ends of instances of a task, because they
// supersede them. An instance that could start looks there first: see superseder.
func cancelPK(ref, task string) string { return "TASKCANCEL#" + ref + "#" + task }

// toBucketKey is the row that says when a revision or a run is to go into the bucket, if it has
// ended. at is in milliseconds since 1970.
func toBucketKey(id string, at int64) table.Key {
	return table.Key{PK: linePK(archiveOf(id)), SK: fmt.Sprintf("%s#%s#%s", toBucket, text(at), id)}
}

// timedPK is the line of the runs of a task by schedule that have not ended.
func timedPK(ref, task string) string { return "TASKTIMED#" + ref + "#" + task }

// objectKey is the row that says that an object is an archive. It is there from the archive's
// registration to its deletion. By it, a new version of an object finds its archives; one object
// can be more than one.
func objectKey(object, archive string) table.Key {
	return table.Key{PK: "ARCHIVEOF#" + object, SK: archive}
}

// places are the keys of an instance in lines. Each row has the instance as its owner. They are a
// function of the instance: so lines cannot differ from it. nil for one that does not exist, or that
// is settled.
//
// An instance that has ended is only in the line of those to be settled. One that has not is in
// that of its task and, unless a person is to start it, of its lock, and, by its state, in at most
// one of what is to be done; one with a time (Until) also in that of times.
func (in *Instance) places() []table.Key {
	if in.State == "" || in.Settled {
		return nil
	}

	line := func(kind string) table.Key {
		return table.Key{PK: linePK(archiveOf(in.Archive)), SK: kind + "#" + in.Order + "#" +
			in.Archive}
	}

	if in.State.Over() {
		return []table.Key{line(toSettle)}
	}

	keys := []table.Key{{PK: livePK(in.Archive, in.Task), SK: in.Order}}
	if in.Lock != "" && !in.gated() {
		keys = append(keys, table.Key{PK: lockKey(in.Archive, in.Lock).PK, SK: in.Order})
	}

	if in.Trigger == BySchedule {
		keys = append(keys, table.Key{PK: timedPK(in.Archive, in.Task), SK: in.Order})
	}

	switch {
	case in.State == workflow.Blocked && in.Filtered && Open(in.Edges) == 0:
		keys = append(keys, line(toFilter))
	case in.State == workflow.Awaiting:
		keys = append(keys, in.superseding(line(toCancel))...)
	case in.State == workflow.Ready && !in.Parked:
		keys = append(keys, line(toStart))
	case in.State.Started():
		keys = append(keys, line(running))
	}

	if in.Until > 0 {
		keys = append(keys, table.Key{PK: linePK(archiveOf(in.Archive)),
			SK: fmt.Sprintf("%s#%s#%s#%s", dueSK, text(in.Until), in.Order, in.Archive)})
	}
	return keys
}

// rows are the rows of an instance at its places: they follow from the instance alone.
func (in *Instance) rows() []table.Row { return table.OwnedAt(in.ID, in.places()...) }

// superseding are the keys of an instance that awaits the ends of others: in the line of what is to
// be done, or at the one of the others for whose end it waits; and in the lines of all tasks that
// it supersedes.
func (in *Instance) superseding(todo table.Key) []table.Key {
	keys := []table.Key{todo}
	if in.Superseding != "" {
		keys[0] = waiterKey(in.Superseding, in.ID)
	}
	for _, task := range slices.Compact(slices.Sorted(slices.Values(in.Cancels))) {
		keys = append(keys, table.Key{PK: cancelPK(in.Archive, task), SK: in.Order})
	}
	return keys
}

// moveLater puts the row toBucket into the transaction that writes a plan or a run, so that none is
// ever forgotten.
func (s *Store) moveLater(tx *table.Tx, id string) {
	tx.Insert(&lineRow{Head: headOf(toBucketKey(id, s.now()+s.Times.Keep.Milliseconds())), Owner: id})
}

// linkObject puts into a transaction that an object is an archive, or is none any more. For other
// kinds of archives it does nothing. It can be repeated: a row that is there is written again.
func (s *Store) linkObject(ctx context.Context, tx *table.Tx, a *archiveRow, is bool) error {
	if a.Location.Kind != archive.Object {
		return nil
	}

	k := objectKey(a.Location.ARK, a.Name)
	r := &lineRow{Head: headOf(k), Owner: a.Name}
	err := s.get(ctx, k, r, nil, nil)
	if err != nil {
		return err
	}

	switch {
	case is:
		put(tx, r, r.Rev)
	case r.Rev > 0:
		tx.Remove(r)
	}
	return nil
}

// waiterKey is the row that says that an instance waits for another. It is at the awaited one, so
// that its end finds all that wait for it with one query.
func waiterKey(awaited, dependent string) table.Key {
	return table.Key{PK: taskSubject(awaited).Key().PK, SK: "WAITER#" + dependent}
}

// owners calls f with the rows of a line in order, page by page, until f returns false or an error.
// A limit of the query is the size of a page, not the number of rows. Rows that f adds or moves may
// be seen or not.
func (s *Store) owners(ctx context.Context, q table.Query, f func(r lineRow) (bool, error)) error {
	for {
		var rows []lineRow
		next, err := s.Table.Page(ctx, q, &rows)
		if err != nil {
			return err
		}

		for _, r := range rows {
			more, err := f(r)
			if err != nil || !more {
				return err
			}
		}

		if next == "" {
			return nil
		}

		q.Cursor = next
	}
}

// kind selects the rows of one kind in the line of an archive, by both ends of their keys: for a
// prefix, DynamoDB Local looks at all that is behind it in the partition.
func kind(archive, name string) table.Query {
	return table.Query{PK: linePK(archive), From: name + "#", To: name + "#" + last}
}

// first is the owner of the first row of a query, "" if there is none.
func (s *Store) first(ctx context.Context, q table.Query) (owner string, err error) {
	q.Limit = 1
	err = s.owners(ctx, q, func(r lineRow) (bool, error) {
		owner = r.Owner
		return false, nil
	})
	return owner, err
}

// head is the instance whose turn of a lock it is, "" if nobody waits. Orders begin with a digit:
// so these bounds leave out the row LOCK, which is in the same partition.
func (s *Store) head(ctx context.Context, ref, lock string) (string, error) {
	return s.first(ctx, table.Query{PK: lockKey(ref, lock).PK, From: "0", To: "9" + last})
}

// raise puts into a transaction that the archive is to be looked at soon. Who wrote the row last is
// known by the id of the transaction. The row is changed without raising its rev, whatever was in
// it: many changes at once do not disturb each other. It has to be there, as it is from the
// archive's registration on.
func (s *Store) raise(tx *table.Tx, archive string) {
	k := wakeKey(archive)
	tx.Amend(k, "attribute_exists(pk)", map[string]any{"raised_by": tx.ID(), "place": archivePlace,
		"ranking": text(s.now()) + "#" + archive})
}

// wakeKey is the row that says when an archive is to be looked at.
func wakeKey(archive string) table.Key {
	return table.Key{PK: archiveSubject(archive).Key().PK, SK: "WAKE"}
}

// newWake is the row that lets an archive be looked at now. raised is unique to who writes it.
func newWake(name string, now int64, raised string) *wakeRow {
	k := wakeKey(name)
	return &wakeRow{Head: table.Head{
		PK:     k.PK,
		SK:     k.SK,
		WorkPK: archivePlace,
		WorkSK: text(now) + "#" + name,
	},
		Raised: raised}
}
