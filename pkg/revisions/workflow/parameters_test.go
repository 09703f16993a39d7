package workflow_test

import (
	"maps"
	"reflect"
	"strings"
	"testing"

	"archivist/pkg/kernel/fault"
	"archivist/pkg/revisions/workflow"
)

// steps sets the keys of steps that people take part in, and of what one step hands to another.
const steps = `
- name: check
  command: ./check
  allowFailure: true
- name: build
  command: ./build
  depends: [check, PREV]
  inputs: [PREV, check]
- name: release
  command: ./release
  depends: [build, {task: check, on: failed}]
  inputs: build
  manual: the curator of maps
  parameters:
    VERSION: {description: as on the title page}
    FORMAT: {options: [pdf, epub], default: pdf}
    PAGES: {type: integer, default: 10}
    SCALE: {type: number, default: 0.5}
    DRAFT: {type: boolean, default: false}
- name: announce
  command: ./announce
  manual: true
`

// TestSteps: what a failure that is allowed does to edges, which inputs there are, and who starts a task.
func TestSteps(t *testing.T) {
	d := parse(t, steps)
	build, release := d.Task("build"), d.Task("release")
	if on := build.Depends[0].On; on != workflow.Finished {
		t.Errorf("what waits for a task that may fail needs it to be %s", on)
	}
	if want := []string{"PREV:build", "check"}; !reflect.DeepEqual(build.Inputs, want) {
		t.Errorf("inputs %v", build.Inputs)
	}
	if release.Depends[0].On != workflow.Succeeded || release.Depends[1].On != workflow.Failed {
		t.Errorf("conditions that are written, and those on other tasks, stay: %+v", release.Depends)
	}
	if release.Manual != "the curator of maps" || d.Task("announce").Manual != "a person" || build.Manual != "" {
		t.Errorf("started by %q", release.Manual)
	}
}

// TestValues: what is set is checked against the parameters; the rest has its defaults.
func TestValues(t *testing.T) {
	task := parse(t, steps).Task("release")
	got, err := task.Values(map[string]string{"VERSION": "2", "PAGES": "-7"})
	want := map[string]string{"VERSION": "2", "FORMAT": "pdf", "PAGES": "-7", "SCALE": "0.5", "DRAFT": "false"}
	if err != nil || !maps.Equal(got, want) {
		t.Errorf("%v, %v", got, err)
	}
	long := strings.Repeat("x", workflow.MaxParameter+1)
	for _, c := range []struct{ name, value, want string }{
		{"FORMAT", "doc", `parameters.FORMAT: found "doc"; expected one of pdf, epub`},
		{"PAGES", "7.5", "expected a whole number"}, {"PAGES", "007", "expected a whole number"},
		{"SCALE", "1e3", "expected a number"}, {"DRAFT", "yes", "expected true or false"},
		{"VERSION", "a\x00b", "without a character NUL"}, {"VERSION", long, "at most 1024 bytes"},
		{"VERSIO", "1", "has no such parameter; it has DRAFT, FORMAT, PAGES, SCALE, VERSION"},
	} {
		_, err := task.Values(map[string]string{"VERSION": "1", c.name: c.value})
		if !fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s=%.20q: %v", c.name, c.value, err)
		}
	}
	if _, err := task.Values(nil); err == nil || !strings.Contains(err.Error(), "parameters.VERSION is missing") {
		t.Errorf("a parameter without default is not set: %v", err)
	}
}

// refusedSteps are definitions with steps that are refused, and where and why.
var refusedSteps = []struct{ file, want string }{
	{"- {name: a, parameters: [x]}", "1:25: parameters: expected keys with values, not a list"},
	{"- {name: a, parameters: {A: {type: text, default: x}}}",
		"1:36: type: \"text\": expected string, integer, number, boolean"},
	{"- {name: a, parameters: {A: {default: x, type: integer}}}",
		"1:39: parameters.A.default: \"x\": expected a whole number"},
	{"- {name: a, parameters: {A: {default: c, options: [a, b]}}}",
		"1:39: parameters.A.default: \"c\": expected one of a, b"},
	{"- {name: a, parameters: {A: {options: [1, x], type: number, default: 1}}}",
		"1:43: parameters.A.options: \"x\": expected a number"},
	{"- {name: a, parameters: {ARCHIVIST_A: {default: x}}}", "1:26: parameters: ARCHIVIST_A: variables that begin"},
	{"- {name: a, parameters: {A: {}}}", "1:26: parameters.A: nobody sets it if commits"},
	{"- {name: a, parameters: {A: {default: x}}, triggers: commit}", "1:26: parameters are set when"},
	{"- {name: a, env: {A: x}, parameters: {A: {default: x}}}", "1:39: parameters: A is in env or secrets, too"},
	{"- {name: a, manual: 1}", "1:21: manual: expected text"},
	{"- {name: a, manual: true, triggers: manual}", "1:21: manual: commits do not start the task"},
	{"- {name: a, manual: true, triggers: {commit: true, schedule: {cron: '0 0 * * *'}}}",
		"1:21: manual: a schedule would start"},
	{"- {name: a, allowFailure: yes please}", "1:27: allowFailure: expected true or false"},
	{"- {name: a}\n- {name: b, inputs: a}", "2:21: inputs: a is not in depends"},
	{"- {name: a}\n- {name: b, depends: PREV:a, inputs: a}", "2:38: inputs: a is not in depends"},
	{"- {name: a, depends: PREV, inputs: [PREV, PREV:a]}", "1:43: inputs: PREV:a is there twice"},
	{"- {name: a}\n- {name: b, depends: a, inputs: a, triggers: {commit: true, schedule: {cron: '0 0 * * *'}}}",
		"2:33: inputs: a run by schedule"},
	{"- {name: a, triggers: manual}\n- {name: b, depends: a, inputs: a, triggers: manual}",
		"2:33: inputs: a: commits do not start this task"},
	{"- {name: a}\n- {name: b, depends: PREV:a, inputs: PREV:a, triggers: manual}",
		"2:38: inputs: PREV:a: commits do not start this task"},
}
