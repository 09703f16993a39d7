package test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"archivist/pkg/kernel/table/tabletest"
)

// goFiles parses every Go file of the repository below dir.
func goFiles(t *testing.T, each func(path string, f *ast.File, src []byte)) {
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (strings.HasPrefix(d.Name(), ".") && d.Name() != ".." || d.Name() == "node_modules" ||
			d.Name() == "cdk.out") {
			return filepath.SkipDir
		}
		if !strings.HasSuffix(path, ".go") {
			return nil
		}
		src, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		f, err := parser.ParseFile(token.NewFileSet(), path, src, parser.ParseComments)
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(root, path)
		each(filepath.ToSlash(rel), f, src)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestSizes: a newcomer reads a file in one sitting and a function at a glance. Blank lines do not count.
func TestSizes(t *testing.T) {
	goFiles(t, func(path string, f *ast.File, src []byte) {
		lines := func(from, to token.Pos) int {
			return filled(string(src[from-f.FileStart : to-f.FileStart]))
		}
		if n := filled(string(src)); n > 500 {
			t.Errorf("%s has %d lines; the ceiling is 500", path, n)
		}
		for _, d := range f.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok {
				if n := lines(fn.Pos(), fn.End()); n > 70 {
					t.Errorf("%s: %s has %d lines; the ceiling is 70", path, fn.Name.Name, n)
				}
				if n := lines(fn.Pos(), fn.End()); strings.HasPrefix(path, "functions/") && n > 30 {
					t.Errorf("%s: %s has %d lines; a function's main has at most 30", path, fn.Name.Name, n)
				}
			}
		}
	})
}

// TestAttributeNames: no attribute has a reserved word for its name, so that
// expressions can be read as they are.
func TestAttributeNames(t *testing.T) {
	tag := regexp.MustCompile(`dynamo:"([a-z0-9_]+)`)
	goFiles(t, func(path string, _ *ast.File, src []byte) {
		for _, m := range tag.FindAllSubmatch(src, -1) {
			if tabletest.Reserved(string(m[1])) {
				t.Errorf("%s: the attribute %s is a reserved word of DynamoDB", path, m[1])
			}
		}
	})
}

// filled counts the lines of a text that are not blank.
func filled(text string) (n int) {
	for line := range strings.Lines(text) {
		if strings.TrimSpace(line) != "" {
			n++
		}
	}
	return n
}

// TestPackageComments: a package, and a command, says what it is for, beginning as go doc
// wants it.
func TestPackageComments(t *testing.T) {
	commented, seen := map[string]bool{}, map[string]string{}
	goFiles(t, func(path string, f *ast.File, _ []byte) {
		dir := filepath.Dir(path)
		begins := "Package " + f.Name.Name + " "
		if f.Name.Name == "main" {
			begins = "Command " + filepath.Base(dir) + " "
		}
		seen[dir] = begins
		if f.Doc != nil && strings.HasPrefix(f.Doc.Text(), begins) {
			commented[dir] = true
		}
	})
	for dir, begins := range seen {
		if !commented[dir] {
			t.Errorf("%s: no file has a package comment that begins with %q", dir, begins)
		}
	}
}
