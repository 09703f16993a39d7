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
	dot := `digraph components {
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
	if got := DOT(assemblyLine()); got != dot {
		t.Error(got)
	}
	mermaid := `flowchart LR
  c1["check<br>Checked"]
  c2["ingest<br>Ingested"]
  c3["return<br>Returned"]
  e1(["Received"])
  e2(["object.create"])
  e1 -->|"Received"| c1
  c1 -->|"Checked"| c2
  c3 -.->|"Returned (future)"| c2
  c1 -->|"Checked (pastFailure)"| c3
  e2 -.->|"object.create (future)"| c3
`
	if got := Mermaid(assemblyLine()); got != mermaid {
		t.Error(got)
	}
}
