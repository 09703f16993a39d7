package revision

import (
	"fmt"
	"slices"
	"strings"

	"archivist/pkg/fault"
	"archivist/pkg/table"
	"archivist/pkg/workflow"
)

// revision checks that a revision is planned as its archive says, and counts its instances right.
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
		x.add(RuleRow, nil, "there is no archive %s", archiveOf(at))
		return nil
	}
	err = x.position(r, a)
	if err == nil && r.Definition != "" {
		var w workflowRow
		k := workflowKey(a.Name, r.Definition)
		err = x.Table.Get(x.ctx, k, &w)
		if fault.Is(err, fault.NotFound) {
			x.add(RuleRow, nil, "its definition %s is missing", k)
			err = nil
		}
	}
	if err != nil || r.Planned == 0 || r.Ends != nil { // the instances of an old one are in the bucket
		return err
	}
	return x.counts(r)
}

// position checks where a revision is, by what its archive says.
func (x *exam) position(r *revisionRow, a *archiveRow) error {
	n := r.Revision.Number
	pk, sk := "REVISIONS#"+r.Archive, fmt.Sprintf("%012d", n)
	var is table.Head
	err := x.row.Decode(&is)
	if err != nil {
		return err
	}
	if is.ListPK != pk || is.ListSK != sk {
		right := *r
		right.ListPK, right.ListSK = pk, sk
		x.add(RulePlace, x.save(a.Name, func(tx *table.Tx) error { return saveRevision(tx, &right) }),
			"it is at %q %q of the index list, and should be at %q %q", is.ListPK, is.ListSK, pk, sk)
	}
	usual := a.plans(r)
	switch below := n <= a.Watermark; {
	case usual && below && r.Planned == 0:
		x.add(RulePlan, nil, "revisions up to %d are planned, and this one (%s) is not", a.Watermark, r.State)
	case usual && !below && r.Planned > 0:
		x.add(RulePlan, nil, "it is planned, and revisions up to %d are", a.Watermark)
	case r.waits(usual):
		return x.needs(&r.Head, r.Archive, revisionID(r.Archive, n), planKey(r.Archive, n))
	}
	return nil
}

// plans reports whether an archive plans a revision in its turn, not by a back-fill, nor in an epoch that has ended.
func (a *archiveRow) plans(r *revisionRow) bool {
	return a.Ref() == r.Archive && a.First > 0 && r.Revision.Number >= a.First
}

// waits reports whether a revision is in the line of those to be planned.
func (r *revisionRow) waits(usual bool) bool {
	switch {
	case r.Planned > 0 || r.State == Before:
		return false
	case r.State == Notified || r.State == SkippedBy:
		return true
	}
	return usual
}

// counts counts the instances of a revision from scratch.
func (x *exam) counts(r *revisionRow) error {
	all, err := x.instances(r.Archive, r.Revision.Number)
	if err != nil || r.agrees(all) {
		return err
	}
	all, err = x.exactly(r) // the index that lists them may be behind, or have the wrong ones
	if err != nil || len(x.wrong) > 0 || r.agrees(all) {
		return err
	}
	right := *r
	right.All, right.Over = countOf(all)
	right.All, right.Over = right.All+r.Kept, right.Over+r.Kept
	x.add(RuleCounts, x.save(archiveOf(r.Archive), func(tx *table.Tx) error { tx.Save(&right); return nil }),
		"it counts %d instances, of which %d have ended; there are %d, and %d", r.All, r.Over, right.All, right.Over)
	return nil
}

// agrees reports whether the numbers of a revision are those of its instances.
func (r *revisionRow) agrees(all []Instance) bool {
	n, over := countOf(all)
	return r.All == n+r.Kept && r.Over == over+r.Kept && slices.ContainsFunc(all, func(in Instance) bool {
		return in.Task == workflow.Commit
	})
}

func countOf(all []Instance) (n, over int64) {
	for _, in := range all {
		if in.State.Over() {
			over++
		}
	}
	return int64(len(all)), over
}

// exactly reads the instances of a revision one by one: those of its definition, and all runs. One that there must be,
// and is not, is wrong.
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
			x.add(RuleRow, nil, "it has planned %s, and there is no instance of it", task)
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

// mostRuns is how many runs of a task are read one by one.
const mostRuns = 10_000

// runsOf reads the runs of a task in a revision. Their numbers are those of the task in all revisions.
func (x *exam) runsOf(ref string, n int64, task string) (all []Instance, err error) {
	names, err := x.nameRow(x.ctx, ref, task)
	if names.Runs > mostRuns {
		return nil, fault.New(fault.Conflict, "%s has had %d runs, which are too many to be read one by one", task,
			names.Runs)
	}
	for run := int64(1); err == nil && run <= names.Runs; run++ {
		var in *instanceRow
		in, err = x.instanceRow(x.ctx, instanceID(ref, n, task, run))
		if err == nil && in.Rev > 0 {
			all = append(all, in.Instance)
		}
	}
	return all, err
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
