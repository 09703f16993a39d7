package revision

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"archivist/pkg/archive"
	"archivist/pkg/fault"
	"archivist/pkg/table"
	"archivist/pkg/workflow"
)

// Rule is a rule between the rows of the revision queue. The names are parts of the doctor's findings.
type Rule string

// The rules.
const (
	RuleWake    Rule = "wake"    // an archive with something to do is looked at in time
	RulePlan    Rule = "plan"    // revisions are planned up to the watermark, and no further
	RuleCounts  Rule = "counts"  // the numbers of a revision are those of its instances
	RulePlace   Rule = "place"   // an instance or a revision has its rows in lines, and is listed
	RuleLine    Rule = "line"    // a row of a line is where its owner says that it is
	RuleEdges   Rule = "edges"   // what became of edges is what the awaited instances say
	RuleWaiter  Rule = "waiter"  // the row of a waiter is of an instance that waits
	RuleLock    Rule = "lock"    // a lock is held by the instance that runs with it
	RuleAttempt Rule = "attempt" // an instance that runs has an execution, and an end is set to it
	RuleNames   Rule = "names"   // what is known of a task is what its instances say
	RuleRow     Rule = "row"     // what a row names exists
)

// Wrong is a rule that does not hold. Repair corrects what follows from other rows; nil: a person has to act.
type Wrong struct {
	Rule   Rule
	What   string
	Repair func(ctx context.Context) error
}

// exam is the examination of one row.
type exam struct {
	*Store
	ctx   context.Context
	row   table.Raw
	wrong []Wrong
}

func (x *exam) add(r Rule, repair func(ctx context.Context) error, what string, args ...any) {
	x.wrong = append(x.wrong, Wrong{r, fmt.Sprintf(what, args...), repair})
}

// Examine checks a row of the revision queue against the rows that belong to it: it computes from scratch what they
// should say. It writes nothing. What it finds holds only if the row is still the same afterwards: the transactions
// that change what belongs to it change the row, too.
func (s *Store) Examine(ctx context.Context, row table.Raw) ([]Wrong, error) {
	x := &exam{Store: s, ctx: ctx, row: row}
	kind, id, _ := strings.Cut(row.PK, "#")
	if kind == "TASK" && row.SK != "TASK" {
		kind = "WAITER"
	}
	if row.SK == "WAKE" {
		kind = "WAKE"
	}
	of := map[string]func(id string) error{"ARCHIVE": x.archive, "ARCHIVEOF": x.object, "WAKE": x.wakes,
		"REVISION": x.revision, "TASK": x.instance, "WAITER": x.waiter, "TASKNAMES": x.name, "TASKLIVE": x.line,
		"TASKTIMED": x.line, "TASKCANCEL": x.line,
		"TASKLOCK": x.lock, "TASKLINE": x.line, "WORKFLOW": x.definition, "TASKRUNS": x.run}[kind]
	if of == nil {
		return nil, nil
	}
	err := of(id)
	return x.wrong, err
}

// commit makes a repair on the condition that the row that was examined is the same.
func (x *exam) commit(of *table.Head, put func(tx *table.Tx) error) func(context.Context) error {
	return func(ctx context.Context) error {
		tx := x.Table.Begin(x.NewID())
		err := put(tx)
		if err != nil {
			return err
		}
		tx.Require(of.Key(), "rev = ?", of.Rev)
		return tx.Commit(ctx)
	}
}

// save makes a repair that writes the row itself, and asks for a pass.
func (x *exam) save(name string, put func(tx *table.Tx) error) func(context.Context) error {
	return func(ctx context.Context) error {
		tx := x.Table.Begin(x.NewID())
		err := put(tx)
		if err != nil {
			return err
		}
		x.raise(tx, name)
		return tx.Commit(ctx)
	}
}

// changing makes a repair that changes an instance as everything does: with its event, its places and its numbers.
func (x *exam) changing(id string, f func(c *change) error) func(context.Context) error {
	return func(ctx context.Context) error {
		_, err := x.change(ctx, id, guard{}, f)
		return err
	}
}

