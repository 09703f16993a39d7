package revision_test

import (
	"fmt"
	"strings"
	"testing"

	"archivist/pkg/kernel/fault"
	"archivist/pkg/revisions/revision"
	"archivist/pkg/revisions/runner"
	"archivist/pkg/revisions/workflow"
)

// TestManyOutputs: the end of a run is recorded however long the paths of its outputs are.
func TestManyOutputs(t *testing.T) {
	w := newWorld(t)
	w.archive("maps", (&repository{}).add(1, "- name: a\n  command: x\n"), 1)
	w.notify("maps", 1)
	w.pass("maps")
	res := runner.Result{End: runner.Succeeded}
	for i := range 150 {
		res.Outputs = append(res.Outputs, runner.Output{Path: fmt.Sprintf("%03d%s", i, strings.Repeat("x", 800)),
			SHA256: strings.Repeat("0", 64)})
	}
	in, recorded, err := w.store.End(t.Context(), w.begin("maps/1/a"), res)
	w.must(err)
	if !recorded || in.State != workflow.Success || in.Last.OutputCount != 150 || len(in.Last.Outputs) < 10 {
		t.Errorf("recorded %t, it is %s, with %d outputs of %d", recorded, in.State, len(in.Last.Outputs),
			in.Last.OutputCount)
	}
}

// TestProblemsOfLongPaths: files with long paths can be wrong: the revision is invalid, and the next one goes on.
func TestProblemsOfLongPaths(t *testing.T) {
	w := newWorld(t)
	long := commit{files: map[string]string{strings.Repeat("x", 300<<10) + ".yaml": "a"}}
	many := commit{files: map[string]string{}}
	for i := range 60 {
		many.files[fmt.Sprintf("%s%03d.yaml", strings.Repeat(strings.Repeat("x", 250)+"/", 4), i)] = "- name: a\n"
	}
	r := &repository{commits: []commit{long, many}}
	w.archive("maps", r.add(1, "- name: a\n"), 1)
	w.notify("maps", 1, 2, 3)
	w.pass("maps")
	a, err := w.store.Archive(t.Context(), "maps")
	w.must(err)
	if a.Watermark != 3 {
		t.Errorf("planned up to %d: %+v", a.Watermark, a.Trouble)
	}
	for _, n := range []int64{1, 2} {
		r, err := w.store.Revision(t.Context(), "maps", n)
		w.must(err)
		if r.State != revision.Invalid || len(r.Problems) == 0 {
			t.Errorf("revision %d is %s, with %d problems", n, r.State, len(r.Problems))
		}
	}
}

// TestFormerNames: whatever is written with PREV or cancels finds a task under its former name, also that of another
// task, and under whichever name is the nearest.
func TestFormerNames(t *testing.T) {
	w := newWorld(t)
	r := (&repository{}).add(1, "[{name: new, command: x}]")
	r.add(1, "[{name: old, command: x}, {name: slow, command: x}]")
	r.add(1, "[{name: COMMIT, depends: 'PREV:quick'}, {name: new, was: old, command: x}, "+
		"{name: quick, was: slow, command: x}, {name: after, command: x, depends: 'PREV:new'}, "+
		"{name: instead, command: x, cancels: quick}]")
	w.archive("maps", r, 1)
	w.notify("maps", 1, 2, 3)
	w.pass("maps")
	for id, want := range map[string]string{"maps/3/after": "maps/2/old", "maps/3/COMMIT": "maps/2/slow"} {
		in, err := w.store.Instance(t.Context(), id)
		w.must(err)
		if got := in.Edges[1].ID; got != want {
			t.Errorf("%s waits for %q, want %q", id, got, want)
		}
	}
	in, err := w.store.Instance(t.Context(), "maps/3/instead")
	w.must(err)
	w.want(in.Cancels, "quick", "slow")
	w.quiet("maps", runner.Succeeded)
}

// TestSkipInBackfill: a back-fill whose next revision cannot be read goes on when that is skipped.
func TestSkipInBackfill(t *testing.T) {
	w := newWorld(t)
	r := (&repository{}).add(5, "[{name: index, command: x}]")
	w.archive("maps", r, 0)
	w.notify("maps", 5)
	w.quiet("maps", runner.Succeeded)
	_, err := w.store.Backfill(t.Context(), "maps", 2, 4, anna)
	w.must(err)
	r.fails = fault.New(fault.Invalid, "it is damaged")
	w.quiet("maps", runner.Succeeded)
	for n, want := range map[int64]fault.Kind{1: fault.Conflict, 3: fault.Conflict, 2: ""} {
		err = w.store.Skip(t.Context(), "maps", n, revision.By{Actor: "anna", Reason: "it is damaged"})
		if fault.Of(err) != want {
			t.Errorf("skip %d: %v", n, err)
		}
	}
	r.fails = nil
	w.quiet("maps", runner.Succeeded)
	for id, want := range map[string]workflow.State{"maps/2/COMMIT": workflow.Success, "maps/3/index": workflow.Success,
		"maps/4/index": workflow.Success} {
		if got := w.state(id); got != want {
			t.Errorf("%s is %s", id, got)
		}
	}
	a, err := w.store.Archive(t.Context(), "maps")
	w.must(err)
	if a.Backfill != nil || a.Trouble != nil {
		t.Errorf("%+v %+v", a.Backfill, a.Trouble)
	}
}
