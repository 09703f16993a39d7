package revision

import (
	"context"
	"fmt"
	"slices"

	"archivist/pkg/table"
	"archivist/pkg/workflow"
)

// The sort keys in the line of an archive: what is to be done, by kind.
const (
	toPlan   = "plan"   // a revision that was notified: plan#{n}
	toSettle = "settle" // an instance that has ended, and others wait for it: settle#{order}
	toFilter = "filter" // its edges are satisfied, its filter of paths is to be asked: filter#{order}
	toCancel = "cancel" // likewise, and those that it supersedes have not ended: cancel#{order}
	toStart  = "start"  // it can start: start#{order}
	running  = "run"    // it is dispatched or runs: run#{order}
	toKeep   = "keep"   // a revision or a run goes into the bucket, if it has ended for long: keep#{time}#{id}
	dueSK    = "due"    // something is to be done at a time: due#{time}#{order}
)

// archivePlace is the partition of the index work that lists the archives that are to be looked at, by time.
const archivePlace = "revisions"

func linePK(archive string) string { return "TASKLINE#" + archive }

func livePK(ref, task string) string { return "TASKLIVE#" + ref + "#" + task }

// cancelPK is the line of those that wait for the ends of instances of a task, because they supersede them.
func cancelPK(ref, task string) string { return "TASKCANCEL#" + ref + "#" + task }

// timedPK is the line of the runs of a task by schedule that have not ended.
func timedPK(ref, task string) string { return "TASKTIMED#" + ref + "#" + task }

// places are the keys of an instance in lines. Each row has the instance as its owner. They are a function of
// the instance: so lines cannot differ from it.
func (in *Instance) places() []table.Key {
	if in.State == "" || in.Settled {
		return nil
	}
	line := func(kind string) table.Key {
		return table.Key{PK: linePK(archiveOf(in.Archive)), SK: kind + "#" + in.Order + "#" + in.Archive}
	}
	if in.State.Over() {
		return []table.Key{line(toSettle)}
	}
	keys := []table.Key{{PK: livePK(in.Archive, in.Task), SK: in.Order}}
	if in.Lock != "" {
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

// superseding are the keys of an instance that awaits the ends of others: in the line of what is to be done, or at the
// one of the others for whose end it waits; and in the lines of all tasks that it supersedes.
func (in *Instance) superseding(todo table.Key) []table.Key {
	keys := []table.Key{todo}
	if in.Victim != "" {
		keys[0] = waiterKey(in.Victim, in.ID)
	}
	for _, task := range slices.Compact(slices.Sorted(slices.Values(in.Cancels))) {
		keys = append(keys, table.Key{PK: cancelPK(in.Archive, task), SK: in.Order})
	}
	return keys
}

// Open is how many edges are not decided.
func Open(edges []Awaits) (n int) {
	for _, e := range edges {
		if e.Verdict == workflow.Open {
			n++
		}
	}
	return n
}

// moveLines puts into a transaction that the rows of lines are those of an instance now.
func moveLines(tx *table.Tx, owner string, from, to []table.Key) {
	in := func(k table.Key, of []table.Key) bool {
		for _, o := range of {
			if o == k {
				return true
			}
		}
		return false
	}
	for _, k := range from {
		if !in(k, to) {
			tx.RemoveOwned(k, owner)
		}
	}
	for _, k := range to {
		if !in(k, from) {
			tx.Insert(&lineRow{Head: headOf(k), Owner: owner})
		}
	}
}

// waiterKey is the row that says that an instance waits for another.
func waiterKey(awaited, dependent string) table.Key {
	return table.Key{PK: taskSubject(awaited).Key().PK, SK: "WAITER#" + dependent}
}

// owners lists up to a number of rows of a line in order, all if most is 0. f returns false to end.
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

// kind selects the rows of one kind in the line of an archive, by both ends of their keys: for a prefix, DynamoDB Local
// looks at all that is behind it in the partition.
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

// head is the instance whose turn of a lock it is, "" if nobody waits.
func (s *Store) head(ctx context.Context, ref, lock string) (string, error) {
	return s.first(ctx, table.Query{PK: lockKey(ref, lock).PK, From: "0", To: "9" + last})
}

// raise puts into a transaction that the archive is to be looked at soon. Who wrote the row last is known by the
// id of the transaction.
func (s *Store) raise(tx *table.Tx, archive string) {
	k := wakeKey(archive)
	tx.Amend(k, "attribute_exists(pk)", map[string]any{"raised_by": tx.ID(), "place": archivePlace,
		"ranking": text(s.now()) + "#" + archive})
}

func wakeKey(archive string) table.Key {
	return table.Key{PK: archiveSubject(archive).Key().PK, SK: "WAKE"}
}
