package revision_test

import (
	"strings"
	"testing"

	"archivist/pkg/kernel/fault"
	"archivist/pkg/revisions/revision"
	"archivist/pkg/revisions/runner"
	"archivist/pkg/revisions/workflow"
)

// gated is a task of which only the latest result is wanted, and which waits for another of its revision.
const gated = "[{name: gate, command: x}, {name: build, command: x, depends: [gate], cancels: [PREV]}]"

// notLatest are definitions in which that task is wanted in each revision, by name.
var notLatest = map[string]string{
	"as before": "[{name: build, command: x, retries: {attempts: 1}}]",
	"renamed":   "[{name: make, was: build, command: x, retries: {attempts: 1}}]",
}

// newerOf is the instance that such a definition plans in a revision.
func newerOf(name, revision string) string {
	return revision + map[string]string{"as before": "/build", "renamed": "/make"}[name]
}

// TestNotLatestOnlyAnyMore: an instance of which only the latest is wanted does not start when a newer one has started,
// also if that is not latest-only any more, or has another name now; whatever has become of it.
func TestNotLatestOnlyAnyMore(t *testing.T) {
	for name, text := range notLatest {
		for _, end := range []string{"", runner.Succeeded, runner.Failed} {
			t.Run(strings.TrimSpace(name+" "+end), func(t *testing.T) {
				w := newWorld(t)
				w.archive("maps", (&repository{}).add(1, gated).add(1, text), 1)
				w.notify("maps", 1, 2)
				w.pass("maps")
				newer := newerOf(name, "maps/2")
				w.want(w.running(), "maps/1/gate", newer)
				if end != "" {
					w.end(newer, end)
					w.pass("maps")
				}
				w.end("maps/1/gate", runner.Succeeded)
				w.pass("maps")
				in, err := w.store.Instance(t.Context(), "maps/1/build")
				w.must(err)
				if in.State != workflow.Superseded || in.By != newer {
					t.Errorf("the older instance is %s by %q (%s), and the newer %s", in.State, in.By, in.Reason,
						w.state(newer))
				}
			})
		}
	}
}

// TestNotLatestOnlyByHand: an old revision of which only the latest was wanted is run by hand only with force, when a
// newer instance has started.
func TestNotLatestOnlyByHand(t *testing.T) {
	for name, text := range notLatest {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.archive("maps", (&repository{}).add(1, gated).add(1, text), 1)
			w.notify("maps", 1, 2)
			w.pass("maps")
			_, err := w.store.StartRun(t.Context(), "maps", revision.Run{Task: "build", Revision: 1}, anna)
			if !fault.Is(err, fault.Conflict) || !strings.Contains(err.Error(), newerOf(name, "maps/2")) {
				t.Errorf("a run without force: %v", err)
			}
			_, err = w.store.StartRun(t.Context(), "maps", revision.Run{Task: "build", Revision: 1, Force: true}, anna)
			w.must(err)
			w.pass("maps")
			w.want(w.running(), "maps/1/build/1", "maps/1/gate", newerOf(name, "maps/2"))
		})
	}
}

// TestNotLatestOnlyFilled: nor does one that a back-fill plans later.
func TestNotLatestOnlyFilled(t *testing.T) {
	for name, text := range notLatest {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.archive("maps", (&repository{}).add(1, "[{name: build, command: x, cancels: [PREV]}]").add(1, text), 2)
			w.notify("maps", 2)
			w.quiet("maps", runner.Failed)
			_, err := w.store.Backfill(t.Context(), "maps", 1, 1, anna)
			w.must(err)
			w.quiet("maps", runner.Succeeded)
			if got := w.state("maps/1/build"); got != workflow.Superseded {
				t.Errorf("the instance of the back-fill is %s", got)
			}
		})
	}
}

// TestOvertakenByRun: an instance that a run by hand overtakes names that run. What follows it waits for the run, and
// not for the instance that the revision has planned: that one waits for the follower.
func TestOvertakenByRun(t *testing.T) {
	w := newWorld(t)
	deploy := "\n- {name: deploy, command: x, depends: [build], follow: true}\n- {name: gate, command: x}\n"
	r := (&repository{}).add(1, "- {name: build, command: x, depends: [gate], cancels: [PREV]}"+deploy)
	r.add(1, `- {name: build, command: x, depends: [gate, "PREV:deploy"]}`+deploy)
	w.archive("maps", r, 1)
	w.notify("maps", 1, 2)
	w.pass("maps")
	run, err := w.store.StartRun(t.Context(), "maps", revision.Run{Task: "build", Revision: 2}, anna)
	w.must(err)
	w.pass("maps")
	w.end("maps/1/gate", runner.Succeeded)
	w.pass("maps")
	w.want(w.running(), run.ID, "maps/2/gate")
	in, err := w.store.Instance(t.Context(), "maps/1/build")
	w.must(err)
	if in.State != workflow.Superseded || in.By != run.ID {
		t.Errorf("the older instance is %s by %q (%s)", in.State, in.By, in.Reason)
	}
	w.quiet("maps", runner.Succeeded)
	for _, id := range []string{"maps/1/deploy", "maps/2/build", "maps/2/deploy"} {
		if got := w.state(id); got != workflow.Success {
			t.Errorf("%s is %s", id, got)
		}
	}
}
