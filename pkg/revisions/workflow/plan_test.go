package workflow_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"archivist/pkg/revisions/workflow"
)

// TestRequirementPlan: the plans of revisions 2 and 3 are those of the requirement. Its revision 1 has none of the
// tasks.
func TestRequirementPlan(t *testing.T) {
	want := `rev-1:COMMIT <-- rev-2:COMMIT
rev-2:COMMIT <-- rev-2:indexing
rev-2:indexing <-- rev-2:build-PDF
rev-2:COMMIT <-- rev-3:COMMIT
rev-3:COMMIT <-- rev-3:indexing
rev-2:indexing <-- rev-3:indexing
rev-3:indexing <-- rev-3:build-PDF
rev-2:build-PDF <!= rev-3:build-PDF
`
	d := parse(t, requirement)
	got := ""
	for revision := int64(2); revision <= 3; revision++ {
		prev := func(task string) (int64, bool) { return revision - 1, revision > 2 || task == workflow.Commit }
		for _, p := range workflow.Plan(d, revision, prev) {
			for _, a := range p.Awaits {
				if a.Revision > 0 && !p.Implied(a) {
					got += fmt.Sprintf("rev-%d:%s <-- rev-%d:%s\n", a.Revision, a.Task, revision, p.Task)
				}
			}
			for _, c := range p.Cancels {
				if c.Revision > 0 {
					got += fmt.Sprintf("rev-%d:%s <!= rev-%d:%s\n", c.Revision, c.Task, revision, p.Task)
				}
			}
		}
	}
	if got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
}

func TestPlan(t *testing.T) {
	d := parse(t, `
- {name: a, was: old, depends: PREV}
- {name: b, depends: [a, {task: PREV, scope: exact}, {task: PREV:c, on: failed}], paths: "**/*.tif"}
- {name: c, depends: {task: b, on: ended}, cancels: [PREV, keep]}
- {name: keep, interruptible: false}
- {name: manual, triggers: manual, depends: a}
- {name: COMMIT, depends: PREV:keep}
- {name: split, was: whole, depends: PREV}
`)
	known := map[string]int64{"COMMIT": 6, "old": 4, "b": 5, "keep": 6, "split": 5, "whole": 5}
	plan := workflow.Plan(d, 7, func(task string) (int64, bool) { r, ok := known[task]; return r, ok })
	var got []string
	for _, p := range plan {
		for _, a := range p.Awaits {
			got = append(got, fmt.Sprintf("%s: %s %d %s", p.Task, a.Task, a.Revision, a.Why))
		}
		for _, c := range p.Cancels {
			got = append(got, fmt.Sprintf("%s cancels: %s %d %s", p.Task, c.Task, c.Revision, c.Why))
		}
	}
	want := []string{
		"COMMIT: COMMIT 6 revisions are in the order of their commits: this one comes after 6",
		"COMMIT: keep 6 keep of revision 6, the nearest that has planned it, must end first",
		"a: COMMIT 7 every task of revision 7 waits until the commit is complete",
		"a: old 4 old of revision 4, the nearest that has planned it, must end first (its name now is a)",
		"keep: COMMIT 7 every task of revision 7 waits until the commit is complete",
		"split: COMMIT 7 every task of revision 7 waits until the commit is complete",
		"split: split 5 split of revision 5, the nearest that has planned it, must end first",
		"b: COMMIT 7 every task of revision 7 waits until the commit is complete",
		"b: a 7 a of this revision must succeed first",
		"b: b 0 revision 6, directly before, has not planned b, so there is nothing to wait for",
		"b: c 0 no earlier revision has planned c, so there is nothing to wait for",
		"c: COMMIT 7 every task of revision 7 waits until the commit is complete",
		"c: b 7 b of this revision must end first, if the revision changes a path that it is for",
		"c cancels: c 0 no earlier revision has planned c, so there is nothing to cancel",
		"c cancels: keep 6 once it can start, keep of revision 6 and earlier is superseded, unless it has ended; " +
			"while it runs, it may finish",
	}
	if !slices.Equal(got, want) {
		t.Errorf("%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}
