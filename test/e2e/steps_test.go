package e2e

import (
	"testing"

	v1 "archivist/pkg/api/v1"
	"archivist/pkg/kernel/fault"
)

// TestStepsOfTasks: a task finds what others have left, goes on after a failure that is allowed, and waits for the
// person who starts it with values of its parameters; by hand it is run again with these.
func TestStepsOfTasks(t *testing.T) {
	begin(t)
	a := newArchive(t, "steps")
	const definition = `
- name: check
  command: exit 3
  allowFailure: true
- name: index
  depends: [check, PREV]
  inputs: PREV
  script: |
    cat "$ARCHIVIST_INPUTS"/PREV/index/* >"$ARCHIVIST_OUTPUTS/n" 2>/dev/null
    echo "$ARCHIVIST_REVISION" >>"$ARCHIVIST_OUTPUTS/n"
- name: release
  depends: index
  inputs: index
  manual: the curator of steps
  parameters: {VERSION: {type: integer}}
  command: echo "version $VERSION"; cat "$ARCHIVIST_INPUTS/index/n"
- name: announce
  depends: release
  command: echo announced
`
	a.commits(definition)
	a.notify(1)
	a.becomes(a.id(1, "release"), "manual")
	n := a.begin(definition)
	release := a.id(n, "release")
	a.becomes(release, "manual")
	x, err := client.Explain(t.Context(), a.id(n, "announce"))
	if root := x.Root(); err != nil || root.ID != release || root.WaitsFor != "person" ||
		root.Why != "the curator of steps starts it" ||
		x.Do[0].Command != "archivist archive task start "+release+" --reason TEXT" {
		t.Errorf("what depends on it waits for %+v, %v", x, err)
	}
	start := func(set map[string]string) (v1.Task, error) {
		act := v1.TaskAction{Action: "start", Parameters: set, Reason: "it was read"}
		return client.ActOnTask(t.Context(), release, act, "")
	}
	if _, err := start(nil); !fault.Is(err, fault.Invalid) {
		t.Errorf("without its parameter: %v", err)
	}
	for range 2 { // the second is a repetition
		if got, err := start(map[string]string{"VERSION": "2"}); err != nil || got.Starter == "" {
			t.Errorf("started: %+v, %v", got, err)
		}
	}
	a.becomes(a.id(n, "announce"), "succeeded")
	a.logged(release, 0, "version 2\n1\n2\n")
	got, err := client.ActOnTask(t.Context(), release, v1.TaskAction{Action: "rerun", Reason: "again"}, "")
	if err != nil || got.Parameters["VERSION"] != "2" || got.Inputs[0].ID != a.id(n, "index") {
		t.Errorf("a run again: %+v, %v", got, err)
	}
	a.becomes(got.ID, "succeeded")
	a.logged(got.ID, 0, "version 2\n1\n2\n")
}
