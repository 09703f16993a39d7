package test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// rowsOf returns the cells of each row of the tables in a text, without the rows above the first line.
func rowsOf(text string) (rows [][]string) {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		below := i+1 < len(lines) && strings.HasPrefix(lines[i+1], "|---")
		if strings.HasPrefix(line, "| ") && !below {
			rows = append(rows, strings.Split(strings.Trim(line, "| "), " | "))
		}
	}
	return rows
}

// promises are the names of what a document promises: the first cells of its tables, and the sections with a text.
func promises(document string) (found []string) {
	for _, section := range regexp.MustCompile(`(?m)^##+ `).Split(document, -1)[1:] {
		title, body, _ := strings.Cut(section, "\n")
		if regexp.MustCompile(`(?m)^[^|\n]`).MatchString(body) {
			found = append(found, title)
		}
		for _, row := range rowsOf(body) {
			found = append(found, strings.Trim(row[0], "`"))
		}
	}
	return found
}

// TestFeatures: each row of docs/features.md, and each section with a text, names tests that are played.
func TestFeatures(t *testing.T) {
	doc, err := os.ReadFile("../docs/features.md")
	if err != nil {
		t.Fatal(err)
	}
	features, list, _ := strings.Cut(string(doc), "\n## What shows it\n")
	shown, tests := []string{}, readTests(t)
	for _, row := range rowsOf(list) {
		if len(row) != 2 {
			t.Fatalf("a row has the cells %q", row)
		}
		quoted := regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(row[0], -1)
		for _, name := range quoted {
			shown = append(shown, name[1])
		}
		if quoted == nil {
			shown = append(shown, row[0])
		}
		found, errs := tests.cited(row[1])
		if n := strings.Count(row[1], "`") / 2; found == 0 || found != n {
			t.Errorf("%s: %d of %d names are those of tests", row[0], found, n)
		}
		for _, err := range errs {
			t.Errorf("%s: %v", row[0], err)
		}
	}
	promised := promises(features)
	if len(promised) < 50 {
		t.Fatalf("%d promises were found: %q", len(promised), promised)
	}
	for _, name := range promised {
		if !slices.Contains(shown, name) {
			t.Errorf("nothing shows %q", name)
		}
	}
	for _, name := range shown {
		if !slices.Contains(promised, name) {
			t.Errorf("tests show %q, which is no row above", name)
		}
	}
}
