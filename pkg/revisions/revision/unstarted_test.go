package revision_test

import (
	"strings"
	"testing"
	"time"

	"archivist/pkg/revisions/runner"
	"archivist/pkg/revisions/workflow"
)

// TestUnstarted: executions of which nothing was begun take none of the task's attempts, here of one that has a single
// one. They wait longer each time, and after six the instance has failed, with the reason of the last.
func TestUnstarted(t *testing.T) {
	for ends, want := range map[int]workflow.State{1: workflow.Success, 5: workflow.Success, 6: workflow.Failure} {
		w := newWorld(t)
		w.archive("maps", (&repository{}).add(1, `[{name: a, command: x}]`), 1)
		w.notify("maps", 1)
		w.pass("maps")
		var waits time.Duration
		for range ends {
			e := w.begin("maps/1/a")
			full := runner.Result{End: runner.Broken, Exit: -1, Reason: "the disk is full", Unstarted: true}
			in, _, err := w.store.End(t.Context(), e, full)
			w.must(err)
			delete(w.begun, e.Name())
			if in.State == workflow.Waiting {
				wait := time.UnixMilli(in.Until).Sub(w.now)
				if wait <= waits || in.Attempt != 0 {
					t.Errorf("after a wait of %s comes one of %s; attempt %d", waits, wait, in.Attempt)
				}
				waits = wait
				w.now = w.now.Add(wait)
			}
			w.pass("maps")
		}
		if want == workflow.Success {
			w.end("maps/1/a", runner.Succeeded)
		}
		in, err := w.store.Instance(t.Context(), "maps/1/a")
		w.must(err)
		if in.State != want || want == workflow.Failure && !strings.HasSuffix(in.Reason, "the disk is full") {
			t.Errorf("after %d: %s: %s", ends, in.State, in.Reason)
		}
		attemptsEnd(t, w, ends)
	}
}

// attemptsEnd checks that each execution is shown with its end.
func attemptsEnd(t *testing.T, w *world, unstarted int) {
	t.Helper()
	all, err := w.store.Attempts(t.Context(), "maps/1/a")
	w.must(err)
	n := 0
	for _, a := range all {
		if a.End == "" || a.Ended == 0 {
			t.Errorf("an attempt without an end: %+v", a)
		}
		if a.End == runner.Broken {
			n++
		}
	}
	if n != unstarted {
		t.Errorf("%d attempts are broken, want %d: %+v", n, unstarted, all)
	}
}