// remove removes the row.
func (x *exam) remove() (func(context.Context) error, error) {
	var head table.Head
	err := x.row.Decode(&head)
	return func(ctx context.Context) error {
		tx := x.Table.Begin(x.NewID())
		tx.Remove(&head)
		return tx.Commit(ctx)
	}, err
}

// stray adds that the row belongs nowhere, and is to be removed.
func (x *exam) stray(r Rule, what string, args ...any) error {
	remove, err := x.remove()
	x.add(r, remove, what, args...)
	return err
}

// needs checks that an owner has its row in a line of its archive.
func (x *exam) needs(of *table.Head, ref, owner string, k table.Key) error {
	var there lineRow
	err := x.Table.Get(x.ctx, k, &there)
	if err != nil && !fault.Is(err, fault.NotFound) || err == nil && there.Owner == owner {
		return err
	}
	if err == nil {
		x.add(RulePlace, nil, "its row in the line, %s, is of %s", k, there.Owner)
		return nil
	}
	x.add(RulePlace, x.commit(of, func(tx *table.Tx) error {
		tx.Insert(&lineRow{Head: headOf(k), Owner: owner})
		x.raise(tx, archiveOf(ref))
		return nil
	}), "its row in the line, %s, is missing", k)
	return nil
}

// archive checks that an archive is planned up to its watermark, and can be looked at.
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
	if err == nil && r.Planned == 0 {
		x.add(RulePlan, nil, "revisions up to %d are planned, and revision %d is not", a.Watermark, a.Watermark)
	}
	return err
}

// object checks that an object whose versions are notified to an archive is that archive.
func (x *exam) object(ark string) error {
	a, err := x.archiveRow(x.ctx, x.row.SK)
	live := a.Rev > 0 && a.Archive.Mode != Deleted && a.Archive.Mode != Deleting
	if err != nil || live && a.Location.Kind == archive.Object && a.Location.ARK == ark {
		return err
	}
	return x.stray(RuleLine, "the archive %s is not that of this object", x.row.SK)
}

// newWake is the row that lets an archive be looked at now.
func newWake(name string, now int64, raised string) *wakeRow {
	k := wakeKey(name)
	return &wakeRow{Head: table.Head{PK: k.PK, SK: k.SK, WorkPK: archivePlace, WorkSK: text(now) + "#" + name},
		Raised: raised}
}

// lookLate is how much later than something is to be done its archive may be looked at: a pass that cannot reach what
// it needs puts it off.
const lookLate = 5 * time.Minute

// wakes checks that an archive in which something is to be done is looked at in time. While a pass is at work, its row
// stays as it is.
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

// toDo is when something is to be done in an archive, and the first row that says so; nothing if there is none.
func (x *exam) toDo(a *archiveRow) (at int64, what string, err error) {
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
	if err == nil && a.First > 0 && a.Trouble == nil && r.Rev > 0 && r.Planned == 0 {
		return x.now(), "revision " + revisionID(r.Archive, r.Revision.Number), nil
	}
	return at, what, err
}

// waiter checks that the row of a waiter is of an instance that waits for this one. One that has ended leaves its row
// until this one is settled.
func (x *exam) waiter(awaited string) error {
	dependent := strings.TrimPrefix(x.row.SK, "WAITER#")
	d, err := x.instanceRow(x.ctx, dependent)
	if err != nil {
		return err
	}
	a, err := x.instanceRow(x.ctx, awaited)
	if err != nil {
		return err
	}
	waits := x.waits(d, awaited)
	switch {
	case d.Rev == 0:
		return x.lostWaiter(dependent, a)
	case d.State.Over() && !a.Settled || waits && !a.Settled:
		return nil
	case d.State.Over():
		return x.stray(RuleWaiter, "%s has ended, and %s is settled: nothing looks at the row", dependent, awaited)
	case waits:
		return nil // the edge is what is wrong
	}
	return x.stray(RuleWaiter, "%s does not wait for %s", dependent, awaited)
}

