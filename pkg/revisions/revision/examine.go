package revision

import (
	"context"
	"strings"
	"time"

	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/table"
	"archivist/pkg/revisions/archive"
)

// Examine checks a row of the revision queue against the rows that belong to it: it computes from
// scratch what they should say. It writes nothing. What it finds holds only if the row is still the
// same afterwards: the transactions that change what belongs to it change the row, too. So the
// caller reads the row again, and drops what was found if it has changed.
//
// A row of another part of the system has nothing wrong. An error means that the row could not be
// examined.
func (s *Store) Examine(ctx context.Context, row table.Raw) ([]Wrong, error) {
	x := &exam{Store: s, ctx: ctx, row: row}
	kind, id, _ := strings.Cut(row.PK, "#")
	// The rows of waiters and the row WAKE are in the partitions of what they belong to.
	if kind == "TASK" && row.SK != "TASK" {
		kind = "WAITER"
	}

	if row.SK == "WAKE" {
		kind = "WAKE"
	}

	of := map[string]func(id string) error{
		"ARCHIVE":    x.archive,
		"ARCHIVEOF":  x.object,
		"WAKE":       x.wakes,
		"REVISION":   x.revision,
		"TASK":       x.instance,
		"WAITER":     x.waiter,
		"TASKNAMES":  x.name,
		"TASKLIVE":   x.line,
		"TASKTIMED":  x.line,
		"TASKCANCEL": x.line,
		"TASKLOCK":   x.lock,
		"TASKLINE":   x.line,
		"WORKFLOW":   x.definition,
		"TASKRUNS":   x.run,
	}[kind]
	if of == nil {
		return nil, nil
	}

	err := of(id)
	return x.wrong, err
}

// archive checks that an archive is planned up to its watermark, can be looked at, and, if it is an
// object, is found by it. Only the revision at the watermark is read: each of the others is
// examined by its own row.
func (x *exam) archive(name string) error {
	a, err := x.archiveRow(x.ctx, name)
	if err != nil || a.Rev == 0 {
		return err
	}

	var w wakeRow
	err = x.Table.Get(x.ctx, wakeKey(name), &w)
	if fault.Is(err, fault.NotFound) {
		x.add(RuleWake, x.commit(&a.Head, func(tx *table.Tx) error {
			tx.Insert(newWake(name, x.now(), tx.ID()))
			return nil
		}), "its row WAKE is missing: no schedule looks at it")
		err = nil
	}

	if err != nil || a.Archive.Mode == Deleted {
		return err
	}

	if a.Location.Kind == archive.Object && a.Archive.Mode != Deleting {
		err = x.needs(&a.Head, name, name, objectKey(a.Location.ARK, name))
	}

	if err != nil || a.First == 0 || a.Watermark < a.First {
		return err
	}

	r, err := x.revisionRow(x.ctx, a.Ref(), a.Watermark)
	if err != nil {
		return err
	}

	if r.Planned == 0 {
		x.add(RulePlan, nil, "revisions up to %d are planned, and revision %d is not", a.Watermark,
			a.Watermark)
	}
	return nil
}

// object checks that an object whose versions are notified to an archive is that archive, and that
// the archive is there.
func (x *exam) object(ark string) error {
	a, err := x.archiveRow(x.ctx, x.row.SK)
	live := a.Rev > 0 && a.Archive.Mode != Deleted && a.Archive.Mode != Deleting
	if err != nil || live && a.Location.Kind == archive.Object && a.Location.ARK == ark {
		return err
	}
	return x.stray(RuleLine, "the archive %s is not that of this object", x.row.SK)
}

// lookLate is how much later than something is to be done its archive may be looked at: a pass that
// cannot reach what it needs puts it off.
const lookLate = 5 * time.Minute

// wakes checks that an archive in which something is to be done is looked at in time. While a pass
// is at work, its row stays as it is: so what was found counts only if nobody has written the row
// since it was read. The repair asks for a pass.
func (x *exam) wakes(name string) error {
	var was, is wakeRow
	err := x.row.Decode(&was)
	if err != nil {
		return err
	}

	a, err := x.archiveRow(x.ctx, name)
	if err != nil {
		return err
	}

	if a.Rev == 0 {
		return x.stray(RuleWake, "there is no archive %s", name)
	}

	due, what, err := x.toDo(a)
	if err != nil || what == "" {
		return err
	}

	err = x.Table.Get(x.ctx, wakeKey(name), &is)
	if err != nil || is.Raised != was.Raised {
		return err
	}

	at, _, _ := strings.Cut(is.WorkSK, "#")
	// A change asks for a look now, also if one was to be earlier and is late.
	if is.WorkPK == archivePlace && parse(at) <= max(due, x.now())+lookLate.Milliseconds() {
		return nil
	}

	x.add(RuleWake, func(ctx context.Context) error {
		tx := x.Table.Begin(x.NewID())
		x.raise(tx, name)
		return tx.Commit(ctx)
	}, "%s is to be done at %d, and the archive is looked at %q", what, due, is.WorkSK)

	return nil
}

// toDo is when something is to be done in an archive, in milliseconds since 1970, and the first row
// that says so; nothing if there is none. What waits for a person, a lock or a limit is nothing to
// do.
func (x *exam) toDo(a *archiveRow) (at int64, what string, err error) {
	// These are done by the next pass, in any mode of the archive.
	for _, k := range []string{toSettle, toFilter} {
		err = x.owners(x.ctx, kind(a.Name, k), func(r lineRow) (bool, error) {
			what = r.SK
			return false, nil
		})
		if err != nil || what != "" {
			return x.now(), what, err
		}
	}

	q := kind(a.Name, dueSK)
	q.Limit = 1
	err = x.owners(x.ctx, q, func(r lineRow) (bool, error) {
		at, what = parse(strings.SplitN(r.SK, "#", 3)[1]), r.SK
		return false, nil
	})
	if err != nil || a.Archive.Mode != Active {
		return at, what, err
	}

	r, err := x.revisionRow(x.ctx, a.Ref(), a.Watermark+1)
	if err != nil {
		return at, what, err
	}

	if a.First > 0 && a.Trouble == nil && r.Rev > 0 && r.Planned == 0 {
		return x.now(), "revision " + revisionID(r.Archive, r.Revision.Number), nil
	}
	return at, what, nil
}

// definition checks that a definition is the one that its key says: it is never changed, so another
// hash is damage.
func (x *exam) definition(name string) error {
	d, err := x.Definition(x.ctx, name, x.row.SK)
	if err != nil {
		return err
	}
	if hash := d.Hash(); hash != x.row.SK {
		x.add(RuleRow, nil, "it has the hash %s", hash)
	}
	return nil
}

// run checks that the run that a request has started exists. A row without is removed: the same
// request then starts a run.
func (x *exam) run(string) error {
	var row runRow
	err := x.row.Decode(&row)
	if err != nil {
		return err
	}

	known, err := x.exists(row.Instance)
	if err != nil || known {
		return err
	}
	return x.stray(RuleRow, "there is no instance %s, which the request has started", row.Instance)
}
