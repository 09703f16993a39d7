package workflow_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"archivist/pkg/revisions/workflow"
)

// requirement is the example of the requirement, as it is there.
const requirement = `- name: indexing
  depends:
    - PREV
    # * PREV = this task in the previous revision.
    # * PREV:task-name = the named task in the previous revision
- name: build-PDF
  depends:
    - indexing
  cancels:
    - PREV
`

// full sets every key.
const full = `---
# all keys
- name: convert
  was: thumbnails
  depends: [fetch-all, PREV:report, {task: PREV, on: succeeded, scope: exact}]
  cancels: [fetch-all]
  follow: true
  image: registry.example.org:5000/tools/convert:1.2
  script: |
    set -e
    convert *.tif
  shell: /bin/sh
  env: {LEVEL: 3, "RATE": 0.5, VERBOSE: true, TEXT: "a b"}
  secrets: {PASSWORD: archivist/tasks/maps/password}
  outputs: ["**/*.pdf", "!drafts/**"]
  timeout: 1h30m
  retries: {attempts: 3, backoff: 10}
  triggers:
    - commit
    - schedule:
        cron: "30 2 * * *"
        zone: Europe/Berlin
        overlap: replace
  lock: disk
  paths: "**/*.tif"
  interruptible: false
- name: report
  command: make report
  timeout: 300
  retries: 2
  triggers: {manual: true, commit: true, schedule: [{cron: "0 0 29 2 *"}, {cron: "* * * * *"}]}
- name: fetch-all
- name: COMMIT
  depends: [PREV:COMMIT, PREV:report]
`

func parse(t *testing.T, files ...string) *workflow.Definition {
	t.Helper()
	var all []workflow.File
	for i, f := range files {
		all = append(all, workflow.File{Path: fmt.Sprintf("_workflows/%d.yaml", i+1), Data: []byte(f)})
	}
	d, problems := workflow.Parse(all)
	for _, p := range problems {
		t.Errorf("%s:%d:%d: %s", p.File, p.Line, p.Column, p.Message)
	}
	if d == nil {
		t.FailNow()
	}
	return d
}

func TestRequirement(t *testing.T) {
	retries := workflow.Retries{Attempts: 1, Backoff: workflow.DefaultBackoff}
	want := []workflow.Task{
		{Name: "indexing", Depends: []workflow.Edge{{Task: "indexing", Prev: true, On: workflow.Ended}},
			Timeout: workflow.DefaultTimeout, Retries: retries, OnCommit: true, OnDemand: true},
		{Name: "build-PDF", Place: 1, Depends: []workflow.Edge{{Task: "indexing", On: workflow.Succeeded}},
			Cancels: []string{"build-PDF"}, Timeout: workflow.DefaultTimeout, Retries: retries, OnCommit: true,
			OnDemand: true},
	}
	d := parse(t, requirement)
	if !reflect.DeepEqual(d.Tasks, want) || d.Commit != nil {
		t.Errorf("%+v\nwant %+v", d.Tasks, want)
	}
	if !d.Task("build-PDF").LatestOnly() || d.Task("indexing").LatestOnly() || d.Task("other") != nil {
		t.Error("tasks by name")
	}
}

