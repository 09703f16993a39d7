package revision

import (
	"context"
	"strconv"
	"strings"

	"archivist/pkg/events/check"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/table"
	"archivist/pkg/revisions/workflow"
)

// The rules between the rows of the revision queue, by the names of the doctor's findings.
const (
	ruleWake    = "revision-wake"    // an archive with something to do is looked at in time
	rulePlan    = "revision-plan"    // revisions are planned up to the watermark, and no further
	ruleCounts  = "revision-counts"  // the numbers of a revision are those of its instances
	rulePlace   = "revision-place"   // an instance or a revision has its rows in lines, and is listed
	ruleLine    = "revision-line"    // a row of a line is where its owner says that it is
	ruleEdges   = "revision-edges"   // what became of edges is what the awaited instances say
	ruleWaiter  = "revision-waiter"  // the row of a waiter is of an instance that waits
	ruleLock    = "revision-lock"    // a lock is held by the instance that runs with it
	ruleAttempt = "revision-attempt" // an instance that runs has an execution, and an end is set to it
	ruleNames   = "revision-names"   // what is known of a task is what its instances say
	ruleRow     = "revision-row"     // what a row names exists
)

// exam is the examination of one row. The row is as it was found; functions read it again, so that what
// they compare is consistent.
type exam struct {
	*Store
	*check.Row
	ctx context.Context
}

// add adds what is wrong, with its repair, if there is one. An instance whose attempt, lock or edges are wrong is
// cancelled, which gives back what it has: what it did cannot be told, but its task can run again.
func (x *exam) add(rule string, repair func(ctx context.Context) error, what string, args ...any) {
	command := check.Restore
	switch {
	case repair != nil:
		command = check.Repair
	case rule == ruleAttempt, rule == ruleLock, rule == ruleEdges:
		command = "cancel the instance, and run its task again"
	}
	x.Row.Add(rule, command, repair, what, args...)
}

// overdue checks that passes do what is due at a time, which begins a text.
func (x *exam) overdue(text string) {
	at, _, _ := strings.Cut(text, "#")
	due, _ := strconv.ParseInt(at, 10, 64) // 0: it has no time
	if x.Late(due) {
		x.Row.Add("overdue", "look at the function revisions: it runs each minute", nil, "it is due since %d", due)
	}
}

// save makes a repair that writes the row itself, on the condition that it is the same, and asks
// for a pass in the archive.
func (x *exam) save(name string, put func(tx *table.Tx) error) func(context.Context) error {
	return func(ctx context.Context) error {
		return x.Commit(ctx, func(tx *table.Tx) error {
			x.raise(tx, name)
			return put(tx)
		})
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

// stray adds that the row belongs nowhere, and is to be removed.
func (x *exam) stray(rule, what string, args ...any) error {
	x.add(rule, x.Removing(), what, args...)
	return nil
}

// needs checks that an owner has its row in a line of its archive.
func (x *exam) needs(of *table.Head, ref, owner string, k table.Key) error {
	return x.Owns(x.ctx, rulePlace, of, owner, k, func(tx *table.Tx) { x.raise(tx, archiveOf(ref)) })
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
	return r.InBucket > 0, err
}

// inBucket reports whether instances of a revision are in the bucket.
func (x *exam) inBucket(ref string, n int64) (bool, error) {
	r, err := x.revisionRow(x.ctx, ref, n)
	return r.Ends != nil || r.InBucket > 0, err
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