// waits reports whether an instance waits for another, or says that its row is there.
func (x *exam) waits(d *instanceRow, awaited string) bool {
	return slices.Contains(d.places(), x.row.Key) ||
		slices.ContainsFunc(d.Edges, func(e Awaits) bool { return e.ID == awaited && e.Verdict == workflow.Open })
}

// lostWaiter is a waiter without a row: it is in the bucket, or never was.
func (x *exam) lostWaiter(dependent string, on *instanceRow) error {
	_, kept, err := x.awaited(dependent)
	if err != nil || kept && !on.Settled {
		return err
	}
	return x.stray(RuleWaiter, "there is no instance %s", dependent)
}

// line checks that a row of a line is where its owner says that it is.
func (x *exam) line(string) error {
	var row lineRow
	err := x.row.Decode(&row)
	if err != nil {
		return err
	}
	if strings.HasPrefix(x.row.SK, toPlan+"#") {
		return x.planned(row.Owner)
	}
	if strings.HasPrefix(x.row.SK, toKeep+"#") {
		return x.keeps(row.Owner)
	}
	in, err := x.instanceRow(x.ctx, row.Owner)
	if err != nil {
		return err
	}
	if in.Rev == 0 {
		return x.stray(RuleLine, "there is no instance %s", row.Owner)
	}
	if !slices.Contains(in.places(), x.row.Key) {
		return x.stray(RuleLine, "its owner %s (%s) is not at this place", row.Owner, in.State)
	}
	return nil
}

// planned checks that a row of the line of those to be planned is of a revision that is not. One of a back-fill can
// have been notified before.
func (x *exam) planned(id string) error {
	at, n := splitRevision(id)
	r, err := x.revisionRow(x.ctx, at, n)
	if err != nil {
		return err
	}
	a, err := x.archiveRow(x.ctx, archiveOf(at))
	switch {
	case err != nil:
		return err
	case r.Rev == 0:
		return x.stray(RuleLine, "there is no revision %s", id)
	case planKey(at, n) != x.row.Key:
		return x.stray(RuleLine, "its owner %s is not at this place", id)
	case r.Planned > 0 && a.Ref() == at && n >= a.First:
		return x.stray(RuleLine, "revision %s is planned already", id)
	}
	return nil
}

// keeps checks that a row of the line of those that go into the bucket is of a revision or a run.
func (x *exam) keeps(id string) error {
	at, err := ParseID(id)
	if err != nil {
		return x.stray(RuleLine, "its owner %s is neither a revision nor a run", id)
	}
	known := false
	if at.Task == "" {
		var r *revisionRow
		r, err = x.revisionRow(x.ctx, at.Ref, at.N)
		known = r.Rev > 0
	} else {
		var in *instanceRow
		in, err = x.instanceRow(x.ctx, id)
		known = in.Rev > 0 && in.Run > 0
	}
	if err == nil && !known {
		return x.stray(RuleLine, "there is no %s", id)
	}
	return err
}

// exists reports whether there is an instance. One of a revision of which some are in the bucket is believed.
func (x *exam) exists(id string) (bool, error) {
	in, err := x.instanceRow(x.ctx, id)
	if err != nil || in.Rev > 0 {
		return err == nil, err
	}
	at, err := ParseID(id)
	if err != nil {
		return false, nil // it is no id
	}
	r, err := x.revisionRow(x.ctx, at.Ref, at.N)
	return r.Kept > 0, err
}

// splitRevision is the ref and the number of the id of a revision.
func splitRevision(id string) (ref string, n int64) {
	i := strings.LastIndex(id, "/")
	if i < 0 {
		return id, 0
	}
	return id[:i], parse(id[i+1:])
}

// definition checks that a definition is the one that its key says.
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

// run checks that the run that a request has started exists.
func (x *exam) run(string) error {
	var row runRow
	err := x.row.Decode(&row)
	if err != nil {
		return err
	}
	known, err := x.exists(row.Instance)
	if err == nil && !known {
		return x.stray(RuleRow, "there is no instance %s, which the request has started", row.Instance)
	}
	return err
}
