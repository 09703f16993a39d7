package main

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"archivist/cmd/archivist/command/commandtest"
)

// onOtherWidths are the lists, and the things with tables, that are also kept on a narrow terminal and on a wide one:
// testdata/golden has them on 80 columns.
var onOtherWidths = []string{
	"archive-list", "archive-revision-show", "batch-list", "component-item-list", "component-list", "consumer-list",
	"explain-job", "job-list", "job-list-failed", "job-show", "object-list", "operation-show", "queue-show",
	"research-status",
}

// TestGoldenWidths: on terminals of other widths, too, lists and tables are what they are known to be, and no line is
// wider than its terminal.
func TestGoldenWidths(t *testing.T) {
	dir, err := filepath.Abs(filepath.Join("testdata", "widths"))
	if err != nil {
		t.Fatal(err)
	}
	url := wire(t)
	for _, name := range onOtherWidths {
		for _, width := range []int{60, 160} {
			t.Run(fmt.Sprintf("%s-%d", name, width), func(t *testing.T) {
				commandtest.EmptyHome(t)
				g := golden[name]
				file := fmt.Sprintf("%s-%d.txt", name, width)
				kept(t, filepath.Join(dir, file), g.run(t, g.console(t, url), width, "", ""))
			})
		}
	}
}

// TestCauseIsShown: on a narrow terminal, a list of failed jobs still says why each has failed.
func TestCauseIsShown(t *testing.T) {
	url := wire(t)
	commandtest.EmptyHome(t)
	g := golden["job-list-failed"]
	text := g.run(t, g.console(t, url), 60, "", "")
	for _, cause := range []string{"404 Not Found", "its md5 is", "connection ref"} {
		if !strings.Contains(text, cause) {
			t.Errorf("the cause %q is not there:\n%s", cause, text)
		}
	}
}
