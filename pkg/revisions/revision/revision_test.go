package revision_test

import (
	"testing"

	"archivist/pkg/revisions/runner"
	"archivist/pkg/revisions/workflow"
)

// theText is the definition in the requirement.
const theText = `
- name: indexing
  depends:
    - PREV
  command: index
- name: build-PDF
  depends:
    - indexing
  cancels:
    - PREV
  command: build
`

// TestSequence is the sequence of the requirement: revision 3 is notified before revision 2, and the build of
// revision 2 is cancelled by that of revision 3.
func TestSequence(t *testing.T) {
	w := newWorld(t)
	w.archive("maps", (&repository{}).add(3, theText), 2)
	w.notify("maps", 3)
	w.pass("maps")
	if got := w.running(); len(got) != 0 {
		t.Fatalf("before revision 2 is known, %v runs", got)
	}
	w.notify("maps", 2)
	w.pass("maps")
	w.want(w.running(), "maps/2/indexing")
	w.end("maps/2/indexing", runner.Succeeded)
	w.pass("maps")
	w.want(w.running(), "maps/2/build-PDF", "maps/3/indexing")
	old := w.begin("maps/2/build-PDF")
	w.end("maps/3/indexing", runner.Succeeded)
	w.pass("maps")
	w.want(w.running(), "maps/2/build-PDF")
	if len(w.told) != 1 {
		t.Fatalf("the build of revision 2 was not told to end: %v", w.told)
	}
	if got := w.state("maps/3/build-PDF"); got != workflow.Awaiting {
		t.Fatalf("the build of revision 3 is %s", got)
	}
	in, recorded, err := w.store.End(t.Context(), old, runner.Result{End: runner.Cancelled})
	if err != nil || !recorded || in.State != workflow.Superseded {
		t.Fatalf("the cancelled build is %s (recorded %t, %v)", in.State, recorded, err)
	}
	delete(w.begun, old.Name())
	w.pass("maps")
	w.want(w.running(), "maps/3/build-PDF")
	w.end("maps/3/build-PDF", runner.Succeeded)
	w.pass("maps")
	for id, state := range map[string]workflow.State{"maps/2/COMMIT": workflow.Success,
		"maps/3/COMMIT":   workflow.Success,
		"maps/2/indexing": workflow.Success, "maps/3/indexing": workflow.Success,
		"maps/2/build-PDF": workflow.Superseded, "maps/3/build-PDF": workflow.Success} {
		if got := w.state(id); got != state {
			t.Errorf("%s is %s, want %s", id, got, state)
		}
	}
}
