package revision_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"archivist/pkg/kernel/table/tabletest"
	"archivist/pkg/revisions/revision"
	"archivist/pkg/revisions/runner"
	"archivist/pkg/revisions/workflow"
)

// builds is a task of which only the latest result is wanted.
const builds = "[{name: build, command: x, cancels: [PREV]%s}]"

// TestSuperseded: what becomes of the earlier instance, by where it is when its superseder is ready.
func TestSuperseded(t *testing.T) {
	for name, c := range map[string]struct {
		with  string // of the definition
		until func(w *world)
		state workflow.State // of the earlier one, when the superseder has been ready for a grace
		waits bool           // the superseder still does
	}{
		"queued":     {"", func(*world) {}, workflow.Superseded, false},
		"dispatched": {"", func(w *world) { w.pass("maps") }, workflow.Superseded, false},
		"running":    {"", func(w *world) { w.pass("maps"); w.begin("maps/1/build") }, workflow.Superseded, false},
		"retry-wait": {", retries: {attempts: 2, backoff: 1h}",
			func(w *world) { w.pass("maps"); w.end("maps/1/build", runner.Failed) }, workflow.Superseded, false},
		"vetoing": {", interruptible: false", func(w *world) { w.pass("maps"); w.begin("maps/1/build") },
			workflow.Running, true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.archive("maps", (&repository{}).add(2, fmt.Sprintf(builds, c.with)), 1)
			w.notify("maps", 1)
			c.until(w)
			w.notify("maps", 2)
			w.pass("maps")
			w.now = w.now.Add(revision.Default.Grace)
			w.pass("maps")
			if got := w.state("maps/1/build"); got != c.state {
				t.Errorf("the earlier instance is %s, want %s", got, c.state)
			}
			if got := w.state("maps/2/build"); (got == workflow.Awaiting) != c.waits {
				t.Errorf("the superseder is %s", got)
			}
		})
	}
}

// TestLetFinish: superseders wait for one that may finish. When its attempt fails, there is no other; and what comes
// later does not start either.
func TestLetFinish(t *testing.T) {
	w := newWorld(t)
	r := (&repository{}).add(1,
		"[{name: build, command: x, interruptible: false, retries: {attempts: 3, backoff: 1h}}]")
	r.add(3, "[{name: deploy, command: x, cancels: [build]}, {name: build, command: x, triggers: [manual]}]")
	w.archive("maps", r, 1)
	w.notify("maps", 1)
	w.pass("maps")
	w.begin("maps/1/build")
	w.notify("maps", 2, 3, 4)
	w.pass("maps")
	_, err := w.store.StartRun(t.Context(), "maps", revision.Run{Task: "build", Revision: 3}, anna)
	w.must(err)
	w.pass("maps")
	for id, want := range map[string]workflow.State{"maps/1/build": workflow.Running,
		"maps/2/deploy": workflow.Awaiting, "maps/4/deploy": workflow.Awaiting,
		"maps/3/build/1": workflow.Superseded} {
		if got := w.state(id); got != want {
			t.Errorf("%s is %s, want %s", id, got, want)
		}
	}
	w.over("maps/1/build", runner.Failed)
	w.pass("maps")
	if got := w.state("maps/1/build"); got != workflow.Superseded {
		t.Errorf("after its attempt has failed, it is %s", got)
	}
	w.want(w.running(), "maps/2/deploy", "maps/3/deploy", "maps/4/deploy")
}

// TestCompletionAgainstCancel: in whatever order the end of a run, the cancel and the passes come, there is
// exactly one end, it is the one that was first, and the superseder starts behind it.
func TestCompletionAgainstCancel(t *testing.T) {
	won := map[workflow.State]int{}
	permutations(5, func(order []int64) {
		w := newWorld(t)
		w.archive("maps", (&repository{}).add(2, fmt.Sprintf(builds, "")), 1)
		w.notify("maps", 1)
		w.pass("maps")
		e := w.begin("maps/1/build")
		steps := []func(){
			func() { _, _, err := w.store.End(t.Context(), e, runner.Result{End: runner.Succeeded}); w.must(err) },
			func() { _, _, err := w.store.End(t.Context(), e, runner.Result{End: runner.Cancelled}); w.must(err) },
			func() { w.notify("maps", 2) },
			func() { w.pass("maps") },
			func() { w.pass("maps"); w.now = w.now.Add(revision.Default.Grace) },
		}
		for _, n := range order {
			steps[n-1]()
		}
		delete(w.begun, e.Name())
		w.notify("maps", 2)
		w.quiet("maps", runner.Succeeded)
		ends := 0
		for _, line := range w.history("maps/1/build") {
			for _, end := range []string{"succeeded", "superseded", "failed", "cancelled"} {
				if strings.Contains(line, fmt.Sprintf(`"to":%q`, end)) {
					ends++
				}
			}
		}
		if ends != 1 {
			t.Fatalf("order %v: %d ends:\n%s", order, ends, strings.Join(w.history("maps/1/build"), "\n"))
		}
		won[w.state("maps/1/build")]++
		if got := w.state("maps/2/build"); got != workflow.Success {
			t.Fatalf("order %v: the superseder is %s", order, got)
		}
	})
	if won[workflow.Success] < 10 || won[workflow.Superseded] < 10 {
		t.Errorf("the ends were %v", won)
	}
}

