package revision_test

import (
	"fmt"
	"testing"

	"archivist/pkg/revisions/revision"
	"archivist/pkg/revisions/runner"
	"archivist/pkg/revisions/workflow"
)

// TestHealed: a failure skips the task in later revisions, each of which needs the success of the one before. A run by
// hand that succeeds at the newest revision counts as its success there, and the next revision goes on. One that fails,
// or succeeds at an older revision, heals nothing.
func TestHealed(t *testing.T) {
	w := newWorld(t)
	w.archive("maps", (&repository{}).add(6, `
[{name: build, command: x, depends: [{task: PREV, on: succeeded}], inputs: PREV}]`), 1)
	plan := func(n int64) string { w.notify("maps", n); w.pass("maps"); return fmt.Sprintf("maps/%d/build", n) }
	run := func(n int64, end string) {
		t.Helper()
		in, err := w.store.StartRun(t.Context(), "maps", revision.Run{Task: "build", Revision: n}, anna)
		w.must(err)
		w.pass("maps")
		w.end(in.ID, end)
		w.pass("maps")
	}
	w.end(plan(1), runner.Failed)
	w.pass("maps")
	for n := int64(2); n <= 3; n++ {
		if got := w.state(plan(n)); got != workflow.Skipped {
			t.Fatalf("revision %d: %s", n, got)
		}
	}
	run(3, runner.Failed)
	run(1, runner.Succeeded)
	if got := w.state(plan(4)); got != workflow.Skipped {
		t.Errorf("after a failed run at 3 and a success at 1, revision 4 is %s", got)
	}
	run(4, runner.Succeeded)
	id := plan(5)
	in, err := w.store.Instance(t.Context(), id)
	w.must(err)
	if in.Edges[1].Verdict != workflow.Healed || in.Edges[1].ID != "maps/4/build" {
		t.Errorf("the edge of revision 5 is %+v", in.Edges[1])
	}
	if len(in.Inputs) != 1 || in.Inputs[0].ID != "maps/4/build/3" || in.Edges[1].By != in.Inputs[0].ID {
		t.Errorf("it gets the outputs of %+v", in.Inputs)
	}
	first, err := w.store.Instance(t.Context(), "maps/3/build/1")
	w.must(err)
	if len(first.Inputs) != 1 || first.Inputs[0].ID != "" {
		t.Errorf("a run by hand after one that was skipped gets the outputs of %+v", first.Inputs)
	}
	w.end(id, runner.Succeeded)
	w.pass("maps")
	id = plan(6)
	if w.state(id) == workflow.Skipped {
		t.Errorf("revision 6 is skipped")
	}
	w.sound()
}