func TestEveryKey(t *testing.T) {
	d := parse(t, full)
	want := workflow.Task{
		Name: "convert", Was: "thumbnails", Place: 1, Follow: true,
		Depends: []workflow.Edge{{Task: "fetch-all", On: workflow.Succeeded},
			{Task: "convert", Prev: true, Exact: true, On: workflow.Succeeded},
			{Task: "report", Prev: true, On: workflow.Ended}},
		Cancels: []string{"fetch-all"}, Image: "registry.example.org:5000/tools/convert:1.2",
		Script: "set -e\nconvert *.tif\n", Shell: "/bin/sh",
		Env:     map[string]string{"LEVEL": "3", "RATE": "0.5", "VERBOSE": "true", "TEXT": "a b"},
		Secrets: map[string]string{"PASSWORD": "archivist/tasks/maps/password"},
		Outputs: []string{"**/*.pdf", "!drafts/**"}, Timeout: 90 * time.Minute,
		Retries: workflow.Retries{Attempts: 3, Backoff: 10 * time.Second}, OnCommit: true,
		Schedules: []workflow.Schedule{{Cron: "30 2 * * *", Zone: "Europe/Berlin", Overlap: workflow.Replace}},
		Lock:      "disk", Paths: []string{"**/*.tif"}, Uninterruptible: true,
	}
	if got := d.Task("convert"); !reflect.DeepEqual(*got, want) {
		t.Errorf("%+v\nwant %+v", *got, want)
	}
	want = workflow.Task{
		Name: "report", Command: "make report", Timeout: 5 * time.Minute, OnCommit: true, OnDemand: true,
		Retries: workflow.Retries{Attempts: 2, Backoff: workflow.DefaultBackoff},
		Schedules: []workflow.Schedule{{Cron: "0 0 29 2 *", Zone: "UTC", Overlap: workflow.Skip},
			{Cron: "* * * * *", Zone: "UTC", Overlap: workflow.Skip}},
	}
	if got := d.Task("report"); !reflect.DeepEqual(*got, want) {
		t.Errorf("%+v\nwant %+v", *got, want)
	}
	if want := []workflow.Edge{{Task: "report", Prev: true, On: workflow.Ended}}; !reflect.DeepEqual(d.Commit, want) {
		t.Errorf("COMMIT waits for %+v", d.Commit)
	}
	if d.Task("fetch-all").Idle() != true || d.Task("report").Idle() {
		t.Error("what has nothing to run")
	}
}

// TestJSON: a file of JSON says the same as one of YAML.
func TestJSON(t *testing.T) {
	data := `[
  {"name": "convert", "depends": ["b", {"task": "PREV", "on": "failed"}], "timeout": 60, "env": {"A": 1.50, "B": true, "C": "\u00fc"}},
  {"name": "b", "script": "a\nb", "retries": {"attempts": 2}}
]`
	yaml := `
- {name: b, script: "a\nb", retries: {attempts: 2}}
- name: convert
  depends: [{on: failed, task: PREV}, b]
  timeout: 1m
  env: {A: 1.50, B: true, C: ü}
`
	d, problems := workflow.Parse([]workflow.File{{Path: "_workflows/a.json", Data: []byte(data)}})
	if problems != nil {
		t.Fatal(problems)
	}
	if other := parse(t, yaml); !reflect.DeepEqual(d, other) || d.Hash() != other.Hash() {
		t.Errorf("%+v\n%+v", d, other)
	}
	if len(d.Hash()) != 64 || d.Hash() == parse(t, requirement).Hash() {
		t.Error(d.Hash())
	}
}

// TestPlaces: the place of a task is the longest way to it; tasks are in the order of places and names.
func TestPlaces(t *testing.T) {
	d := parse(t, "- {name: d, depends: [c, a]}\n- {name: c, depends: b}\n", "- {name: b, depends: a}\n- name: a\n",
		"- {name: B, depends: [a, PREV:d]}\n", "# nothing\n", "")
	got := ""
	for _, task := range d.Tasks {
		got += fmt.Sprint(task.Name, task.Place, " ")
	}
	if got != "a0 B1 b1 c2 d3 " {
		t.Error(got)
	}
}

// TestColons: a colon within a text needs no quotes, whatever the text is in.
func TestColons(t *testing.T) {
	for _, depends := range []string{"PREV:b", "[PREV:b]", "\n  - PREV:b", "[ PREV:b ]", `["PREV:b"]`, "{task: PREV:b}",
		"[{task: PREV:b}]"} {
		for _, form := range []string{"- name: b\n- name: a\n  depends: %s\n", "[{name: b}, {name: a, depends: %s}]"} {
			if strings.Contains(depends, "\n") && form[0] == '[' {
				continue
			}
			d := parse(t, fmt.Sprintf(form, depends))
			if e := d.Task("a").Depends; len(e) != 1 || e[0].String() != "PREV:b" {
				t.Errorf("%s: %+v", fmt.Sprintf(form, depends), e)
			}
		}
	}
	if got := problems("a.yaml", "[{name: b}, {name: a, depends: [{PREV: b}, PREV: b]}]"); len(got) != 4 {
		t.Error(got)
	}
}

