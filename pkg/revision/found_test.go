package revision_test

import (
	"testing"
	"time"

	"archivist/pkg/runner"
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