// lists has two revisions of a task that a third supersedes by another. The first task of each runs meanwhile.
func lists() *repository {
	two := "[{name: a-first, command: x}, {name: list, command: x}%s]"
	r := (&repository{}).add(2, fmt.Sprintf(two, ""))
	return r.add(1, fmt.Sprintf(two, ", {name: merge, command: x, cancels: [list]}"))
}

// TestCancelThatCannotBeMade: while one of those that an instance supersedes cannot be changed, the instance does not
// start, and neither do the others that it supersedes. When it can be changed, all goes on.
func TestCancelThatCannotBeMade(t *testing.T) {
	w := newWorld(t)
	w.archive("maps", lists(), 1)
	w.limit("maps", 1)
	w.notify("maps", 1, 2)
	w.pass("maps")
	w.want(w.running(), "maps/1/a-first")
	down := true
	tab := tabletest.Table(&tabletest.Client{DynamoDBAPI: w.fake,
		Do: func(_ string, call func() error) error { return call() },
		Refuse: func(partition string) error {
			if down && partition == "TASK#maps/1/list" {
				return errors.New("the connection was lost")
			}
			return nil
		}})
	w.store.Table.Rows, w.store.Table.DB = tab.Rows, tab.DB
	w.notify("maps", 3)
	w.pass("maps")
	if got := w.state("maps/3/merge"); got != workflow.Awaiting {
		t.Errorf("the superseder is %s", got)
	}
	w.limit("maps", 10)
	w.pass("maps")
	w.want(w.running(), "maps/1/a-first")
	down = false
	w.pass("maps")
	w.want(w.running(), "maps/1/a-first", "maps/2/a-first", "maps/3/a-first", "maps/3/list", "maps/3/merge")
	for _, id := range []string{"maps/1/list", "maps/2/list"} {
		if got := w.state(id); got != workflow.Superseded {
			t.Errorf("%s is %s", id, got)
		}
	}
}

// TestLimit: a pass starts as many as may run at once, in their order, and the next one what has become free.
func TestLimit(t *testing.T) {
	w := newWorld(t)
	text := "[{name: a, command: x}, {name: b, command: x}, {name: c, command: x}]"
	w.archive("maps", (&repository{}).add(2, text), 1)
	w.limit("maps", 2)
	w.notify("maps", 1, 2)
	if p := w.pass("maps"); p.Started != 2 {
		t.Errorf("%d were started", p.Started)
	}
	w.want(w.running(), "maps/1/a", "maps/1/b")
	if p := w.pass("maps"); p.Started != 0 {
		t.Errorf("%d were started beside them", p.Started)
	}
	w.end("maps/1/a", runner.Succeeded)
	w.pass("maps")
	w.want(w.running(), "maps/1/b", "maps/1/c")
	w.limit("maps", 3)
	w.pass("maps")
	w.want(w.running(), "maps/1/b", "maps/1/c", "maps/2/a")
}

// TestLateWrite: what a superseded run records after it was ended by force changes nothing.
func TestLateWrite(t *testing.T) {
	w := newWorld(t)
	w.archive("maps", (&repository{}).add(2, fmt.Sprintf(builds, "")), 1)
	w.notify("maps", 1)
	w.pass("maps")
	e := w.begin("maps/1/build")
	w.notify("maps", 2)
	w.pass("maps")
	w.now = w.now.Add(revision.Default.Grace)
	w.pass("maps")
	w.want(w.running(), "maps/2/build")
	_, recorded, err := w.store.End(t.Context(), e, runner.Result{End: runner.Succeeded})
	if err != nil || recorded || w.state("maps/1/build") != workflow.Superseded {
		t.Errorf("a late end was recorded: %t, %v, %s", recorded, err, w.state("maps/1/build"))
	}
}