// TestOrder: neither the order of files and entries nor how they are written changes the hash.
func TestOrder(t *testing.T) {
	a := parse(t, "- {name: a, depends: [PREV, c, b], cancels: [c, b]}\n- name: b\n- name: c\n")
	b := parse(t, "- name: c\n", "- name: b\n- name: a\n  timeout: 5m\n  triggers: [manual, commit]\n"+
		"  depends: [b, c, PREV:a]\n  cancels: [b, c]\n")
	if a.Hash() != b.Hash() {
		t.Errorf("%+v\n%+v", a, b)
	}
}

// refused are files that are no definitions, with the first problem: LINE:COLUMN: MESSAGE, the message in part.
var refused = []struct{ file, want string }{
	{"- name: a\n  command: [", "2:12: not YAML: "},
	{"- name: a\n\tcommand: x", "2:1: not YAML: "},
	{"- &a name", "1:3: anchors"},
	{"- *a", "1:3: aliases"},
	{"- name: a\n  <<: {command: x}", "2:3: merged keys"},
	{"- name: !!str a", "1:9: tags"},
	{"- ? name\n  : a", "1:3: keys with ?"},
	{"%YAML 1.2\n---\n- name: a", "1:1: directives"},
	{"- name: a\n---\n- name: b", "2:1: more than one document"},
	{"- name: a\n...\n- name: b", "3:1: more than one document"},
	{"- name: a\n...\n# end\n---\n- name: b", "4:1: more than one document"},
	{"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a21\nsize 12", "0:0: the file is a pointer of Git LFS"},
	{"- [[[[[[[[[[[[[]]]]]]]]]]]]]", "1:13: values are nested"},
	{"- - - - - - - - - - - - a", "1:21: values are nested"},
	{"name: a", "1:1: expected a list of tasks"},
	{"- a", `1:3: a task: expected keys with values, not "a"`},
	{"- [a]", "1:3: a task: expected keys with values, not a list"},
	{"- command: x", "1:3: a task without name"},
	{"- name: a\xff", "1:10: the file is not UTF-8"},
	{"- name: a\n  comand: x", `2:3: unknown key "comand"; did you mean command?`},
	{"- name: a\n  needs: x", `2:3: unknown key "needs"; did you mean depends?`},
	{"- name: a\n  xyzzy: x", `2:3: unknown key "xyzzy"; expected allowFailure, cancels, command, `},
	{"- name: a\n  lock: b\n  lock: c", "3:3: the key lock is already in line 2"},
	{"- name: a\n  depends:", "2:3: depends has no value"},
	{"- name: 12", "1:9: name: expected text, not a whole number; write it in quotes"},
	{`- name: ""`, "1:9: name is empty"},
	{"- name: -a", `1:9: name: "-a": expected up to 60`},
	{"- name: PREV", "1:9: name: PREV is this task"},
	{"- name: a\n- name: b\n- name: a", "3:9: name: a is already defined at _workflows/a.yaml:1:9"},
	{"- name: COMMIT\n  command: x", "2:12: command: only depends"},
	{"- name: COMMIT\n  depends: a\n- name: a", "2:12: depends: every task of a revision waits for COMMIT"},
	{"- name: COMMIT\n  depends: COMMIT", "2:12: depends: COMMIT would wait for itself"},
	{"- name: COMMIT\n  depends: {task: PREV:a, on: succeeded}\n- name: a", "2:13: depends: COMMIT waits for any end"},
	{"- name: a\n  depends: {task: COMMIT, on: failed}", "2:13: depends: COMMIT: every task waits for its end"},
	{"- name: a\n  depends: a", "2:12: depends: a would wait for itself; PREV is"},
	{"- name: a\n  depends: [PREV, PREV:a]", "2:19: depends: PREV:a is there twice"},
	{"- name: a\n  depends: 'PREV:'", "2:12: depends: PREV:: a name is missing"},
	{"- name: a\n  depends: [indx]\n- name: index", `2:13: depends: there is no task "indx"; did you mean index?`},
	{"- name: a\n  depends: PREV:gone", `2:12: depends: there is no task "gone"`},
	{"- name: a\n  depends: {on: ended}", "2:13: depends: task is missing"},
	{"- name: a\n  depends: {task: b, when: ended}\n- name: b", `2:22: unknown key "when"`},
	{"- name: a\n  depends: {task: b, on: success}\n- name: b", `2:26: on: "success": expected succeeded, ended, failed`},
	{"- name: a\n  depends: {task: b, scope: exact}\n- name: b", "2:29: scope is for tasks of earlier revisions"},
	{"- name: a\n  depends: {task: PREV, scope: all}", `2:32: scope: "all": expected nearest, exact`},
	{"- name: a\n  depends: b\n- name: b\n  triggers: manual", "2:12: depends: b: commits do not start b"},
	{"- name: a\n  depends: []", "2:12: depends: the list is empty"},
	{"- name: a\n  depends: [" + strings.Repeat("b, ", 31) + "]", "2:12: depends: 31 entries; at most 30"},
	{"- name: a\n  depends: PREV\n  cancels: PREV", "2:12: depends: PREV:a: the task cannot both wait"},
	{"- name: a\n  depends: PREV:b\n  cancels: b\n- name: b", "2:12: depends: PREV:b: the task cannot both wait"},
	{"- name: a\n  cancels: b", `2:12: cancels: there is no task "b"`},
	{"- name: a\n  cancels: COMMIT", "2:12: cancels: COMMIT cannot be cancelled"},
	{"- name: a\n  cancels: PREV:b\n- name: b", "2:12: cancels: PREV:b: write b"},
	{"- name: a\n  cancels: [PREV, a]", "2:19: cancels: a is there twice"},
	{"- name: a\n  depends: b\n- name: b\n  depends: a", "2:12: depends: a cycle: a → b → a"},
	{"- name: z\n  depends: b\n- name: b\n  depends: c\n- name: c\n  depends: [z, b]",
		"4:12: depends: a cycle: b → c → b"},
	{"- name: a\n  was: a", "2:8: was: this is the name that the task has"},
	{"- name: a\n  was: b\n- name: b", "2:8: was: b is another task, at _workflows/a.yaml:3:9"},
	{"- name: a\n  was: c\n- name: b\n  was: c", "4:8: was: c is also the former name of a"},
	{"- name: a\n  was: COMMIT", "2:8: was: COMMIT is no task"},
	{"- name: a\n  follow: true", "2:11: follow: the task depends on no other"},
	{"- name: a\n  follow: true\n  depends: PREV", "2:11: follow: the task depends on no other"},
	{"- name: a\n  follow: yes", `2:11: follow: expected true or false, not "yes"`},
	{"- name: a\n  interruptible: 0", `2:18: interruptible: expected true or false, not "0"`},
	{"- name: a\n  image: Some Image", `2:10: image: "Some Image": expected a name`},
	{"- name: a\n  command: x\n  script: y", "3:11: command and script: only one"},
	{"- name: a\n  command: true", "2:12: command: expected text, not true or false; write it in quotes"},
	{"- name: a\n  command: \"a\\0b\"", "2:12: command has a character NUL"},
	{"- name: a\n  script: " + strings.Repeat("x", 64<<10+1), "2:11: script has 65537 bytes; at most 65536"},
	{"- name: a\n  command: x\n  shell: bash", "3:10: shell is for a script"},
	{"- name: a\n  script: x\n  shell: bash -e", `3:10: shell: "bash -e": expected a program`},
	{"- name: a\n  env: [A]", "2:8: env: expected keys with values, not a list"},
	{"- name: a\n  env: {1A: b}", `2:9: env: "1A" is no name of a variable`},
	{"- name: a\n  env: {ARCHIVIST_TASK: b}", "2:9: env: ARCHIVIST_TASK: variables that begin with ARCHIVIST_"},
	{"- name: a\n  env: {A: b, A: c}", "2:15: env: A is set twice"},
	{"- name: a\n  env: {A: [b]}", "2:12: env.A: expected text, not a list"},
	{"- name: a\n  env: {A: }", "env.A: expected text, not nothing"},
	{"- name: a\n  env: {A: " + strings.Repeat("x", 4097) + "}", "2:12: env.A has 4097 bytes"},
	{"- name: a\n  env:\n" + lines("    A%d: x\n", 51), "3:5: env: 51 variables; at most 50"},
	{"- name: a\n  secrets: {A: 'a b'}", `2:16: secrets.A: "a b": expected archivist/tasks/ARCHIVE/ and a name`},
	{"- name: a\n  env: {A: b}\n  secrets: {A: archivist/tasks/a/b}", "3:13: secrets: A is in env, too"},
	{"- name: a\n  outputs: /tmp/x", `2:12: outputs: "/tmp/x": a path begins at the root`},
	{"- name: a\n  paths: a/../b", `2:10: paths: "a/../b": empty parts`},
	{"- name: a\n  paths: [docs/]", `2:11: paths: "docs/": a folder; write /**`},
	{"- name: a\n  paths: ['**.pdf']", `2:11: paths: "**.pdf": ** is a whole part`},
	{"- name: a\n  paths: ['[a']", `2:11: paths: "[a": [ without ]`},
	{"- name: a\n  paths: ['[z-a]']", `2:11: paths: "[z-a]": the range z-a is empty`},
	{"- name: a\n  paths: ['!b']", "2:10: paths: only exclusions"},
	{"- name: a\n  paths: ['*.{a,b}']", `2:11: paths: "*.{a,b}": \, { and }`},
	{"- name: a\n  timeout: 20m", "2:12: timeout: more than 14m needs an image"},
	{"- name: a\n  image: x\n  timeout: 25h", `3:12: timeout: "25h": expected from 1s to 24h`},
	{"- name: a\n  timeout: 1500ms", `2:12: timeout: "1500ms": expected whole seconds`},
	{"- name: a\n  timeout: soon", `2:12: timeout: "soon": expected a duration`},
	{"- name: a\n  timeout: 1.5", `2:12: timeout: "1.5": expected a duration`},
	{"- name: a\n  timeout: 0", `2:12: timeout: "0": expected from 1s`},
	{"- name: a\n  retries: 11", `2:12: retries: "11": expected a whole number from 1 to 10`},
	{"- name: a\n  retries: {attempts: 0}", `2:23: attempts: "0": expected a whole number from 1 to 10`},
	{"- name: a\n  retries: {backoff: 2h}", `2:22: backoff: "2h": expected from 1s to 1h`},
	{"- name: a\n  triggers: [push]", `2:14: triggers: "push": expected commit, manual or schedule`},
	{"- name: a\n  triggers: schedule", "2:13: triggers: schedule needs times"},
	{"- name: a\n  triggers: {commit: false}", "2:14: triggers: nothing would start the task"},
	{"- name: a\n  triggers: {schedule: {zone: UTC}}", "2:25: schedule: cron is missing"},
	{"- name: a\n  triggers: {schedule: {cron: '0 25 * * *'}}", `2:31: cron: "0 25 * * *": expected five fields`},
	{"- name: a\n  triggers: {schedule: {cron: '0 0 31 2 *'}}", `2:31: cron: "0 0 31 2 *": expected five fields`},
	{"- name: a\n  triggers: {schedule: {cron: '0 2 * * 1#6'}}", `2:31: cron: "0 2 * * 1#6": expected five fields`},
	{"- name: a\n  triggers: {schedule: {cron: 'rate(1 hour)'}}", `2:31: cron: "rate(1 hour)": expected five fields`},
	{"- name: a\n  triggers: {schedule: {cron: 'cron(0 0 * * *)'}}", `2:31: cron: "cron(0 0 * * *)": expected five`},
	{"- name: a\n  triggers: {schedule: {cron: '0 0 * * *', zone: Mars/Base}}", `2:50: zone: "Mars/Base": expected`},
	{"- name: a\n  triggers: {schedule: {cron: '0 0 * * *', overlap: all}}", `2:53: overlap: "all": expected skip`},
	{"- name: a\n  schedule: {cron: '0 0 * * *'}", `2:3: unknown key "schedule"; did you mean triggers?`},
	{"- name: a\n  lock: a b", `2:9: lock: "a b": expected up to 60`},
	{lines("- name: t%d\n", 201), "201:9: more than 200 tasks"},
	{strings.Repeat("# long\n", 40<<10), "the file has 286720 bytes; at most 262144"},
	{lines("- {name: t%d, script: '"+strings.Repeat("&", 15000)+"'}\n", 5), "all tasks together have "},
}

