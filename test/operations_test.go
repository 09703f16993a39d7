package test

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// sources returns the text of every Go file below a folder that a filter admits.
func sources(t *testing.T, dir string, admit func(name string) bool) string {
	t.Helper()
	var all bytes.Buffer
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() && strings.HasPrefix(d.Name(), ".") && path != dir {
			return skipped(err)
		}
		if d.IsDir() || !strings.HasSuffix(path, ".go") || !admit(path) {
			return nil
		}
		data, err := os.ReadFile(path)
		all.Write(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all.String()
}

func skipped(err error) error {
	if err != nil {
		return err
	}
	return filepath.SkipDir
}

// names returns the first group of every match, each once.
func names(pattern, text string) (found []string) {
	for _, m := range regexp.MustCompile(pattern).FindAllStringSubmatch(text, -1) {
		found = append(found, m[1])
	}
	slices.Sort(found)
	return slices.Compact(found)
}

// TestOperationsDocument: each row of the table names a test that is there or a
// document by AWS; the alarms that it names are those of the template.
func TestOperationsDocument(t *testing.T) {
	doc, err := os.ReadFile("../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	tests := readTests(t)
	rows, alarms := 0, map[string]bool{}
	for line := range strings.Lines(string(doc)) {
		cells := strings.Split(strings.TrimSpace(line), " | ")
		if len(cells) != 5 || cells[0] == "| What goes wrong" {
			continue
		}
		rows++
		cited, errs := tests.cited(cells[4])
		if cited == 0 && !regexp.MustCompile(`AWS, \*.+\*`).MatchString(cells[4]) {
			t.Errorf("nothing shows %q", cells[0])
		}
		for _, err := range errs {
			t.Errorf("%s: %v", cells[0], err)
		}
		for _, list := range names("alarms? ((?:`[A-Za-z]+`(?:, | and )?)+)", cells[1]) {
			for _, id := range names("`([A-Za-z]+)`", list) {
				alarms[id] = true
			}
		}
	}
	there := names(`\{id: "([A-Za-z]+)"`, sources(t, "../infra",
		func(name string) bool { return filepath.Base(name) == "alarms.go" }))
	if rows < 30 || len(there) < 10 {
		t.Fatalf("%d rows and the alarms %v were found", rows, there)
	}
	for _, id := range there {
		if !alarms[id] {
			t.Errorf("no row says what to do when the alarm %s is raised", id)
		}
		delete(alarms, id)
	}
	for id := range alarms {
		t.Errorf("there is no alarm %s", id)
	}
}

// TestLogQueries: the fields that the document's queries name are those of the logs.
func TestLogQueries(t *testing.T) {
	doc, err := os.ReadFile("../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	code := sources(t, "../pkg", func(name string) bool { return !strings.HasSuffix(name, "_test.go") })
	read := 0
	for _, list := range names(`(?m)^fields (.*)$`, string(doc)) {
		for field := range strings.SplitSeq(list, ", ") {
			read++
			if !strings.HasPrefix(field, "@") && field != "msg" && !strings.Contains(code, `"`+field+`", `) {
				t.Errorf("no line of the logs has the field %s", field)
			}
		}
	}
	if read < 10 {
		t.Errorf("%d fields were found", read)
	}
}
