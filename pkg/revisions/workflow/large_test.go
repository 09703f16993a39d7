package workflow_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"archivist/pkg/revisions/workflow"
)

// TestLargeTask: a task that is too large for what its runner is given is refused where it is named; one byte less is
// accepted. What counts is its size as it is passed on.
func TestLargeTask(t *testing.T) {
	build := func(last int) []workflow.File {
		var text strings.Builder
		fmt.Fprint(&text, "- name: small\n- name: large\n  command: x\n  env:\n")
		for i := range 47 {
			fmt.Fprintf(&text, "    V%02d: %q\n", i, strings.Repeat("a", 4<<10))
		}
		fmt.Fprintf(&text, "    LAST: %q\n    SIGNS: \"<&>\"\n", strings.Repeat("a", last))
		return []workflow.File{{Path: "_workflows/a.yaml", Data: []byte(text.String())}}
	}
	d, problems := workflow.Parse(build(1))
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	data, err := json.Marshal(d.Task("large"))
	if err != nil {
		t.Fatal(err)
	}
	room := workflow.MaxTask - len(data) + 1
	d, problems = workflow.Parse(build(room))
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	if data, err = json.Marshal(d.Task("large")); err != nil || len(data) != workflow.MaxTask {
		t.Errorf("the largest task has %d bytes (%v)", len(data), err)
	}
	_, problems = workflow.Parse(build(room + 1))
	if len(problems) != 1 || problems[0].Line != 2 || problems[0].Column != 9 ||
		!strings.Contains(problems[0].Message, fmt.Sprint(workflow.MaxTask+1)) {
		t.Errorf("found %+v", problems)
	}
}
