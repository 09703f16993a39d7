package revision_test

import (
	"testing"

	"archivist/pkg/kernel/table"
	"archivist/pkg/revisions/runner"
	"archivist/pkg/revisions/workflow"
)

// followed is an archive of which the second build supersedes the first, and what depends on a build follows.
const followed = `
- {name: build, command: x, cancels: [PREV]}
- {name: deploy, command: x, depends: [build], follow: true}
`

// TestRepairOfFollower: what waits for an instance that was superseded, and was forgotten, follows the superseder after
// the repair. If the superseder ends, and all that waits for it is told, while the repair is made, it goes on, too.
func TestRepairOfFollower(t *testing.T) {
	w := newWorld(t)
	w.archive("maps", (&repository{}).add(2, followed), 1)
	w.notify("maps", 1)
	w.pass("maps")
	w.begin("maps/1/build")
	w.must(w.store.Table.Rows.Delete("pk", "TASK#maps/1/build").Range("sk", "WAITER#maps/1/deploy").Run(t.Context()))
	w.notify("maps", 2)
	w.pass("maps")
	w.stopped("maps/1/build")
	w.pass("maps")
	if got := w.state("maps/1/deploy"); got != workflow.Blocked {
		t.Fatalf("it is not forgotten, but %s", got)
	}
	ended := false
	w.refusing(func(op, partition string) error {
		if op == "TransactWriteItems" && partition == "TASK#maps/1/deploy" && !ended {
			ended = true // the repair has read the superseder, and is about to write
			w.end("maps/2/build", runner.Succeeded)
			w.pass("maps")
		}
		return nil
	})
	deploy := func(row table.Raw) bool { return row.PK == "TASK#maps/1/deploy" && row.SK == "TASK" }
	for _, x := range w.wrong(deploy) {
		w.must(x.Repair(t.Context()))
	}
	w.quiet("maps", runner.Succeeded)
	if got := w.state("maps/1/deploy"); got != workflow.Success || !ended {
		t.Errorf("after the repair it is %s; the superseder has ended meanwhile: %t", got, ended)
	}
}

// TestCauseOfFollower: what is skipped because of the end of the superseder that it follows names that as the cause,
// and not the instance that was superseded.
func TestCauseOfFollower(t *testing.T) {
	w := newWorld(t)
	w.archive("maps", (&repository{}).add(2, followed), 1)
	w.notify("maps", 1)
	w.pass("maps")
	w.begin("maps/1/build")
	w.notify("maps", 2)
	w.pass("maps")
	w.stopped("maps/1/build")
	_, err := w.store.Cancel(t.Context(), "maps/2/build", anna) // before a pass has seen that end
	w.must(err)
	w.pass("maps")
	for _, id := range []string{"maps/1/deploy", "maps/2/deploy"} {
		in, err := w.store.Instance(t.Context(), id)
		w.must(err)
		if in.State != workflow.Skipped || in.Root != "maps/2/build" {
			t.Errorf("%s is %s because of %q (%s)", id, in.State, in.Root, in.Reason)
		}
	}
}

// TestFollowAcrossNames: the superseder is followed under another name, too, if that says which one it had.
func TestFollowAcrossNames(t *testing.T) {
	w := newWorld(t)
	archive := &repository{}
	archive.add(1, followed)
	archive.add(2, `
- {name: make, was: build, command: x, cancels: [PREV]}
- {name: deploy, command: x, depends: [make], follow: true}
`)
	w.archive("maps", archive, 1)
	w.notify("maps", 1)
	w.pass("maps")
	w.begin("maps/1/build")
	w.notify("maps", 2)
	w.pass("maps")
	w.stopped("maps/1/build")
	w.pass("maps")
	if got := w.state("maps/1/build"); got != workflow.Superseded {
		t.Errorf("the first build is %s", got)
	}
	w.quiet("maps", runner.Succeeded)
	if got := w.state("maps/1/deploy"); got != workflow.Success {
		t.Errorf("what follows is %s", got)
	}
}
