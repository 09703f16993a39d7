package revision_test

import (
	"maps"
	"strings"
	"testing"

	"archivist/pkg/events/check"
	"archivist/pkg/events/check/checktest"
	"archivist/pkg/events/event"
	"archivist/pkg/kernel/explain"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/table"
	"archivist/pkg/revisions/revision"
	"archivist/pkg/revisions/runner"
	"archivist/pkg/revisions/workflow"
)

// bert acts for a reason.
var bert = revision.By{Actor: "bert", Reason: "it was read"}

// manual starts a task that waits for a person.
func (w *world) manual(id string, set map[string]string) revision.Instance {
	w.t.Helper()
	in, err := w.store.StartManual(w.t.Context(), id, set, anna)
	w.must(err)
	return in
}

// TestManual: a step that a person starts waits for its dependencies, then for the person, and explains for whom; what
// depends on it waits with it. It is started once, with values that are checked.
func TestManual(t *testing.T) {
	w := newWorld(t)
	w.archive("maps", (&repository{}).add(1, `
[{name: build, command: x},
 {name: release, command: x, depends: build, manual: the curator, parameters: {VERSION: {type: integer}}},
 {name: announce, command: x, depends: release}]`), 1)
	w.notify("maps", 1)
	w.pass("maps")
	start := func(set map[string]string, by revision.By, want string) {
		t.Helper()
		in, err := w.store.StartManual(t.Context(), "maps/1/release", set, by)
		known := fault.Is(err, fault.Conflict) || fault.Is(err, fault.Invalid)
		if !known || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, %v; want %s", in, err, want)
		}
	}
	start(nil, anna, "cannot be started yet: it is blocked")
	w.end("maps/1/build", runner.Succeeded)
	w.quiet("maps", runner.Succeeded)
	x, err := w.store.Explain(t.Context(), "maps/1/announce")
	w.must(err)
	if x.Root().ID != "maps/1/release" || x.Root().Waits != explain.Person || x.Root().Why != "the curator starts it" ||
		x.Do[0].Command != "archivist archive task start maps/1/release --reason TEXT" {
		t.Errorf("explained as %+v", x)
	}
	start(nil, anna, "parameters.VERSION is missing")
	start(map[string]string{"VERSION": "two"}, anna, "expected a whole number")
	start(map[string]string{"VERSION": "2"}, revision.By{Actor: "anna", Reason: strings.Repeat("x", 600)}, "reason")
	two := map[string]string{"VERSION": "2"}
	in := w.manual("maps/1/release", two)
	if in.State != workflow.Ready || in.Starter != "anna" || in.Reason != anna.Reason {
		t.Errorf("started: %+v", in)
	}
	w.manual("maps/1/release", two) // again, as after a lost answer
	start(map[string]string{"VERSION": "3"}, anna, "was started by anna already")
	start(two, bert, "was started by anna already")
	w.quiet("maps", runner.Succeeded)
	w.manual("maps/1/release", two)
	if got := w.state("maps/1/announce"); got != workflow.Success {
		t.Errorf("what waited for it is %s", got)
	}
	_, err = w.store.StartManual(t.Context(), "maps/1/build", nil, anna)
	if !fault.Is(err, fault.Conflict) {
		t.Errorf("a task that needs nobody: %v", err)
	}
	events := strings.Join(w.history("maps/1/release"), "\n")
	if !strings.Contains(events, `"from":"manual","to":"ready","reason":"a test","parameters":{"VERSION":"2"}`) {
		t.Errorf("its events:\n%s", events)
	}
}

// TestManualInNoLine: who waits for a person keeps no lock from others, and takes its turn once it is started. A newer
// one that is started supersedes it.
func TestManualInNoLine(t *testing.T) {
	w := newWorld(t)
	w.archive("maps", (&repository{}).add(3, `
[{name: release, command: x, manual: true, lock: site, cancels: PREV}, {name: site, command: x, lock: site}]`), 1)
	w.notify("maps", 1, 2, 3)
	w.pass("maps")
	w.want(w.running(), "maps/1/site")
	w.manual("maps/2/release", nil)
	w.pass("maps")
	if got := w.state("maps/1/release"); got != workflow.Superseded {
		t.Errorf("the older one is %s", got)
	}
	w.end("maps/1/site", runner.Succeeded)
	w.pass("maps")
	w.want(w.running(), "maps/2/release")
	w.quiet("maps", runner.Succeeded)
	if got := w.state("maps/3/site"); got != workflow.Success {
		t.Errorf("what is behind one that nobody starts is %s", got)
	}
	if got := w.state("maps/3/release"); got != workflow.Manual {
		t.Errorf("the newest is %s", got)
	}
	_, err := w.store.Cancel(t.Context(), "maps/3/release", anna)
	w.must(err)
	w.sound()
}

