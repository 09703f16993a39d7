package doctor_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestHealthy: a world at rest, and one in the middle of its work, have no findings.
func TestHealthy(t *testing.T) {
	settled(t).finds(false)
	busy(t).finds(false)
}

// TestHeldIsNotOverdue: a job is not overdue while a worker has its lease, however long ago it was due: something
// moves it on. Once the lease has ended, it is overdue like all else that nobody sweeps.
func TestHeldIsNotOverdue(t *testing.T) {
	w := busy(t)
	w.set(jobKey(w.running), "holder", str("a worker"))
	w.set(jobKey(w.running), "until_ms", num(w.now.Add(4*time.Hour).UnixMilli()))
	others := []string{"overdue " + active(w), "overdue " + op(w), "overdue batch:" + batchOf(w.held),
		"overdue " + w.waiting()}
	w.now = w.now.Add(3 * time.Hour)
	w.finds(false, others...)
	w.now = w.now.Add(2 * time.Hour)
	w.finds(false, append(others, "overdue "+running(w))...)
}

// TestVersionsOfNoJob: other software may store versions, too, and their rows name no job. Two of them in a row are
// not by one job.
func TestVersionsOfNoJob(t *testing.T) {
	w := settled(t)
	w.set(version(w, 1), "job", nil)
	w.set(version(w, 2), "job", nil)
	w.finds(false)
}

// TestFindingsAreDocumented: every finding that the code can report is explained in the
// operator's manual, and is made by a test.
func TestFindingsAreDocumented(t *testing.T) {
	read := func(pattern string) (text string) {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %v", pattern, err)
		}
		for _, name := range files {
			data, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			text += string(data)
		}
		return text
	}
	var code, manual []string
	find := func(pattern, in string) (names []string) {
		for _, m := range regexp.MustCompile(pattern).FindAllStringSubmatch(in, -1) {
			names = append(names, m[1])
		}
		return names
	}
	code = []string{"unreadable"}
	made := "(?:\\.[Aa]dd\\(|Invariant: |ark, |rule[A-Z][a-z]+ += )\"([a-z-]+)\""
	for _, pattern := range []string{"*[a-z].go", "../../events/check/*.go", "../../*/*/rules*.go", "../../*/exa*.go",
		"../../*/*/exa*.go"} {
		code = append(code, find(made, read(pattern))...)
	}
	for _, kind := range find(`DamageKind = "([a-z]+)"`, read("../../objects/ocfl/check.go")) {
		code = append(code, "storage-"+kind)
	}
	_, section, _ := strings.Cut(read("../../../docs/operations.md"), "## The doctor")
	section, _, _ = strings.Cut(section, "\n## ")
	for row := range strings.SplitSeq(section, "\n|") {
		names, _, _ := strings.Cut(row, "|")
		manual = append(manual, find("`([a-z][a-z-]+)`", names)...)
	}
	tests := read("*_test.go")
	for _, name := range code {
		if !slices.Contains(manual, name) {
			t.Errorf("%s is not in docs/operations.md", name)
		}
		if !strings.Contains(tests, `"`+name) {
			t.Errorf("no test makes the finding %s", name)
		}
	}
	for _, name := range manual {
		if !slices.Contains(code, name) && !strings.HasPrefix(name, "storage-") {
			t.Errorf("docs/operations.md has %s, which is never reported", name)
		}
	}
}
