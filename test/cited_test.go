package test

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"archivist/test/plan"
)

// testCode has the text of all tests, by their folders from the root of the repository.
type testCode map[string]string

func readTests(t *testing.T) testCode {
	t.Helper()
	all := testCode{}
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() && strings.HasPrefix(d.Name(), ".") && path != ".." {
			return skipped(err)
		}
		if d.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return nil
		}
		text, err := os.ReadFile(path)
		all[filepath.ToSlash(filepath.Dir(path[len("../"):]))] += string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// cites finds the tests that a document names between backquotes: TestName, TestName/part, and
// folder.TestName, where the folder is a package below pkg, or from the root.
var cites = regexp.MustCompile("`(?:([a-z0-9/-]+)\\.)?(Test\\w+)(?:/([^`]+))?`")

// cited returns how many tests a text names, and an error for each that is not there, or that neither `make test`
// nor `make test-more` plays.
func (c testCode) cited(text string) (found int, errs []error) {
	for _, m := range cites.FindAllStringSubmatch(text, -1) {
		found++
		if err := c.check(m[1], m[2], m[3]); err != nil {
			errs = append(errs, err)
		}
	}
	return found, errs
}

func (c testCode) check(folder, name, part string) error {
	var there []string
	for at, code := range c {
		named := folder == "" || at == folder || strings.HasPrefix(at, "pkg/") && strings.HasSuffix(at, "/"+folder)
		if named && strings.Contains(code, "\nfunc "+name+"(t *testing.T)") &&
			(part == "" || strings.Contains(code, `"`+part+`"`)) {
			there = append(there, at)
		}
	}
	if len(there) == 0 {
		return fmt.Errorf("there is no test %s %s %s", folder, name, part)
	}
	if !slices.ContainsFunc(there, func(at string) bool { return plan.Plays(at, name) }) {
		return fmt.Errorf("neither make test nor make test-more plays %s of %v", name, there)
	}
	return nil
}
