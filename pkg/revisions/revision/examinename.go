package revision

import (
	"fmt"
	"slices"

	"archivist/pkg/kernel/table"
	"archivist/pkg/revisions/workflow"
)

// known checks that what is known of a task has this instance: it may know more, by others. The
// repair adds what is missing; nothing is taken away.
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

	// What is known, with what this instance adds: if that is the same, all is well.
	right := *n
	// Instances of a back-fill are not known in this way: see backfill.
	if a.Ref() == in.Archive && a.First > 0 && in.Revision >= a.First && in.Run == 0 {
		right.planned(in.Revision)
	}

	right.Runs = max(right.Runs, in.Run)
	if in.State == workflow.Success && (in.Revision > right.Succeeded || right.Succeeder == "") {
		right.succeeded(&in.Instance)
	}

	if in.Exec != "" {
		right.started(&in.Instance)
	}

	x.knows(in, n, right)
	return x.former(in)
}

// former checks that it is known of the former name of its task that an instance has started: an
// older instance under that name is overtaken by it.
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

// knows compares what is known of a task (n) with what it should be by an instance (right).
func (x *exam) knows(in *instanceRow, n *nameRow, right nameRow) {
	if right != *n {
		x.add(ruleNames,
			x.Making(&in.Head, func(tx *table.Tx) { put(tx, &right, right.Rev) }),
			"of %s it is known: %s; by this instance: %s", n.SK, n, &right)
	}
}

// planned adds a revision that has planned the task, in any order: the two highest are kept.
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
	return fmt.Sprintf("planned in %d, before in %d, started in %d (%s), succeeded in %d, %d runs",
		n.Latest, n.Before,
		n.Started, n.Starter, n.Succeeded, n.Runs)
}

// name checks that the instances exist that what is known of a task names. What is known of none
// cannot be computed again from one row: a person has to act.
func (x *exam) name(ref string) error {
	var n nameRow
	err := x.Decode(&n)
	if err != nil {
		return err
	}

	for _, revision := range []int64{n.Latest, n.Before} {
		found, err := x.claimed(ref, revision, x.SK)
		if err != nil {
			return err
		}
		if !found {
			x.add(ruleNames, nil, "it is known to be planned in revision %d, where no instance of it is", revision)
		}
	}

	err = x.succeeder(ref, &n)
	if err != nil {
		return err
	}
	return x.starter(ref, &n)
}

// succeeder checks that the instance has succeeded that is known to have. One in the bucket is believed.
func (x *exam) succeeder(ref string, n *nameRow) error {
	if n.Succeeded == 0 {
		return nil
	}

	in, err := x.instanceRow(x.ctx, n.Succeeder)
	known := in.State == workflow.Success && in.Archive == ref && in.Revision == n.Succeeded && in.Task == n.SK
	if err == nil && in.Rev == 0 {
		known, err = x.inBucket(ref, n.Succeeded)
	}

	if err == nil && !known {
		x.add(ruleNames, nil, "it is known that %q has succeeded in revision %d, and it has not", n.Succeeder,
			n.Succeeded)
	}
	return err
}

// starter checks that the instance exists that is known to have started, under the name or its
// former one. One in the bucket is believed.
func (x *exam) starter(ref string, n *nameRow) error {
	if n.Started == 0 {
		return nil
	}

	in, err := x.instanceRow(x.ctx, n.Starter)
	if err != nil {
		return err
	}

	known := in.Exec != "" && in.Archive == ref && in.Revision == n.Started &&
		slices.Contains([]string{in.Task,
			in.Was}, n.SK)

	if in.Rev == 0 {
		known, err = x.inBucket(ref, n.Started)
	}

	if err != nil {
		return err
	}

	if !known {
		x.add(ruleNames, nil, "it is known that %q has started in revision %d, and it has not",
			n.Starter, n.Started)
	}
	return nil
}

// claimed reports whether a revision has planned a task; n is 0 if nothing is claimed. One whose instances are in
// the bucket is believed.
func (x *exam) claimed(ref string, n int64, task string) (bool, error) {
	if n == 0 {
		return true, nil
	}

	kept, err := x.inBucket(ref, n)
	if err != nil || kept {
		return true, err
	}

	in, err := x.instanceRow(x.ctx, instanceID(ref, n, task, 0))
	return in.Rev > 0, err
}