func lines(format string, n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, format, i)
	}
	return b.String()
}

// problems are those of one file, as lines of text.
func problems(name, data string) []string {
	d, all := workflow.Parse([]workflow.File{{Path: "_workflows/" + name, Data: []byte(data)}})
	var out []string
	for _, p := range all {
		out = append(out, fmt.Sprintf("%d:%d: %s", p.Line, p.Column, p.Message))
	}
	if (d == nil) != (len(all) > 0) {
		out = append(out, "a definition with problems, or none without")
	}
	return out
}

func TestRefused(t *testing.T) {
	for _, c := range slices.Concat(refused, refusedSteps) {
		got := problems("a.yaml", c.file)
		want := c.want
		if want[0] < '0' || want[0] > '9' { // of the file as a whole, or of a place that the library does not say
			if len(got) > 0 {
				_, got[0], _ = strings.Cut(got[0], ": ")
			}
		}
		if len(got) == 0 || !strings.HasPrefix(got[0], want) {
			t.Errorf("%.80q: %v\nwant %s", c.file, got, want)
		}
	}
}

// TestRefusedJSON: places in files of JSON are as exact.
func TestRefusedJSON(t *testing.T) {
	for file, want := range map[string]string{
		"":                             "1:1: not JSON: the end of the file was not expected",
		"[\n  {\"name\": \"a\",, }\n]": "2:16: not JSON: invalid character ','",
		"[{\"ü\": \"ü\", \"x\": 1}]":   `1:2: a task without name`,
		"[\n {\"name\": \"a\",\n  \"timeout\": 1e2}]":            `3:14: timeout: "1e2": expected a duration`,
		"[{\"name\": \"a\", \"env\": {\"A\": \"ü\"}, \"x\": 1}]": `1:35: unknown key "x"`,
		"[] []":                                "1:4: not JSON: something follows",
		"[" + strings.Repeat("[", 20):          "1:12: values are nested",
		"[{\"name\": \"a\", \"name\": \"b\"}]": "1:16: the key name is already in line 1",
		"[{\"name\": null}]":                   "1:2: a task without name",
		"[{\"name\": \"a\", \"lock\": true}]":  "1:24: lock: expected text, not true or false",
	} {
		if got := problems("a.json", file); len(got) == 0 || !strings.HasPrefix(got[0], want) {
			t.Errorf("%q: %q\nwant %q", file, got, want)
		}
	}
}

