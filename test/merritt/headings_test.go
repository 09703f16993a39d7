package merritt

import (
	"os"
	"strings"
	"testing"
)

// TestScenarios runs the scenario of each heading, under its name.
func TestScenarios(t *testing.T) {
	for _, heading := range headings(t) {
		if scenario := scenarioOf(heading); scenario != nil {
			t.Run(heading, scenario)
		}
	}
}

// TestEveryHeading: each heading of the requirement has a scenario, or a reason why it has none.
func TestEveryHeading(t *testing.T) {
	all := map[string]bool{}
	for _, heading := range headings(t) {
		if all[heading] {
			t.Errorf("%q is there twice", heading)
		}
		all[heading] = true
		if (scenarioOf(heading) != nil) == (prose[heading] != "") {
			t.Errorf("%q needs either a scenario or the reason why it has none", heading)
		}
	}
	for above, group := range groups {
		for below := range group {
			if heading := strings.TrimSuffix(above+" / "+below, " / "); !all[heading] {
				t.Errorf("the scenario %q has no heading", heading)
			}
		}
	}
	for heading := range prose {
		if !all[heading] {
			t.Errorf("the reason %q has no heading", heading)
		}
	}
}

// headings are those of the requirement, in order. One below the second level is named with
// the one above it: "Job: Acquire Pending Job / Create Lock".
func headings(t *testing.T) (out []string) {
	t.Helper()
	text, err := os.ReadFile("testdata/headings.txt")
	if err != nil {
		t.Fatal(err)
	}
	var above []string // by level
	for line := range strings.Lines(string(text)) {
		marks, name, _ := strings.Cut(strings.TrimSpace(line), " ")
		level := len(marks)
		above = append(above[:min(level-1, len(above))], name)
		out = append(out, strings.Join(above[min(1, level-1):], " / "))
	}
	return out
}

const parts = "the headings below it are its parts"

// prose are the headings without a scenario, with the reason.
var prose = map[string]string{
	"State Transition Details":              "the title",
	"Batch: Acquire Pending Batch":          parts,
	"Job: Acquire Pending Job":              parts,
	"Job: Acquire Estimating Job":           parts,
	"Job: Acquire Provisioning Job":         parts,
	"Job: Acquire Downloading Job":          parts,
	"Job: Acquire Processing Job":           parts,
	"Job: Acquire Recording Job":            parts,
	"Job: Acquire Notify Job":               parts,
	"Batch: Acquire Reporting Batch":        parts,
	"Batch: Acquire Update Reporting Batch": parts,
}
