package revision_test

import (
	"testing"
	"time"

	"archivist/pkg/runner"
	"archivist/pkg/table/tabletest"
	"archivist/pkg/workflow"
)

// These cases were found by test/revisionsim.

// TestScheduleBehindInvalid: a schedule runs the tasks of the last revision that has some, also when the newest one
// is invalid.
func TestScheduleBehindInvalid(t *testing.T) {
	w := newWorld(t)
	r := (&repository{}).add(1, `[{name: a, command: x, triggers: [{schedule: {cron: "*/5 * * * *"}}]}]`)
	r.add(1, "[{name: a, command: x, depends: [nobody]}]")
	w.archive("maps", r, 0)
	w.notify("maps", 1, 2)
	w.pass("maps")
	w.now = w.now.Add(5 * time.Minute)
	w.pass("maps")
	w.want(w.running(), "maps/1/a/1")
	w.end("maps/1/a/1", runner.Succeeded)
	if got := w.state("maps/1/a/1"); got != workflow.Success {
		t.Errorf("the run by schedule is %s", got)
	}
}

// TestFirstMoves: a revision that is notified while a later one is being planned as the first does not become the
// first. The plan goes on.
func TestFirstMoves(t *testing.T) {
	w := newWorld(t)
	r := (&repository{}).add(2, "[{name: a, command: x, depends: [PREV]}]")
	w.archive("maps", r, 0)
	w.notify("maps", 2)
	notified := false
	tab := tabletest.Table(&tabletest.Client{DynamoDBAPI: w.fake, Do: func(op string, call func() error) error {
		err := call()
		if op != "TransactWriteItems" || notified {
			return err
		}
		_, unknown := w.store.Instance(t.Context(), "maps/2/a")
		if unknown == nil {
			notified = true // the instances of revision 2 are written, its COMMIT is not
			w.notify("maps", 1)
		}
		return err
	}})
	w.store.Table.Rows, w.store.Table.DB = tab.Rows, tab.DB
	w.quiet("maps", runner.Succeeded)
	a, err := w.store.Archive(t.Context(), "maps")
	w.must(err)
	if !notified || a.First != 2 || a.Watermark != 2 {
		t.Errorf("revisions %d to %d are planned", a.First, a.Watermark)
	}
}

// TestLockBetweenAttempts: an instance keeps its lock between its attempts, also if an earlier one comes meanwhile.
func TestLockBetweenAttempts(t *testing.T) {
	w := newWorld(t)
	w.archive("maps", (&repository{}).add(2, "[{name: a, command: x, lock: disk, retries: 2}]"), 2)
	w.notify("maps", 2)
	w.pass("maps")
	_, err := w.store.Fill(t.Context(), "maps", 1, 1, anna)
	w.must(err)
	w.pass("maps")
	w.end("maps/2/a", runner.Failed)
	w.now = w.now.Add(time.Hour)
	w.pass("maps")
	w.want(w.running(), "maps/2/a")
	w.end("maps/2/a", runner.Succeeded)
	w.pass("maps")
	w.want(w.running(), "maps/1/a")
}