// TestAllProblems: nothing is left out because something else is wrong, up to a number.
func TestAllProblems(t *testing.T) {
	d, all := workflow.Parse([]workflow.File{
		{Path: "_workflows/b.yaml", Data: []byte("- name: x\n  comand: y\n  depends: [z]\n  timeout: never\n")},
		{Path: "_workflows/a/c.json", Data: []byte(`[{"name": "x"}, {"name": "y", "lock": 1}]`)},
		{Path: "_workflows/a/d.yml", Data: []byte("- [")},
		{Path: "_workflows/README.md", Data: []byte("- [")},
	})
	var got []string
	for _, p := range all {
		got = append(got, fmt.Sprintf("%s:%d", strings.TrimPrefix(p.File, "_workflows/"), p.Line))
	}
	want := []string{"a/c.json:1", "a/d.yml:1", "b.yaml:1", "b.yaml:2", "b.yaml:3", "b.yaml:4"}
	if d != nil || !reflect.DeepEqual(got, want) || !strings.Contains(all[2].Message, "_workflows/a/c.json:1:11") {
		t.Errorf("%v\nwant %v\n%v", got, want, all)
	}
	if got := problems("a.yaml", "- {name: a, "+lines("k%d: 1, ", 80)+"}"); len(got) != 51 ||
		got[50] != "0:0: 30 more problems" {
		t.Error(len(got), got[len(got)-1])
	}
}

