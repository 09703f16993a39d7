package component

import "testing"

// assemblyLine is a small assembly line.
func assemblyLine() []Definition {
	return []Definition{
		{Name: "ingest", Event: "Ingested", PastSuccess: []string{"Checked"}, Future: []string{"Ingested", "Returned"}},
		{Name: "check", Event: "Checked", PastSuccess: []string{"Received"}, Old: []string{"Checked"}},
		{Name: "return", Event: "Returned", PastFailure: []string{"Checked"},
			Future: []string{"Returned", "object.create"}},
	}
}

func TestGraph(t *testing.T) {
	dot := `digraph "components" {
  rankdir=LR;
  node [shape=box];
  "check" [label="check\nChecked"];
  "ingest" [label="ingest\nIngested"];
  "return" [label="return\nReturned"];
  "event Received" [label="Received", shape=ellipse];
  "event object.create" [label="object.create", shape=ellipse];
  "event Received" -> "check" [label="Received"];
  "check" -> "ingest" [label="Checked"];
  "return" -> "ingest" [label="Returned (future)", style=dashed];
  "check" -> "return" [label="Checked (pastFailure)"];
  "event object.create" -> "return" [label="object.create (future)", style=dashed];
}
`
	if got := Graph(assemblyLine()).DOT(); got != dot {
		t.Error(got)
	}
	mermaid := `flowchart LR
  n1["check<br>Checked"]
  n2["ingest<br>Ingested"]
  n3["return<br>Returned"]
  n4(["Received"])
  n5(["object.create"])
  n4 -->|"Received"| n1
  n1 -->|"Checked"| n2
  n3 -.->|"Returned (future)"| n2
  n1 -->|"Checked (pastFailure)"| n3
  n5 -.->|"object.create (future)"| n3
`
	if got := Graph(assemblyLine()).Mermaid(); got != mermaid {
		t.Error(got)
	}
}
