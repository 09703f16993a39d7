package docs

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode"
)

var (
	link    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading = regexp.MustCompile(`(?m)^#+ (.*)$`)
	fenced  = regexp.MustCompile("(?ms)^ *```.*?^ *```$")
)

// anchor is the name of a heading in a link, as GitHub makes it.
func anchor(heading string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == ' ':
			return '-'
		case unicode.IsLetter(r) || unicode.IsDigit(r) || r == '-' || r == '_':
			return unicode.ToLower(r)
		}
		return -1
	}, heading)
}

// markdown lists every document of the repository.
func markdown(t *testing.T) (out []string) {
	t.Helper()
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && path != root && (strings.HasPrefix(d.Name(), ".") || d.Name() == "node_modules") {
			return filepath.SkipDir
		}
		if filepath.Ext(path) == ".md" {
			out = append(out, path)
		}
		return nil
	})
	if err != nil || len(out) < 10 {
		t.Fatalf("%d documents: %v", len(out), err)
	}
	return out
}

// TestLinks: a link to a file of the repository, or to a heading, leads to one.
func TestLinks(t *testing.T) {
	checked := 0
	for _, document := range markdown(t) {
		text := read(t, document)
		for _, m := range link.FindAllStringSubmatch(fenced.ReplaceAllString(text, ""), -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			checked++
			path, to, _ := strings.Cut(m[1], "#")
			target := document
			if path != "" {
				target = filepath.Join(filepath.Dir(document), path)
			}
			if _, err := os.Stat(target); err != nil {
				t.Errorf("%s: the link %s leads nowhere", document, m[1])
				continue
			}
			if to != "" && !hasHeading(read(t, target), to) {
				t.Errorf("%s: the link %s: there is no such heading", document, m[1])
			}
		}
	}
	if checked < 20 {
		t.Errorf("%d links were checked", checked)
	}
}

func hasHeading(text, to string) bool {
	for _, m := range heading.FindAllStringSubmatch(fenced.ReplaceAllString(text, ""), -1) {
		if anchor(m[1]) == to {
			return true
		}
	}
	return false
}

func read(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// TestReadme: a newcomer reads it in five minutes.
func TestReadme(t *testing.T) {
	if n := strings.Count(read(t, filepath.Join(root, "README.md")), "\n"); n > 220 {
		t.Errorf("README.md has %d lines; at most 220", n)
	}
}

// TestGlossary: at most 120 terms, one line each, in alphabetical order.
func TestGlossary(t *testing.T) {
	terms := regexp.MustCompile(`(?m)^\| \*\*(.+?)\*\* \| .+ \|$`).FindAllStringSubmatch(read(t,
		filepath.Join(root, "docs/glossary.md")), -1)
	if len(terms) < 20 || len(terms) > 120 {
		t.Errorf("%d terms; expected 20 to 120", len(terms))
	}
	for i := 1; i < len(terms); i++ {
		if strings.ToLower(terms[i-1][1]) > strings.ToLower(terms[i][1]) {
			t.Errorf("%q comes after %q", terms[i][1], terms[i-1][1])
		}
	}
}

// TestPicture: the picture is readable on light and dark pages, and says in words
// what it shows.
func TestPicture(t *testing.T) {
	svg := read(t, filepath.Join(root, "docs/images/flow.svg"))
	for _, want := range []string{"@media (prefers-color-scheme: dark)", `role="img"`, "<title ", "<desc "} {
		if !strings.Contains(svg, want) {
			t.Errorf("flow.svg has no %s", want)
		}
	}
}

// TestPaths: the files and folders that docs/develop.md names are there. Its picture has all packages:
// TestWingsPicture of ./test draws it.
func TestPaths(t *testing.T) {
	text := read(t, filepath.Join(root, "docs/develop.md"))
	paths := regexp.MustCompile("`((?:pkg|cmd|infra|functions|statemachines|test|localstack)/[a-zA-Z0-9_./-]+)`")
	found := paths.FindAllStringSubmatch(text, -1)
	if len(found) < 10 {
		t.Errorf("docs/develop.md names %d files and folders", len(found))
	}
	for _, m := range found {
		if _, err := os.Stat(filepath.Join(root, m[1])); err != nil {
			t.Errorf("docs/develop.md names %s, which is not there", m[1])
		}
	}
}
