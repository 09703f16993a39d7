package workflow_test

import (
	"strings"
	"testing"

	"archivist/pkg/revisions/workflow"
)

// TestForeign: a secret of another archive is a problem of the definition in this one.
func TestForeign(t *testing.T) {
	d, problems := workflow.Parse([]workflow.File{{Path: "_workflows/a.yaml", Data: []byte(
		"- name: a\n  secrets: {A: archivist/tasks/maps/a, B: archivist/tasks/maps-2/b}\n")}})
	if problems != nil {
		t.Fatal(problems)
	}
	got := d.Foreign("maps")
	if len(got) != 1 || !strings.Contains(got[0].Message, `secrets.B: "archivist/tasks/maps-2/b"`) ||
		!strings.Contains(got[0].Message, "archivist/tasks/maps/") {
		t.Errorf("%+v", got)
	}
	if got := d.Foreign("map"); len(got) != 2 {
		t.Errorf("%+v", got)
	}
}
