package revision

import (
	"fmt"
	"slices"
	"strings"

	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/table"
	"archivist/pkg/revisions/workflow"
)

// revision checks that a revision is planned as its archive says, has its definition, and counts
// its instances right.
func (x *exam) revision(id string) error {
	at, n := splitRevision(id)
	r, err := x.revisionRow(x.ctx, at, n)
	if err != nil || r.Rev == 0 {
		return err
	}

	a, err := x.archiveRow(x.ctx, archiveOf(at))
	if err != nil {
		return err
	}

	if a.Rev == 0 {
		x.add(ruleRow, nil, "there is no archive %s", archiveOf(at))
		return nil
	}

	err = x.position(r, a)
	if err != nil {
		return err
	}

	err = x.defined(r, a)
	if err != nil {
		return err
	}

	// The instances of an old one are in the bucket.
	if r.Planned == 0 || r.Ends != nil {
		return nil
	}
	return x.counts(r)
}

// defined checks that the definition of a revision exists, if it has one.
func (x *exam) defined(r *revisionRow, a *archiveRow) error {
	if r.Definition == "" {
		return nil
	}

	var w workflowRow
	k := workflowKey(a.Name, r.Definition)
	err := x.Table.Get(x.ctx, k, &w)
	if fault.Is(err, fault.NotFound) {
		x.add(ruleRow, nil, "its definition %s is missing", k)
		return nil
	}
	return err
}

// position checks where a revision is, by what its archive says: in the list of revisions, on its
// side of the watermark, and in the line of those to be planned.
func (x *exam) position(r *revisionRow, a *archiveRow) error {
	n := r.Revision.Number
	pk, sk := "REVISIONS#"+r.Archive, fmt.Sprintf("%012d", n)
	var is table.Head
	err := x.Decode(&is)
	if err != nil {
		return err
	}

	if is.ListPK != pk || is.ListSK != sk {
		right := *r
		right.ListPK, right.ListSK = pk, sk
		x.add(rulePlace,
			x.save(a.Name, func(tx *table.Tx) error { return saveRevision(tx, &right) }),
			"it is at %q %q of the index list, and should be at %q %q", is.ListPK, is.ListSK, pk, sk)
	}

	// Revisions of back-fills and of ended epochs may be planned or not.
	usual := a.plans(r)
	switch below := n <= a.Watermark; {
	case usual && below && r.Planned == 0:
		x.add(rulePlan, nil, "revisions up to %d are planned, and this one (%s) is not",
			a.Watermark, r.State)
	case usual && !below && r.Planned > 0:
		x.add(rulePlan, nil, "it is planned, and revisions up to %d are", a.Watermark)
	case r.waits(usual):
		return x.needs(&r.Head, r.Archive, revisionID(r.Archive, n), planKey(r.Archive, n))
	}
	return nil
}

// plans reports whether an archive plans a revision in its turn, not by a back-fill, nor in an
// epoch that has ended.
func (a *archiveRow) plans(r *revisionRow) bool {
	return a.Ref() == r.Archive && a.First > 0 && r.Revision.Number >= a.First
}

// waits reports whether a revision is in the line of those to be planned. usual: its archive plans
// it in its turn. One of a back-fill that is being planned need not be.
func (r *revisionRow) waits(usual bool) bool {
	switch {
	case r.Planned > 0 || r.State == Before:
		return false
	case r.State == Notified || r.State == SkippedBy:
		return true
	}
	return usual
}

// counts counts the instances of a revision from scratch: first by the index, which is quick and
// may lag, and only if the numbers differ one by one.
func (x *exam) counts(r *revisionRow) error {
	all, err := x.instances(r.Archive, r.Revision.Number)
	if err != nil || r.agrees(all) {
		return err
	}

	// The index that lists them may be behind, or have the wrong ones.
	before := len(x.Problems)
	all, err = x.exactly(r)
	if err != nil || len(x.Problems) > before || r.agrees(all) {
		return err
	}

	right := *r
	right.All, right.Over = countOf(all)
	// What is in the bucket has ended.
	right.All, right.Over = right.All+r.InBucket, right.Over+r.InBucket
	x.add(ruleCounts, x.save(archiveOf(r.Archive),
		func(tx *table.Tx) error { tx.Save(&right); return nil }),
		"it counts %d instances, of which %d have ended; there are %d, and %d", r.All, r.Over,
		right.All, right.Over)

	return nil
}

// agrees reports whether the numbers of a revision are those of its instances in the table, with
// those that are in the bucket, and whether COMMIT is there.
func (r *revisionRow) agrees(all []Instance) bool {
	n, over := countOf(all)
	return r.All == n+r.InBucket && r.Over == over+r.InBucket &&
		slices.ContainsFunc(all, func(in Instance) bool {
			return in.Task == workflow.Commit
		})
}

// countOf counts instances, and those of them that have ended.
func countOf(all []Instance) (n, over int64) {
	for _, in := range all {
		if in.State.Over() {
			over++
		}
	}
	return int64(len(all)), over
}

// exactly reads the instances of a revision one by one: those of its definition, and all runs. One
// that there must be, and is not, is wrong, and no repair makes it again.
func (x *exam) exactly(r *revisionRow) (all []Instance, err error) {
	def := &workflow.Definition{}
	if r.Definition != "" {
		def, err = x.Definition(x.ctx, archiveOf(r.Archive), r.Definition)
		if err != nil {
			return nil, err
		}
	}

	tasks := []string{workflow.Commit}
	for _, t := range def.Tasks {
		if t.OnCommit {
			tasks = append(tasks, t.Name)
		}
	}

	n := r.Revision.Number
	for _, task := range tasks {
		in, err := x.instanceRow(x.ctx, instanceID(r.Archive, n, task, 0))
		if err != nil {
			return nil, err
		}
		if in.Rev == 0 {
			x.add(ruleRow, nil, "it has planned %s, and there is no instance of it", task)
			continue
		}
		all = append(all, in.Instance)
	}

	for _, t := range def.Tasks {
		runs, err := x.runsOf(r.Archive, n, t.Name)
		if err != nil {
			return nil, err
		}
		all = append(all, runs...)
	}
	return all, nil
}

// instances are those of a revision that the index lists, as their rows are.
func (x *exam) instances(ref string, n int64) (all []Instance, err error) {
	q := table.Query{Index: "list", PK: "TASKS#" + ref, Prefix: before(n) + "#"}
	for {
		var listed []table.Head
		next, err := x.Table.Page(x.ctx, q, &listed)
		if err != nil {
			return nil, err
		}

		for _, l := range listed {
			in, err := x.instanceRow(x.ctx, strings.TrimPrefix(l.PK, "TASK#"))
			if err != nil {
				return nil, err
			}
			if in.Rev > 0 {
				all = append(all, in.Instance)
			}
		}

		if next == "" {
			return all, nil
		}

		q.Cursor = next
	}
}
