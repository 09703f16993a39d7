package revision

import (
	"slices"
	"strings"

	"archivist/pkg/revisions/workflow"
)

// waiter checks that the row of a waiter is of an instance that waits for this one. One that has
// ended leaves its row until this one is settled. If this one is settled, nobody looks for the row
// any more: one that still waits is found by its edges, whose repair also removes the row.
func (x *exam) waiter(awaited string) error {
	dependent := strings.TrimPrefix(x.SK, "WAITER#")
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
		// It may be in the bucket.
		return x.lostWaiter(dependent, a)
	case d.State.Over() && !a.Settled || waits && !a.Settled:
		return nil
	case d.State.Over():
		return x.stray(ruleWaiter, "%s has ended, and %s is settled: nothing looks at the row",
			dependent, awaited)
	case waits:
		return nil // the edge is what is wrong
	}
	return x.stray(ruleWaiter, "%s does not wait for %s", dependent, awaited)
}

// waits reports whether an instance waits for another, by an open edge, or says that its row is
// there, because it supersedes that one.
func (x *exam) waits(d *instanceRow, awaited string) bool {
	return slices.Contains(d.places(), x.Key) ||
		slices.ContainsFunc(d.Edges,
			func(e Awaits) bool { return e.ID == awaited && e.Verdict == workflow.Open })
}

// lostWaiter is a waiter without a row: it is in the bucket, or never was. The row of one in the
// bucket goes when the awaited one is settled (forget).
func (x *exam) lostWaiter(dependent string, on *instanceRow) error {
	_, kept, err := x.awaited(dependent)
	if err != nil || kept && !on.Settled {
		return err
	}
	return x.stray(ruleWaiter, "there is no instance %s", dependent)
}

// line checks that a row of a line is where its owner says that it is: places is the truth, and the
// row follows from it.
func (x *exam) line(string) error {
	var row lineRow
	if !x.Into(&row) {
		return nil
	}

	if at, is := strings.CutPrefix(x.SK, dueSK+"#"); is {
		x.overdue(at)
	}

	if strings.HasPrefix(x.SK, toPlan+"#") {
		return x.planned(row.Owner)
	}

	if strings.HasPrefix(x.SK, toBucket+"#") {
		return x.keeps(row.Owner)
	}

	in, err := x.instanceRow(x.ctx, row.Owner)
	if err != nil {
		return err
	}

	if in.Rev == 0 {
		return x.stray(ruleLine, "there is no instance %s", row.Owner)
	}

	if !slices.Contains(in.places(), x.Key) {
		return x.stray(ruleLine, "its owner %s (%s) is not at this place", row.Owner, in.State)
	}
	return nil
}

// planned checks that a row of the line of those to be planned is of a revision that is not. One of
// a back-fill can have been notified before, and keep its row.
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
		return x.stray(ruleLine, "there is no revision %s", id)
	case planKey(at, n) != x.Key:
		return x.stray(ruleLine, "its owner %s is not at this place", id)
	case r.Planned > 0 && a.Ref() == at && n >= a.First:
		return x.stray(ruleLine, "revision %s is planned already", id)
	}
	return nil
}

// keeps checks that a row of the line of those that go into the bucket is of a revision or a run
// that is in the table.
func (x *exam) keeps(id string) error {
	at, err := ParseID(id)
	if err != nil {
		return x.stray(ruleLine, "its owner %s is neither a revision nor a run", id)
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

	if err != nil || known {
		return err
	}
	return x.stray(ruleLine, "there is no %s", id)
}
