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
	"time"
)

// dependency is a row of docs/dependencies.md.
type dependency struct{ name, file, reason, licence, release, archived string }

var (
	required = regexp.MustCompile(`(?m)^(?:require |\t)(\S+) v\S+?( // indirect)?$`)
	released = regexp.MustCompile(`^\S+, (?:(20\d\d-\d\d-\d\d)(?: or later)?|not known)$`)
	alive    = regexp.MustCompile(`^(no|not known|yes)(?:: (\S.{19,}\.))?$`)
	lookedUp = regexp.MustCompile(`Looked up on (20\d\d-\d\d-\d\d)\.`)
	pins     = regexp.MustCompile(`(?m)^([\w.-]+)==\d|"([^"]+)": "\d|<artifactId>([^<]+)</artifactId>\s*<version>\d+\.|(@\S+|htmx\.org) \d`)
)

// direct are the modules of a go.mod that the code imports, and those of its tools.
func direct(mod string) (modules []string) {
	tools := names(`(?m)^tool (\S+)$`, mod)
	for _, m := range required.FindAllStringSubmatch(mod, -1) {
		tool := slices.ContainsFunc(tools, func(path string) bool { return strings.HasPrefix(path, m[1]+"/") })
		if m[2] == "" || tool {
			modules = append(modules, m[1])
		}
	}
	return modules
}

// dependencies are the rows of a section of the document.
func dependencies(document, section string) (rows []dependency, err error) {
	_, text, found := strings.Cut(document, "\n## "+section+"\n")
	if !found {
		return nil, fmt.Errorf("there is no section %s", section)
	}
	text, _, _ = strings.Cut(text, "\n## ")
	for _, cells := range rowsOf(text) {
		if section == "Go modules" {
			cells = slices.Insert(cells, 1, "`go.mod`")
		}
		if len(cells) != 6 {
			return nil, fmt.Errorf("a row has the cells %q", cells)
		}
		rows = append(rows, dependency{strings.Trim(cells[0], "`"), strings.Trim(cells[1], "`"), cells[2], cells[3],
			cells[4], cells[5]})
	}
	return rows, nil
}

// lacks says what is missing in a row, "" if nothing is. What is archived, or had no release for three years when it
// was looked up, has a sentence.
func (d dependency) lacks(on time.Time) string {
	release, archived := released.FindStringSubmatch(d.release), alive.FindStringSubmatch(d.archived)
	switch {
	case strings.TrimSpace(d.reason) == "":
		return "a reason"
	case strings.TrimSpace(d.licence) == "":
		return "a licence"
	case release == nil:
		return "a last release with its date"
	case archived == nil:
		return "whether it is archived: no, not known or yes, and what there is to say as a sentence"
	}
	date, err := time.Parse(time.DateOnly, release[1])
	old := err == nil && date.AddDate(3, 0, 0).Before(on)
	if archived[2] == "" && (archived[1] == "yes" || old) {
		return "a sentence: why it stays although it is archived or old"
	}
	return ""
}

// compare returns what is wrong between rows and the names that they must have.
func compare(rows []dependency, want []string, on time.Time) (wrong []string) {
	var seen []string
	for _, d := range rows {
		if !slices.Contains(want, d.name) {
			wrong = append(wrong, d.name+" is in the table, but not used")
		}
		if slices.Contains(seen, d.name) {
			wrong = append(wrong, d.name+" is in the table twice")
		}
		if lack := d.lacks(on); lack != "" {
			wrong = append(wrong, d.name+" lacks "+lack)
		}
		seen = append(seen, d.name)
	}
	for _, name := range want {
		if !slices.Contains(seen, name) {
			wrong = append(wrong, name+" has no row")
		}
	}
	return wrong
}

