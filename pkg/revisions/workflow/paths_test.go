package workflow_test

import (
	"strings"
	"testing"

	"archivist/pkg/revisions/workflow"
)

func TestMatches(t *testing.T) {
	for _, c := range []struct {
		patterns, paths string
		want            bool
	}{
		{"", "a", true},
		{"", "", true},
		{"**", "", false},
		{"**", "a/b c/d", true},
		{"*", "a/b", false},
		{"*.pdf", "a.pdf", true},
		{"*.pdf", "d/a.pdf", false},
		{"**/*.pdf", "a.pdf", true},
		{"**/*.pdf", "d/e/a.pdf", true},
		{"**/*.pdf", "d/e/a.pdf.txt", false},
		{"docs/**", "docs/a/b", true},
		{"docs/**", "docs", false},
		{"docs/**", "docs2/a", false},
		{"docs/**/x", "docs/x", true},
		{"docs/**/x", "docs/a/b/x", true},
		{"docs/**/x", "docs/ax", false},
		{"a?c", "a/c", false},
		{"a?c", "aüc", true},
		{"a[b-d]e", "ace", true},
		{"a[!b-d]e", "ace", false},
		{"a[!b-d]e", "a/e", false},
		{"a[]b", "a", false}, // refused: matches nothing
		{"[.]x", "ax", false},
		{"[a^&~-]", "^", true},
		{"(a|b)+", "a", false},
		{"(a|b)+", "(a|b)+", true},
		{"x.y\n", "x.y", false},
		{"**|!docs/**", "docs/a", false},
		{"**|!docs/**", "docs/a src/b", true},
		{"**|!docs/**|docs/keep", "docs/keep", true},
		{"docs/keep|!docs/**", "docs/keep", false},
		{"!a|**", "a", true},
	} {
		task := workflow.Task{}
		if c.patterns != "" {
			task.Paths = strings.Split(c.patterns, "|")
			if strings.HasPrefix(c.patterns, "(") {
				task.Paths = []string{c.patterns}
			}
		}
		if got := task.Matches(strings.Fields(c.paths)); got != c.want {
			t.Errorf("%s for %q: %v", c.patterns, c.paths, got)
		}
	}
}

// TestMatchTime: no pattern makes the time grow faster than the length of the path.
func TestMatchTime(t *testing.T) {
	task := workflow.Task{Paths: []string{strings.Repeat("**/a*", 1) + strings.Repeat("/**/*a*", 60) + "/b"}}
	if task.Matches([]string{strings.Repeat("aaa/", 1000) + "c"}) { // by trying all ways it would not end
		t.Error("it matches")
	}
}
