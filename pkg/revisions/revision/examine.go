package revision

import (
	"context"
	"strings"
	"time"

	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/table"
	"archivist/pkg/revisions/archive"
)

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
		x.add(ruleWake, x.Making(&a.Head, func(tx *table.Tx) {
			tx.Insert(newWake(name, x.now(), tx.ID()))
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
		x.add(rulePlan, nil, "revisions up to %d are planned, and revision %d is not", a.Watermark,
			a.Watermark)
	}
	return nil
}

// object checks that an object whose versions are notified to an archive is that archive, and that
// the archive is there.
func (x *exam) object(ark string) error {
	a, err := x.archiveRow(x.ctx, x.SK)
	live := a.Rev > 0 && a.Archive.Mode != Deleted && a.Archive.Mode != Deleting
	if err != nil || live && a.Location.Kind == archive.Object && a.Location.ARK == ark {
		return err
	}
	return x.stray(ruleLine, "the archive %s is not that of this object", x.SK)
}

// lookLate is how much later than something is to be done its archive may be looked at: a pass that
// cannot reach what it needs puts it off.
const lookLate = 5 * time.Minute

// wakes checks that an archive in which something is to be done is looked at in time. While a pass
// is at work, its row stays as it is: so what was found counts only if nobody has written the row
// since it was read. The repair asks for a pass.
func (x *exam) wakes(name string) error {
	var was, is wakeRow
	if !x.Into(&was) {
		return nil
	}
	x.overdue(was.WorkSK)

	a, err := x.archiveRow(x.ctx, name)
	if err != nil {
		return err
	}

	if a.Rev == 0 {
		return x.stray(ruleWake, "there is no archive %s", name)
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

	x.add(ruleWake, func(ctx context.Context) error {
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
	d, err := x.Definition(x.ctx, name, x.SK)
	if err != nil {
		return err
	}
	if hash := d.Hash(); hash != x.SK {
		x.add(ruleRow, nil, "it has the hash %s", hash)
	}
	return nil
}

// run checks that the run that a request has started exists. A row without is removed: the same
// request then starts a run.
func (x *exam) run(string) error {
	var row runRow
	err := x.Decode(&row)
	if err != nil {
		return err
	}

	known, err := x.exists(row.Instance)
	if err != nil || known {
		return err
	}
	return x.stray(ruleRow, "there is no instance %s, which the request has started", row.Instance)
}
