package main

import (
	"strings"
	"testing"
)

func TestPrintReport(t *testing.T) {
	const report = `{"batch":"B1","note":"","failed":[{"job":"B1-1","state":"Failed","title":"a\nb\u001b[31m","localIds":["x"],"message":"404\nCOMPLETED y","next":"Correct it.","recoverable":true}],
		"completed":[{"job":"B1-2","state":"Completed","ark":"ark:/1/2","version":2,"noChange":true,"files":3,"bytes":2048,"warnings":1,"fileDetails":[{"path":"producer/a"}]}],"open":[],
		"counts":{"failed":1,"completed":1,"open":0}}`
	var out strings.Builder
	if err := printReport(&out, strings.NewReader(report)); err != nil {
		t.Fatal(err)
	}
	const want = `batch          B1
FAILED B1-1 a b [31m x
  404 COMPLETED y
  Correct it.
COMPLETED B1-2  ` + `
  ark:/1/2 v2, no change, 3 files, 2.0 KiB
  warning: the digest matched, the size differed: 1 files
jobs           1 completed, 1 failed, 0 open
`
	if got := out.String(); got != want {
		t.Errorf("%s", got)
	}
	if err := printReport(&out, strings.NewReader(report[:300])); err == nil {
		t.Error("half a report was printed as if it were one")
	}
}
