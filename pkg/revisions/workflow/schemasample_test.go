package workflow_test

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"archivist/pkg/revisions/workflow"
)

// beyond are the refusals of Parse that no schema can express: what depends on other tasks, on the meaning of a
// text, or on how it is written.
var beyond = []string{"not YAML", "anchors", "aliases", "merged keys", "tags", "keys with ?", "directives",
	"more than one document", "Git LFS",
	"values are nested", "not UTF-8", "is already", "would wait for itself", "is there twice",
	"there is no task",
	"every task", "COMMIT waits for any end", "scope is for", "commits do not start", "cannot both wait", "a cycle",
	"was: ", "follow: the task depends", "NUL", "is set twice", "is in env, too", "empty parts", "a folder",
	"is a whole part", "[ without ]", "the range", "only exclusions", "needs an image", "expected from 1s",
	"whole seconds", "nothing would start", "cron: ", "zone: ", "more than 200 tasks", "the file has",
	"all tasks together", "nobody sets it", "parameters are set", "in env or secrets", "manual: commits",
	"a schedule would",
	"is not in depends", "a run by schedule", "commits do not start this task", ".default: ", ".options: "}

// TestSchema: what Parse accepts, the schema accepts; and it refuses what Parse refuses, if a schema can.
func TestSchema(t *testing.T) {
	schema := compileSchema(t)
	valid := func(file string) error {
		data, err := yaml.YAMLToJSON([]byte(file))
		if err != nil {
			return err
		}
		v, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
		if err != nil {
			return err
		}
		return schema.Validate(v)
	}
	for _, file := range []string{requirement, full,
		"- {name: a, depends: {task: PREV:a, on: failed, scope: nearest}, cancels: [b], retries: 3, timeout: 2m3s}\n" +
			"- {name: b, triggers: {commit: true, schedule: {cron: '* * * * *', zone: UTC, overlap: queue}}}\n" +
			"- {name: c, triggers: manual, outputs: '*', env: {A: 1, B: true, C: x}}", steps} {
		if got := problems("a.yaml", file); got != nil {
			t.Errorf("%.40s: %v", file, got)
		}
		if err := valid(file); err != nil {
			t.Errorf("%.40s: %s", file, err)
		}
	}
	checked := 0
	for _, c := range slices.Concat(refused, refusedSteps) {
		if slices.ContainsFunc(beyond, func(s string) bool { return strings.Contains(c.want, s) }) {
			continue
		}
		checked++
		if valid(c.file) == nil {
			t.Errorf("the schema accepts %.80q, which Parse refuses: %s", c.file, c.want)
		}
	}
	if checked < 40 {
		t.Errorf("only %d samples", checked)
	}
}

func compileSchema(t testing.TB) *jsonschema.Schema {
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(workflow.Schema))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("schema.json", doc); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("schema.json")
	if err != nil {
		t.Fatal(err)
	}
	return s
}
