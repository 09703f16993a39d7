package revision

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"archivist/pkg/table"
	"archivist/pkg/workflow"
)

// locks checks that an instance has the lock with which it has run, and that it is let start when it is its turn.
func (x *exam) locks(in *instanceRow) error {
	l, err := x.lockRow(x.ctx, in.Archive, in.Lock)
	if err != nil {
		return err
	}
	if in.Exec != "" && l.Holder != in.ID { // it keeps the lock from its first attempt to its end
		return x.unheld(in, l)
	}
	if in.State != workflow.Ready || !in.Parked {
		return nil
	}
	if in.Exec != "" { // it has the lock
		x.unparks(in)
		return nil
	}
	head, err := x.head(x.ctx, in.Archive, in.Lock)
	if err != nil || l.Holder != "" || head != in.ID {
		return err
	}
	ended, err := x.first(x.ctx, kind(archiveOf(in.Archive), toSettle)) // one of these lets it start, perhaps
	if err == nil && ended == "" {
		x.unparks(in)
	}
	return err
}

// unparks adds that it is an instance's turn of its lock.
func (x *exam) unparks(in *instanceRow) {
	x.add(RuleLock, x.changing(in.ID, func(c *change) error { c.in().Parked = false; return nil }),
		"it is its turn of the lock %s, and nothing lets it start", in.Lock)
}

// holds reports whether an instance has run with a lock, and has not ended.
func (r *instanceRow) holds(l *lockRow) bool {
	return r.Rev > 0 && !r.State.Over() && r.Exec != "" && r.Lock != "" && lockKey(r.Archive, r.Lock) == l.Key()
}

// unheld is an instance that runs without its lock.
func (x *exam) unheld(in *instanceRow, l *lockRow) error {
	held := false
	if l.Holder != "" {
		h, err := x.instanceRow(x.ctx, l.Holder)
		if err != nil {
			return err
		}
		held = h.holds(l)
	}
	var repair func(context.Context) error
	if !held {
		right := *l
		right.Holder = in.ID
		repair = x.commit(&in.Head, func(tx *table.Tx) error { put(tx, &right, right.Rev); return nil })
	}
	x.add(RuleLock, repair, "it has run with the lock %s, which %q has", in.Lock, l.Holder)
	return nil
}

// lock checks that who has a lock has not ended, and a row of its line.
func (x *exam) lock(id string) error {
	if x.row.SK != "LOCK" {
		return x.line(id)
	}
	at, name, _ := strings.Cut(id, "#")
	var l lockRow
	err := x.row.Decode(&l)
	if err != nil || l.Holder == "" {
		return err
	}
	in, err := x.instanceRow(x.ctx, l.Holder)
	if err != nil || in.holds(&l) {
		return err
	}
	what := "has not run with it"
	switch {
	case in.Rev == 0:
		what = "does not exist"
	case in.State.Over():
		what = "has ended: " + string(in.State)
	}
	x.add(RuleLock, func(ctx context.Context) error { return x.unlock(ctx, l.Holder, at, name) },
		"%s has the lock, and %s", l.Holder, what)
	return nil
}

// unlock takes a lock from who does not run with it, and lets the next one start. Another repair can have given it to
// who does.
func (x *exam) unlock(ctx context.Context, holder, ref, name string) error {
	l, err := x.lockRow(ctx, ref, name)
	if err != nil || l.Holder != holder {
		return err
	}
	l.Holder = ""
	err = x.save(archiveOf(ref), func(tx *table.Tx) error { tx.Save(l); return nil })(ctx)
	if err != nil {
		return err
	}
	head, err := x.head(ctx, ref, name)
	if err != nil || head == "" {
		return err
	}
	_, err = x.change(ctx, head, guard{}, func(c *change) error { c.in().Parked = false; return nil })
	return err
}

// known checks that what is known of a task has this instance.
func (x *exam) known(in *instanceRow) error {
	if in.Task == workflow.Commit {
		return nil
	}
	n, err := x.nameRow(x.ctx, in.Archive, in.Task)
	if err != nil {
		return err
	}
	a, err := x.archiveRow(x.ctx, archiveOf(in.Archive))
	if err != nil {
		return err
	}
	right := *n
	if a.Ref() == in.Archive && a.First > 0 && in.Revision >= a.First && in.Run == 0 {
		right.planned(in.Revision)
	}
	right.Runs = max(right.Runs, in.Run)
	if in.State == workflow.Success {
		right.Succeeded = max(right.Succeeded, in.Revision)
	}
	if in.Exec != "" {
		right.started(&in.Instance)
	}
	x.knows(in, n, right)
	return x.former(in)
}

