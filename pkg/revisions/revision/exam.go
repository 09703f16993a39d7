package revision

import (
	"context"
	"fmt"

	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/table"
	"archivist/pkg/revisions/workflow"
)

// Rule is a rule between the rows of the revision queue. The names are parts of the doctor's
// findings.
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

// Wrong is a rule that does not hold. Repair corrects what follows from other rows; nil: a person
// has to act. What is an English sentence. A repair is conditioned on what was examined, or decides
// anew: so it changes nothing that has become right meanwhile, and may be repeated.
type Wrong struct {
	Rule   Rule
	What   string
	Repair func(ctx context.Context) error
}

// exam is the examination of one row. row is as it was found; functions read it again, so that what
// they compare is consistent.
type exam struct {
	*Store
	ctx   context.Context
	row   table.Raw
	wrong []Wrong
}

// add adds what is wrong, with its repair, if there is one.
func (x *exam) add(r Rule, repair func(ctx context.Context) error, what string, args ...any) {
	x.wrong = append(x.wrong, Wrong{r, fmt.Sprintf(what, args...), repair})
}

// commit makes a repair of other rows on the condition that the row that was examined (of) is the
// same. A Stale means that it is not: it is to be examined again.
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

// save makes a repair that writes the row itself, on the condition that it is the same, and asks
// for a pass in the archive.
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

// changing makes a repair that changes an instance as everything does: with its event, its places
// and its numbers.
func (x *exam) changing(id string, f func(c *change) error) func(context.Context) error {
	return func(ctx context.Context) error {
		_, err := x.change(ctx, id, guard{}, f)
		return err
	}
}

// remove makes a repair that removes the row, if it is the same.
func (x *exam) remove() (func(context.Context) error, error) {
	var head table.Head
	err := x.row.Decode(&head)
	return func(ctx context.Context) error {
		tx := x.Table.Begin(x.NewID())
		tx.Remove(&head)
		return tx.Commit(ctx)
	}, err
}

// stray adds that the row belongs nowhere, and is to be removed. The error is of a row that cannot
// be decoded.
func (x *exam) stray(r Rule, what string, args ...any) error {
	remove, err := x.remove()
	x.add(r, remove, what, args...)
	return err
}

// needs checks that an owner has its row in a line of its archive. One that is missing can be
// written; one that is of somebody else needs a person.
func (x *exam) needs(of *table.Head, ref, owner string, k table.Key) error {
	var there lineRow
	err := x.Table.Get(x.ctx, k, &there)
	switch {
	case fault.Is(err, fault.NotFound):
	case err != nil || there.Owner == owner:
		return err
	default:
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

// awaited is an instance for which another waits, also one that is in the bucket: of that, only the
// parts that are known without reading the object (its state, settled). found is false if there is
// none.
func (x *exam) awaited(id string) (in instanceRow, found bool, err error) {
	r, err := x.instanceRow(x.ctx, id)
	if err != nil {
		return *r, false, err
	}

	if r.Rev > 0 {
		return *r, true, nil
	}

	p, err := ParseID(id)
	if err != nil {
		return *r, false, err
	}

	old, err := x.revisionRow(x.ctx, p.Ref, p.N)
	r.Archive, r.Revision, r.Task, r.Settled = p.Ref, p.N, p.Task, true
	r.State = workflow.State(old.Ends[p.Task])
	return *r, r.State != "", err
}

// exists reports whether there is an instance. One of a revision of which some are in the bucket is
// believed: to read the objects would make an examination of all rows slow and dear.
func (x *exam) exists(id string) (bool, error) {
	in, err := x.instanceRow(x.ctx, id)
	if err != nil {
		return false, err
	}

	if in.Rev > 0 {
		return true, nil
	}

	at, err := ParseID(id)
	if err != nil {
		return false, nil // it is no id
	}
	r, err := x.revisionRow(x.ctx, at.Ref, at.N)
	return r.Kept > 0, err
}

// inBucket reports whether instances of a revision are in the bucket.
func (x *exam) inBucket(ref string, n int64) (bool, error) {
	r, err := x.revisionRow(x.ctx, ref, n)
	return r.Ends != nil || r.Kept > 0, err
}

// mostRuns is how many runs of a task are read one by one: each is a request.
const mostRuns = 10_000

// runsOf reads the runs of a task in a revision that are in the table. Their numbers are those of
// the task in all revisions, so all of them are tried. A task with more than mostRuns is a
// Conflict.
func (x *exam) runsOf(ref string, n int64, task string) (all []Instance, err error) {
	names, err := x.nameRow(x.ctx, ref, task)
	if names.Runs > mostRuns {
		return nil, fault.New(fault.Conflict,
			"%s has had %d runs, which are too many to be read one by one", task,
			names.Runs)
	}

	if err != nil {
		return nil, err
	}

	for run := int64(1); run <= names.Runs; run++ {
		in, err := x.instanceRow(x.ctx, instanceID(ref, n, task, run))
		if err != nil {
			return all, err
		}
		if in.Rev > 0 {
			all = append(all, in.Instance)
		}
	}
	return all, nil
}