// TestDependencies: docs/dependencies.md has a row for each module of go.mod, and no other.
func TestDependencies(t *testing.T) {
	document, on := readDependencies(t)
	mod, err := os.ReadFile("../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	rows, err := dependencies(document, "Go modules")
	if err != nil || len(rows) < 40 {
		t.Fatalf("%d rows, %v", len(rows), err)
	}
	for _, wrong := range compare(rows, direct(string(mod)), on) {
		t.Error(wrong)
	}
}

// TestOtherPackages: a row names a package that its file pins. Each such file has a row, and those that do not list
// what the chosen packages need, as lists of Python do, have one for each package.
func TestOtherPackages(t *testing.T) {
	document, on := readDependencies(t)
	rows, err := dependencies(document, "Other packages")
	if err != nil || len(rows) < 15 {
		t.Fatalf("%d rows, %v", len(rows), err)
	}
	files := map[string][]dependency{}
	for _, d := range rows {
		files[d.file] = append(files[d.file], d)
	}
	for _, name := range pinning(t) {
		if files[name] == nil {
			t.Errorf("no row is of a package that %s pins", name)
		}
	}
	for name, rows := range files {
		text, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			t.Fatal(err)
		}
		want := pinned(string(text))
		if strings.HasSuffix(name, ".txt") {
			want = slices.DeleteFunc(want, func(p string) bool {
				return !slices.ContainsFunc(rows, func(d dependency) bool { return d.name == p })
			})
		}
		for _, wrong := range compare(rows, want, on) {
			t.Errorf("%s: %s", name, wrong)
		}
	}
}

// pinned are the packages with a version in a file: of Python, of npm, of Maven, or in a sentence.
func pinned(text string) (packages []string) {
	for _, m := range pins.FindAllStringSubmatch(text, -1) {
		packages = append(packages, strings.Join(m[1:], ""))
	}
	return packages
}

// pinning are the files that pin packages.
func pinning(t *testing.T) (found []string) {
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() && (strings.HasPrefix(d.Name(), ".") && path != root || d.Name() == "node_modules") {
			return skipped(err)
		}
		if strings.HasSuffix(path, "requirements.txt") || d.Name() == "package.json" || d.Name() == "pom.xml" {
			found = append(found, filepath.ToSlash(path[len(root)+1:]))
		}
		return nil
	})
	if err != nil || len(found) < 7 {
		t.Fatalf("found %q, %v", found, err)
	}
	return found
}

// readDependencies returns the document, and when what it says was looked up.
func readDependencies(t *testing.T) (document string, on time.Time) {
	t.Helper()
	text, err := os.ReadFile("../docs/dependencies.md")
	if err != nil {
		t.Fatal(err)
	}
	date := lookedUp.FindStringSubmatch(string(text))
	if date == nil {
		t.Fatal("the document does not say when it was looked up")
	}
	on, err = time.Parse(time.DateOnly, date[1])
	if err != nil {
		t.Fatal(err)
	}
	return string(text), on
}

// TestDependencyRows: what the tables must not be is found.
func TestDependencyRows(t *testing.T) {
	const mod = "require a.org/a v1.0.0\n\nrequire (\n\tb.org/b v0.0.0-20260101000000-0 // indirect\n" +
		"\tc.org/c v1.0.0 // indirect\n)\n\ntool c.org/c/cmd/c\n"
	const why = " because nobody else has it."
	on := time.Date(2026, 11, 24, 0, 0, 0, 0, time.UTC)
	good := "| `a.org/a` | x | MIT | v1, 2023-11-24 | no |\n" +
		"| `c.org/c` | x | MIT | v1, 2020-01-01 | not known:" + why + " |\n"
	for rows, want := range map[string]string{
		good: "",
		strings.Replace(good, "`c.org/c`", "`b.org/b`", 1): "b.org/b is in the table, but not used",
		good + good:                                           "a.org/a is in the table twice",
		strings.Split(good, "\n")[0] + "\n":                   "c.org/c has no row",
		strings.Replace(good, "| x |", "|  |", 1):             "a.org/a lacks a reason",
		strings.Replace(good, "| MIT |", "|  |", 1):           "a.org/a lacks a licence",
		strings.Replace(good, ", 2023-11-24", "", 1):          "a.org/a lacks a last release",
		strings.Replace(good, "| no |", "|  |", 1):            "a row has the cells",
		strings.Replace(good, "| no |", "| no: x |", 1):       "a.org/a lacks whether it is archived",
		strings.Replace(good, "| no |", "| yes |", 1):         "a.org/a lacks a sentence",
		strings.Replace(good, "| no |", "| yes:"+why+" |", 1): "",
		strings.Replace(good, ":"+why, "", 1):                 "c.org/c lacks a sentence",
		strings.Replace(good, " | MIT", "", 1):                "a row has the cells",
	} {
		table := "\n## Go modules\n\n| module | what | licence | release | archived |\n|---|---|---|---|---|\n" + rows
		found, err := dependencies(table, "Go modules")
		got := strings.Join(compare(found, direct(mod), on), "; ")
		if err != nil {
			got = err.Error()
		}
		if !strings.Contains(got, want) || want == "" && got != "" {
			t.Errorf("%s\ngot %q, want %q", rows, got, want)
		}
	}
}
