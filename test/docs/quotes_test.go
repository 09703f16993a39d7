package docs

import (
	"io/fs"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	quoted = regexp.MustCompile(`"([^"]{6,})"`)
	// variable is what a quoted text leaves open: "…", or a word in capitals.
	variable = regexp.MustCompile(`…|\b[A-Z]{3,}\b`)
)

// TestQuotes: the messages by which docs/operations.md and docs/restore.md tell a
// reader what is wrong are those of the code.
func TestQuotes(t *testing.T) {
	var code strings.Builder
	err := filepath.WalkDir(filepath.Join(root, "pkg"), func(path string, d fs.DirEntry, err error) error {
		if err == nil && strings.HasSuffix(path, ".go") && !strings.HasSuffix(path, "_test.go") {
			code.WriteString(read(t, path))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	// A message that is longer than a line is several strings.
	said := strings.Join(regexp.MustCompile(`"\s*\+\s*"`).Split(code.String(), -1), "")

	checked := 0
	for _, text := range symptoms(t) {
		for _, m := range quoted.FindAllStringSubmatch(text, -1) {
			checked++
			for _, part := range variable.Split(m[1], -1) {
				if !strings.Contains(said, strings.TrimSpace(part)) {
					t.Errorf("nothing says %q, as in %q", part, m[1])
				}
			}
		}
	}
	if checked < 15 {
		t.Errorf("%d quotes were checked", checked)
	}
}

// symptoms are the texts that quote messages: the column "Where it shows" of
// docs/operations.md, and the reasons for which jobs fail after a restore.
func symptoms(t *testing.T) (out []string) {
	t.Helper()
	for line := range strings.Lines(read(t, filepath.Join(root, "docs/operations.md"))) {
		cells := strings.Split(line, " | ")
		if len(cells) == 5 {
			out = append(out, cells[1])
		}
	}
	for line := range strings.Lines(read(t, filepath.Join(root, "docs/restore.md"))) {
		reason, isReason := strings.CutPrefix(strings.TrimSpace(line), `- "`)
		if isReason {
			out = append(out, `"`+reason)
		}
	}
	return out
}
