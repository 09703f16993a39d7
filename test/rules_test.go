// Package test holds what is tested on the system as a whole. This file keeps
// the promises that the repository makes about itself.
package test

import (
	"go/ast"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const root = ".."

// wings are the folders of pkg, from the lowest. The packages of one import each other, and those of the wings that it
// names. What is not named is not imported: so a reader of a wing needs to know only those.
var wings = []struct {
	folder  string
	imports string
	why     string
}{
	{"kernel", "", "what everything stands on; it knows no word of archives"},
	{"aws", "kernel", "adapters of AWS services"},
	{"formats", "kernel", "files of others, as values: they know nothing of this system"},
	{"events", "kernel aws", "what happened, in which order, and who reacts"},
	{"objects", "kernel formats events", "what is preserved"},
	{"ingest", "kernel aws formats events objects", "from a submission to a stored version"},
	{"revisions", "kernel formats events objects", "tasks for each revision of an archive; it knows no jobs"},
	{"components", "kernel formats events objects ingest", "assembly lines of items"},
	{"views", "kernel formats events objects ingest", "what is made from events, to be read"},
	{"api/v1", "kernel formats ingest", "the wire, without AWS, so that the command line needs none"},
	{"console", "kernel api/v1", "pages in a browser, made by a client of the API"},
	{"research", "kernel formats events api/v1", "who looks for what in which recording"},
	{"api", "kernel formats events objects ingest revisions components views api/v1 research", "routes"},
	{"app", "kernel aws events objects ingest revisions components views api/v1 console research api",
		"handlers of functions, and how everything is wired"},
}

// withoutAWS are the wings and packages that use nothing of AWS's SDK.
var withoutAWS = regexp.MustCompile(`^pkg/(formats/.*|api/v1(/.*)?|ingest|kernel/(fault|backoff|graph|source|terminal))$`)

// wingOf returns the wing of a folder or of an import, "" if it has none.
func wingOf(dir string) string {
	rest, _ := strings.CutPrefix(strings.TrimPrefix(dir, "archivist/"), "pkg/")
	if rest == "api/v1" || strings.HasPrefix(rest, "api/v1/") {
		return "api/v1"
	}
	name, _, _ := strings.Cut(rest, "/")
	return name
}

// importsOf calls each with the imports of the repository's own packages that are no tests.
func importsOf(t *testing.T, each func(path, dir, imported string)) {
	goFiles(t, func(path string, f *ast.File, _ []byte) {
		dir := filepath.ToSlash(filepath.Dir(path))
		if strings.HasSuffix(path, "_test.go") || !strings.HasPrefix(dir, "pkg/") {
			return
		}
		for _, imp := range f.Imports {
			each(path, dir, strings.Trim(imp.Path.Value, `"`))
		}
	})
}

// TestImports: a wing imports only those that the table names, which are above it there; so there is no cycle.
func TestImports(t *testing.T) {
	may, used := map[string][]string{}, map[string]bool{}
	for _, w := range wings {
		for _, below := range strings.Fields(w.imports) {
			if _, above := may[below]; !above {
				t.Errorf("%s may import %s, which is not above it in the table", w.folder, below)
			}
		}
		may[w.folder] = strings.Fields(w.imports)
	}
	importsOf(t, func(path, dir, imported string) {
		from, to := wingOf(dir), wingOf(imported)
		if _, known := may[from]; !known {
			t.Errorf("%s: the folder %s has no row in wings", path, dir)
		}
		if withoutAWS.MatchString(dir) && strings.HasPrefix(imported, "github.com/aws/") {
			t.Errorf("%s imports %s; its package uses nothing of AWS", path, imported)
		}
		if from == to || !strings.HasPrefix(imported, "archivist/pkg/") {
			return
		}
		used[from+" "+to] = true
		if !slices.Contains(may[from], to) {
			t.Errorf("%s imports %s, and pkg/%s may not import pkg/%s", path, imported, from, to)
		}
	})
	for _, w := range wings {
		for _, to := range may[w.folder] {
			if !used[w.folder+" "+to] {
				t.Errorf("pkg/%s may import pkg/%s, and does not", w.folder, to)
			}
		}
	}
}

// TestCommands: packages of commands import the one that runs commands, and do not know each other. What is below one
// is its own.
func TestCommands(t *testing.T) {
	const program = "cmd/archivist/"
	goFiles(t, func(path string, f *ast.File, _ []byte) {
		group, isGroup := strings.CutPrefix(filepath.ToSlash(filepath.Dir(path)), program)
		for _, imp := range f.Imports {
			name, ofProgram := strings.CutPrefix(strings.Trim(imp.Path.Value, `"`), "archivist/"+program)
			own := strings.HasPrefix(name, group+"/")
			if isGroup && ofProgram && !own && name != "command" && name != "command/commandtest" {
				t.Errorf("%s imports %s, and %s may not import it", path, name, group)
			}
		}
	})
}

// TestDoctorHasNoRows: the doctor asks the packages whose rows it reads, and spells none of their attributes or
// keys: so an attribute that gets another name cannot be read as missing there.
func TestDoctorHasNoRows(t *testing.T) {
	own := map[string]bool{"DERIVATIVES": true, "FORMATS": true, "FIXITY": true, "REPLICA": true, "FILE": true}
	goFiles(t, func(path string, f *ast.File, _ []byte) {
		if filepath.ToSlash(filepath.Dir(path)) != "pkg/app/doctor" || strings.HasSuffix(path, "_test.go") {
			return
		}
		ast.Inspect(f, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.Field:
				if n.Tag != nil && strings.Contains(n.Tag.Value, "dynamo:") {
					t.Errorf("%s has the row attribute %s", path, n.Tag.Value)
				}
			case *ast.KeyValueExpr:
				k, is := n.Key.(*ast.Ident)
				v, text := n.Value.(*ast.BasicLit)
				if is && text && k.Name == "PK" && !own[strings.Trim(v.Value, `"`)] {
					t.Errorf("%s has the key %s", path, v.Value)
				}
			}
			return true
		})
	})
}

// TestTwins: twins of services are for tests; the system in one process (demo) is made of them.
func TestTwins(t *testing.T) {
	importsOf(t, func(path, dir, imported string) {
		twin := strings.HasPrefix(imported, "archivist/") && strings.HasSuffix(imported, "test")
		if twin && !strings.HasSuffix(dir, "test") && !strings.HasPrefix(dir, "pkg/app/inprocess") {
			t.Errorf("%s imports %s, which is for tests", path, imported)
		}
	})
}

// TestBelowBoot: wall clock, environment and random ids enter in boot.
func TestBelowBoot(t *testing.T) {
	banned := regexp.MustCompile(`\b(time\.Now|os\.Getenv|os\.LookupEnv|ulid\.Make|uuid\.New)\(`)
	goFiles(t, func(path string, _ *ast.File, src []byte) {
		if !strings.HasPrefix(path, "pkg/") || strings.HasPrefix(path, "pkg/app/boot/") ||
			strings.HasPrefix(path, "pkg/kernel/table/tabletest/") || strings.HasPrefix(path, "pkg/app/inprocess/") ||
			strings.HasSuffix(path, "_test.go") {
			return
		}
		if m := banned.Find(src); m != nil {
			t.Errorf("%s: %s belongs into boot", path, m)
		}
	})
}
