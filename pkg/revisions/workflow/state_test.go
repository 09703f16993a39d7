package workflow_test

import (
	"fmt"
	"strings"
	"testing"

	"archivist/pkg/revisions/workflow"
)

// TestJudge: what the end of an awaited instance means for the one that waits, by what it waits for.
func TestJudge(t *testing.T) {
	type edge = workflow.Edge
	ends := []workflow.State{workflow.Running, workflow.Waiting, workflow.Success, workflow.Failure,
		workflow.Cancelled, workflow.Superseded, workflow.Skipped}
	for _, c := range []struct {
		edge edge
		want string // for each of the states
	}{
		{edge{Task: "a", On: workflow.Succeeded}, "open open yes no no overtaken no"},
		{edge{Task: "a", On: workflow.Failed}, "open open no yes no overtaken no"},
		{edge{Task: "a", On: workflow.Ended}, "open open yes yes yes yes yes"},
		{edge{Task: "a", On: workflow.Finished}, "open open yes yes no overtaken no"},
		{edge{Task: "a", Prev: true, On: workflow.Succeeded}, "open open yes no no no no"},
		{edge{Task: "a", Prev: true, On: workflow.Failed}, "open open no yes no no no"},
		{edge{Task: workflow.Commit, On: workflow.Succeeded}, "open open yes yes yes yes yes"},
	} {
		var got []string
		for _, end := range ends {
			got = append(got, map[workflow.Verdict]string{workflow.Open: "open", workflow.Satisfied: "yes",
				workflow.Impossible: "no", workflow.Overtaken: "overtaken"}[c.edge.Judge(end)])
		}
		if text := strings.Join(got, " "); text != c.want {
			t.Errorf("%+v: %s, expected %s", c.edge, text, c.want)
		}
	}
}

// TestCancelTarget: what becomes of an earlier instance, by its state, and by how often its task was superseded.
func TestCancelTarget(t *testing.T) {
	for _, c := range []struct {
		target workflow.CancelTarget
		want   workflow.Action
	}{
		{workflow.CancelTarget{State: workflow.Blocked}, workflow.Supersede},
		{workflow.CancelTarget{State: workflow.Ready, Uninterruptible: true}, workflow.Supersede},
		{workflow.CancelTarget{State: workflow.Waiting, InRow: 100}, workflow.Supersede},
		{workflow.CancelTarget{State: workflow.Running}, workflow.Stop},
		{workflow.CancelTarget{State: workflow.Dispatched, InRow: 9}, workflow.Stop},
		{workflow.CancelTarget{State: workflow.Running, InRow: 10}, workflow.Let},
		{workflow.CancelTarget{State: workflow.Running, Uninterruptible: true}, workflow.Let},
		{workflow.CancelTarget{State: workflow.Running, StopRequested: true}, workflow.NoAction},
		{workflow.CancelTarget{State: workflow.Success}, workflow.NoAction},
	} {
		if got := c.target.Cancel(); got != c.want {
			t.Errorf("%+v: %q, expected %q", c.target, got, c.want)
		}
	}
}

// TestTransitions: an instance that has not ended can be cancelled and superseded, whatever it waits for; one that has
// ended stays as it is.
func TestTransitions(t *testing.T) {
	for _, from := range workflow.States {
		for _, to := range []workflow.State{workflow.Cancelled, workflow.Superseded} {
			if got := workflow.Follows(from, to); got == from.Over() {
				t.Errorf("from %s to %s: %v", from, to, got)
			}
		}
	}
}

// TestMostTasks: a revision has 200 tasks, and COMMIT beside them.
func TestMostTasks(t *testing.T) {
	var file strings.Builder
	file.WriteString("- {name: COMMIT, depends: PREV:t0}\n")
	for n := range 200 {
		fmt.Fprintf(&file, "- {name: t%d, command: x}\n", n)
	}
	if got := problems("a.yaml", file.String()); got != nil {
		t.Errorf("%v", got)
	}
	file.WriteString("- {name: more, command: x}\n")
	if got := problems("a.yaml", file.String()); len(got) != 1 || !strings.Contains(got[0], "more than 200 tasks") {
		t.Errorf("%v", got)
	}
}

// TestTwoCycles: each cycle of a definition is named.
func TestTwoCycles(t *testing.T) {
	got := problems("a.yaml", "- {name: a, depends: b}\n- {name: b, depends: a}\n"+
		"- {name: c, depends: d}\n- {name: d, depends: c}\n")
	if len(got) != 2 || !strings.Contains(got[0], "a → b → a") || !strings.Contains(got[1], "c → d → c") {
		t.Errorf("%q", got)
	}
}