// TestManyFiles: the number of files is bounded.
func TestManyFiles(t *testing.T) {
	var files []workflow.File
	for i := range workflow.MaxFiles + 1 {
		files = append(files, workflow.File{Path: fmt.Sprintf("_workflows/%03d.yaml", i)})
	}
	if _, problems := workflow.Parse(files); len(problems) != 1 || problems[0].File != "_workflows/100.yaml" {
		t.Error(problems)
	}
	if _, problems := workflow.Parse(files[:workflow.MaxFiles]); problems != nil {
		t.Error(problems)
	}
	for name, want := range map[string]bool{"_workflows/a.yaml": true, "_workflows/a/b.yml": true,
		"_workflows/a.json": true, "_workflows/a.txt": false, "a/_workflows/a.yaml": false, "_workflows.yaml": false} {
		if workflow.IsFile(name) != want {
			t.Error(name)
		}
	}
}

// TestTime: no file takes long, whatever is in it. The ones here took the library up to half a minute.
func TestTime(t *testing.T) {
	for name, part := range map[string]string{"keys": "a:\n", "entries": "-\n", "commas": "[a,", "quotes": "''",
		"comments": "#\n", "blocks": "- |\n  a\n", "words": "- name: a\n  b\n",
		"open": "[", "braces": "{a: ", "tabs": "\t"} {
		for _, n := range []int{(256 << 10) / len(part), 12000} {
			start := time.Now()
			problems("a.yaml", strings.Repeat(part, n))
			problems("a.json", strings.Repeat(part, n))
			if d := time.Since(start); d > 20*time.Second {
				t.Errorf("%s: %s", name, d)
			}
		}
	}
}