// former checks that it is known of the former name of its task that an instance has started.
func (x *exam) former(in *instanceRow) error {
	if in.Exec == "" || in.Was == "" {
		return nil
	}
	n, err := x.nameRow(x.ctx, in.Archive, in.Was)
	if err != nil {
		return err
	}
	right := *n
	right.started(&in.Instance)
	x.knows(in, n, right)
	return nil
}

// knows compares what is known of a task with what it should be by an instance.
func (x *exam) knows(in *instanceRow, n *nameRow, right nameRow) {
	if right != *n {
		x.add(RuleNames, x.commit(&in.Head, func(tx *table.Tx) error { put(tx, &right, right.Rev); return nil }),
			"of %s it is known: %s; by this instance: %s", n.SK, n, &right)
	}
}

// planned adds a revision that has planned the task.
func (n *nameRow) planned(revision int64) {
	switch {
	case revision > n.Latest:
		n.Before, n.Latest = n.Latest, revision
	case revision < n.Latest && revision > n.Before:
		n.Before = revision
	}
}

// String is what is known of a task, for people.
func (n *nameRow) String() string {
	return fmt.Sprintf("planned in %d, before in %d, started in %d (%s), succeeded in %d, %d runs", n.Latest, n.Before,
		n.Started, n.Starter, n.Succeeded, n.Runs)
}

// name checks that the instances exist that what is known of a task names.
func (x *exam) name(ref string) error {
	var n nameRow
	err := x.row.Decode(&n)
	if err != nil {
		return err
	}
	for _, claim := range []struct {
		n    int64
		what string
		is   func(in Instance) bool
	}{
		{n.Latest, "planned", func(in Instance) bool { return in.Run == 0 }},
		{n.Before, "planned", func(in Instance) bool { return in.Run == 0 }},
		{n.Succeeded, "succeeded", func(in Instance) bool { return in.State == workflow.Success }},
	} {
		found, err := x.claimed(ref, claim.n, x.row.SK, claim.is)
		if err != nil {
			return err
		}
		if !found {
			x.add(RuleNames, nil, "it is known to be %s in revision %d, where no instance of it is", claim.what,
				claim.n)
		}
	}
	return x.starter(ref, &n)
}

// starter checks that the instance exists that is known to have started. One in the bucket is believed.
func (x *exam) starter(ref string, n *nameRow) error {
	if n.Started == 0 {
		return nil
	}
	in, err := x.instanceRow(x.ctx, n.Starter)
	if err != nil {
		return err
	}
	known := in.Exec != "" && in.Archive == ref && in.Revision == n.Started && slices.Contains([]string{in.Task,
		in.Was}, n.SK)
	if in.Rev == 0 {
		known, err = x.inBucket(ref, n.Started)
	}
	if err == nil && !known {
		x.add(RuleNames, nil, "it is known that %q has started in revision %d, and it has not", n.Starter, n.Started)
	}
	return err
}

// inBucket reports whether instances of a revision are in the bucket.
func (x *exam) inBucket(ref string, n int64) (bool, error) {
	r, err := x.revisionRow(x.ctx, ref, n)
	return r.Ends != nil || r.Kept > 0, err
}

// claimed reports whether a revision has an instance of a task for which is holds. One whose instances are in the
// bucket is believed.
func (x *exam) claimed(ref string, n int64, task string, is func(in Instance) bool) (bool, error) {
	if n == 0 {
		return true, nil
	}
	kept, err := x.inBucket(ref, n)
	if err != nil || kept {
		return true, err
	}
	in, err := x.instanceRow(x.ctx, instanceID(ref, n, task, 0))
	if err != nil || in.Rev > 0 && is(in.Instance) {
		return true, err
	}
	runs, err := x.runsOf(ref, n, task)
	return slices.ContainsFunc(runs, is), err
}