// TestFollow: what depends on a superseded task is superseded with it, or waits for the result of the superseder.
func TestFollow(t *testing.T) {
	for follow, want := range map[bool]workflow.State{false: workflow.Superseded, true: workflow.Success} {
		w := newWorld(t)
		w.archive("maps", (&repository{}).add(2, fmt.Sprintf(`
- {name: build, command: x, cancels: [PREV]}
- {name: publish, command: x, depends: [build], follow: %t}
`, follow)), 1)
		w.notify("maps", 1, 2)
		w.quiet("maps", runner.Succeeded)
		if got := w.state("maps/1/publish"); got != want {
			t.Errorf("follow %t: it is %s, want %s", follow, got, want)
		}
	}
}

// TestPaths: a task with a filter of paths runs if one has changed since the last revision that counts.
func TestPaths(t *testing.T) {
	w := newWorld(t)
	r := &repository{}
	text := `
- {name: each, command: x, paths: ["maps/**"]}
- {name: last, command: x, paths: ["maps/**"], cancels: [PREV]}
`
	for _, path := range []string{"maps/a", "letters/b", "letters/c"} {
		r.commits = append(r.commits, commit{files: map[string]string{"all.yaml": text}, changed: []string{path}})
	}
	w.archive("maps", r, 1)
	w.notify("maps", 1)
	w.pass("maps")
	w.end("maps/1/each", runner.Succeeded)
	w.end("maps/1/last", runner.Failed)
	w.notify("maps", 2)
	w.quiet("maps", runner.Succeeded)
	w.notify("maps", 3)
	w.quiet("maps", runner.Succeeded)
	for id, want := range map[string]workflow.State{"maps/2/each": workflow.Skipped, "maps/2/last": workflow.Success,
		"maps/3/each": workflow.Skipped, "maps/3/last": workflow.Skipped} {
		if got := w.state(id); got != want {
			t.Errorf("%s is %s, want %s", id, got, want)
		}
	}
	in, err := w.store.Instance(t.Context(), "maps/2/last")
	w.must(err)
	if in.Base != 0 {
		t.Errorf("it was run for all since revision %d; nothing has succeeded before", in.Base)
	}
}

// TestRename: a renamed task waits for, and supersedes, what had its former name.
func TestRename(t *testing.T) {
	w := newWorld(t)
	r := (&repository{}).add(1, "[{name: old, command: x, depends: [PREV]}]")
	r.add(1, "[{name: new, was: old, command: x, depends: [PREV]}]")
	w.archive("maps", r, 1)
	w.notify("maps", 1, 2)
	w.pass("maps")
	w.want(w.running(), "maps/1/old")
	w.end("maps/1/old", runner.Succeeded)
	w.pass("maps")
	w.want(w.running(), "maps/2/new")
}

// TestRemovedAndAdded: a task that was removed and comes back waits for the nearest earlier instance.
func TestRemovedAndAdded(t *testing.T) {
	w := newWorld(t)
	with := "[{name: index, command: x, depends: [PREV]}]"
	w.archive("maps", (&repository{}).add(1, with).add(1, "[]").add(1, with), 1)
	w.notify("maps", 1, 2, 3)
	w.pass("maps")
	w.want(w.running(), "maps/1/index")
	w.end("maps/1/index", runner.Failed)
	w.pass("maps")
	w.want(w.running(), "maps/3/index")
}

// TestInvalid: a definition that is not valid plans nothing in its revision, and the next is not affected.
func TestInvalid(t *testing.T) {
	w := newWorld(t)
	w.archive("maps", (&repository{}).add(1, theText).add(1, "- {nme: x}").add(1, theText), 1)
	w.notify("maps", 1, 2, 3)
	w.quiet("maps", runner.Succeeded)
	r, err := w.store.Revision(t.Context(), "maps", 2)
	w.must(err)
	if r.State != revision.Invalid || len(r.Problems) == 0 || w.state("maps/2/COMMIT") != workflow.Success {
		t.Errorf("found %+v", r)
	}
	if got := w.state("maps/3/build-PDF"); got != workflow.Success {
		t.Errorf("in the next revision, the build is %s", got)
	}
}