// FuzzParse: no file makes Parse fail, and what it accepts can be kept as JSON and used.
func FuzzParse(f *testing.F) {
	f.Add(requirement, false)
	f.Add(full, false)
	for _, c := range refused {
		if len(c.file) < 1000 {
			f.Add(c.file, false)
		}
	}
	f.Add(`[{"name": "a", "depends": ["PREV"], "env": {"A": "\u00fc"}}]`, true)
	f.Add(`[{"name": "a", "depends": [{"task": "PREV:b", "on": "failed"}], "timeout": "1m30s", "retries": {"backoff": 60},
	"paths": ["!a", "**/*.x"], "triggers": {"schedule": [{"cron": "0 0 * * *"}]}}, {"name": "b", "cancels": "PREV"}]`, true)
	schema := compileSchema(f)
	f.Fuzz(func(t *testing.T, data string, isJSON bool) {
		name := "_workflows/a.yaml"
		if isJSON {
			name = "_workflows/a.json"
		}
		d, problems := workflow.Parse([]workflow.File{{Path: name, Data: []byte(data)}})
		for _, p := range problems {
			if p.Message == "" || p.File == "" || p.Line < 0 || p.Line > strings.Count(data, "\n")+2 {
				t.Errorf("%+v", p)
			}
		}
		if (d == nil) == (len(problems) == 0) {
			t.Fatal("either a definition or problems")
		}
		if d == nil {
			return
		}
		accepted(t, d)
		if v, err := jsonschema.UnmarshalJSON(strings.NewReader(data)); isJSON && err == nil {
			if err := schema.Validate(v); err != nil {
				t.Errorf("the schema refuses what is accepted: %s", err)
			}
		}
	})
}

// accepted checks what every definition keeps to.
func accepted(t *testing.T, d *workflow.Definition) {
	data, err := json.Marshal(d)
	var again workflow.Definition
	if err == nil {
		err = json.Unmarshal(data, &again)
	}
	if err != nil || !reflect.DeepEqual(*d, again) || d.Hash() != again.Hash() || len(data) > workflow.MaxSize {
		t.Errorf("%v, %d bytes\n%+v\n%+v", err, len(data), *d, again)
	}
	for _, task := range d.Tasks {
		if !workflow.TaskName.MatchString(task.Name) || task.Timeout < time.Second || task.Retries.Attempts < 1 {
			t.Errorf("%+v", task)
		}
		for _, e := range task.Depends {
			if on := d.Task(e.Task); on == nil || !e.Prev && on.Place >= task.Place {
				t.Errorf("%s waits for %+v", task.Name, e)
			}
		}
		for _, s := range task.Schedules {
			if _, err := s.Next(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)); err != nil {
				t.Errorf("%+v: %s", s, err)
			}
		}
		task.Matches([]string{"a/b"})
	}
}
