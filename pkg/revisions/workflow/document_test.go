package workflow_test

import (
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"testing"

	"archivist/pkg/revisions/workflow"
)

// TestDocument: what the document shows is accepted, its tables have each key, and its patterns decide as it says.
func TestDocument(t *testing.T) {
	data, err := os.ReadFile("../../../docs/revisions.md")
	if err != nil {
		t.Fatal(err)
	}
	text := string(data)
	examples := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllStringSubmatch(text, -1)
	if len(examples) < 5 {
		t.Errorf("%d examples", len(examples))
	}
	for _, e := range examples {
		if got := problems("a.yaml", e[1]); got != nil {
			t.Errorf("%s\n%v", e[1], got)
		}
	}
	var schema struct {
		Items struct {
			Properties map[string]json.RawMessage `json:"properties"`
		} `json:"items"`
	}
	if err := json.Unmarshal(workflow.Schema, &schema); err != nil {
		t.Fatal(err)
	}
	section := text[strings.Index(text, "## Keys of a task"):strings.Index(text, "## Dependencies")]
	rows := regexp.MustCompile("(?m)^\\| `(\\w+)` \\|").FindAllStringSubmatch(section, -1)
	for _, r := range rows {
		if _, known := schema.Items.Properties[r[1]]; !known {
			t.Errorf("there is no key %s", r[1])
		}
	}
	if len(rows) != len(schema.Items.Properties) {
		t.Errorf("%d keys in the table; there are %d", len(rows), len(schema.Items.Properties))
	}
	section = text[strings.Index(text, "## Patterns"):]
	decision := regexp.MustCompile("(?m)^\\| `(\\[.*?\\])` \\| (.*) \\| (yes|no) \\|$")
	decided := decision.FindAllStringSubmatch(section, -1)
	for _, row := range decided {
		var task workflow.Task
		if err := json.Unmarshal([]byte(row[1]), &task.Paths); err != nil {
			t.Fatal(err)
		}
		paths := strings.Split(strings.ReplaceAll(row[2], "`", ""), ", ")
		if task.Matches(paths) != (row[3] == "yes") {
			t.Errorf("%v", row)
		}
	}
	if len(decided) != 3 {
		t.Errorf("%d decisions of patterns", len(decided))
	}
}

// TestGraphs: the example of the requirement as a graph, of a definition and of two revisions.
func TestGraphs(t *testing.T) {
	d := parse(t, requirement)
	want := `flowchart LR
  subgraph g1 ["an earlier revision"]
    n1(["COMMIT"])
    n2["indexing"]
    n3["build-PDF"]
  end
  subgraph g2 ["this revision"]
    n4(["COMMIT"])
    n5["indexing"]
    n6["build-PDF"]
  end
  n1 --> n4
  n4 --> n5
  n2 --> n5
  n5 --> n6
  n6 -.->|"cancels"| n3
`
	if got := d.Graph().Mermaid(); got != want {
		t.Error(got)
	}
	g := workflow.PlanGraph(2, workflow.Plan(d, 2, func(string) (int64, bool) { return 0, false }))
	g.Add(workflow.PlanGraph(3, workflow.Plan(d, 3, func(string) (int64, bool) { return 2, true })))
	want = `flowchart LR
  subgraph g1 ["revision 2"]
    n1(["COMMIT"])
    n2["indexing"]
    n3["build-PDF"]
  end
  subgraph g2 ["revision 3"]
    n4(["COMMIT"])
    n5["indexing"]
    n6["build-PDF"]
  end
  n1 --> n2
  n2 --> n3
  n1 --> n4
  n4 --> n5
  n2 --> n5
  n5 --> n6
  n6 -.->|"cancels"| n3
`
	if got := g.Mermaid(); got != want {
		t.Error(got)
	}
}