// TestManualIsNotSkipped: a rerun with dependents stops at a step that a person starts; a run by hand of the step
// itself does not.
func TestManualIsNotSkipped(t *testing.T) {
	w := newWorld(t)
	w.archive("maps", (&repository{}).add(1, `
[{name: build, command: x}, {name: release, command: x, depends: build, manual: true},
 {name: announce, command: x, depends: release}]`), 1)
	w.notify("maps", 1)
	w.pass("maps")
	w.end("maps/1/build", runner.Failed)
	w.pass("maps")
	_, err := w.store.StartRun(t.Context(), "maps", revision.Run{Task: "build", Revision: 1, Dependents: true}, anna)
	w.must(err)
	w.quiet("maps", runner.Succeeded)
	if got := w.state("maps/1/release/1"); got != workflow.Manual {
		t.Fatalf("after the rerun the step is %s", got)
	}
	w.manual("maps/1/release/1", nil)
	w.quiet("maps", runner.Succeeded)
	if got := w.state("maps/1/announce/1"); got != workflow.Success {
		t.Errorf("what follows the step is %s", got)
	}
	in, err := w.store.StartRun(t.Context(), "maps", revision.Run{Task: "release", Revision: 1}, anna)
	w.must(err)
	if in.State != workflow.Ready {
		t.Errorf("a run by hand is %s", in.State)
	}
	w.quiet("maps", runner.Succeeded)
	w.sound()
}

// TestAllowedFailure: what waits for the success of a task that may fail goes on when it has failed, but not when it
// was cancelled.
func TestAllowedFailure(t *testing.T) {
	w := newWorld(t)
	w.archive("maps", (&repository{}).add(2, `
[{name: check, command: x, allowFailure: true}, {name: pdf, command: x, depends: check},
 {name: alarm, command: x, depends: {task: check, on: failed}}]`), 1)
	w.notify("maps", 1, 2)
	w.pass("maps")
	if in := w.end("maps/1/check", runner.Failed); in.State != workflow.Failure || !in.AllowFailure {
		t.Errorf("the check is %+v", in)
	}
	_, err := w.store.Cancel(t.Context(), "maps/2/check", anna)
	w.must(err)
	w.stopped("maps/2/check")
	w.quiet("maps", runner.Succeeded)
	for id, want := range map[string]workflow.State{"maps/1/pdf": workflow.Success, "maps/1/alarm": workflow.Success,
		"maps/2/pdf": workflow.Skipped} {
		if got := w.state(id); got != want {
			t.Errorf("%s is %s", id, got)
		}
	}
}

// TestParametersOfRuns: they are checked before anything is stored, kept with the run and its event, and part of what a
// key stands for.
func TestParametersOfRuns(t *testing.T) {
	w := newWorld(t)
	w.archive("maps", (&repository{}).add(1, `
[{name: report, command: x, triggers: manual, parameters: {FORMAT: {options: [pdf, epub]}, PAGES: {default: 10}}}]`), 1)
	w.notify("maps", 1)
	w.pass("maps")
	run := func(set map[string]string) (revision.Instance, error) {
		return w.store.StartRun(t.Context(), "maps", revision.Run{Task: "report", Key: "one", Parameters: set}, anna)
	}
	for _, set := range []map[string]string{nil, {"FORMAT": "doc"}, {"FORMAT": "pdf", "X": "1"}} {
		if _, err := run(set); !fault.Is(err, fault.Invalid) {
			t.Errorf("%v: %v", set, err)
		}
	}
	pdf := map[string]string{"FORMAT": "pdf"}
	in, err := run(pdf)
	w.must(err)
	again, err := run(pdf)
	w.must(err)
	if in.ID != "maps/1/report/1" || again.ID != in.ID || !maps.Equal(again.Parameters, pdf) {
		t.Errorf("%+v, %+v", in, again)
	}
	if _, err := run(map[string]string{"FORMAT": "epub"}); !fault.Is(err, fault.Conflict) {
		t.Errorf("the key with other values: %v", err)
	}
	if events := w.history(in.ID); !strings.Contains(events[0], `"parameters":{"FORMAT":"pdf"}`) {
		t.Errorf("its event: %s", events[0])
	}
}

// sound examines all rows.
func (w *world) sound() {
	w.t.Helper()
	for _, p := range w.wrong(func(row table.Raw) bool { return !strings.HasPrefix(row.SK, event.Prefix) }) {
		w.t.Errorf("%s: %s: %s", p.Subject, p.Invariant, p.Evidence)
	}
}

// wrong checks some rows.
func (w *world) wrong(keep func(row table.Raw) bool) []check.Problem {
	w.t.Helper()
	pg := checktest.Page(w.store.Table, w.store.Now, w.store.NewID)
	return checktest.All(w.t, pg, revision.Rules(pg), keep)
}
