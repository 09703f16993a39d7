package test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"archivist/pkg/events/envelope"
	"archivist/pkg/events/event"
)

// TestEventTypes: the types of events in the code that writes them are those of the table,
// and each has a type of subjects that exists.
func TestEventTypes(t *testing.T) {
	written, known := map[string]string{}, map[string]bool{}
	writers := map[string]bool{} // only packages that import pkg/events/event can write events
	var files []func()
	goFiles(t, func(path string, f *ast.File, _ []byte) {
		dir := filepath.Dir(path)
		if !strings.HasPrefix(dir, "pkg") || strings.HasSuffix(path, "_test.go") {
			return
		}
		imports := func(i *ast.ImportSpec) bool { return i.Path.Value == `"archivist/pkg/events/event"` }
		writers[dir] = writers[dir] || slices.ContainsFunc(f.Imports, imports)
		files = append(files, func() {
			if writers[dir] {
				eventTypes(f, func(name string) { written[name] = path })
			}
		})
	})
	for _, search := range files {
		search()
	}
	for _, k := range envelope.Kinds {
		known[k.Type] = true
		if _, ok := written[k.Type]; !ok {
			t.Errorf("no code writes events of type %q, which the table has", k.Type)
		}
		if !slices.ContainsFunc(event.Types, func(of event.Type) bool { return of.String() == k.Subject }) {
			t.Errorf("%s: there is no type of subjects %q", k.Type, k.Subject)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(written)) {
		if !known[name] {
			t.Errorf("%s: the type %q is not in the table of types of events (envelope.Kinds)", written[name], name)
		}
	}
}

// eventTypes calls found with each text in a file that can only be a type of events: a dotted
// name after a type of subjects.
func eventTypes(f *ast.File, found func(name string)) {
	ast.Inspect(f, func(n ast.Node) bool {
		lit, ok := n.(*ast.BasicLit)
		if !ok || lit.Kind != token.STRING {
			return true
		}
		name, err := strconv.Unquote(lit.Value)
		if err == nil && eventType.MatchString(name) && filepath.Ext(name) != ".json" {
			found(name)
		}
		return true
	})
}

// eventType matches the types of events. Those of the subject type Queue begin with the name
// of the subject, the queue or the storage, or with "epoch".
var eventType = func() *regexp.Regexp {
	first := []string{"storage", "derivative", "epoch", "item", "project", "lease", "archive", "revision", "task"}
	for _, of := range event.Types {
		first = append(first, strings.ToLower(of.String()))
	}
	return regexp.MustCompile(`^(` + strings.Join(first, "|") + `)\.[a-z]+(-[a-z]+)*$`)
}()

// TestEventTypesAreFound: the search finds what a writer may write, and nothing else.
func TestEventTypesAreFound(t *testing.T) {
	const code = `package p
var a = origin{event: "job.state"}
var b = map[string][2]string{"x": {"storage.paused", "a job.state"}}
func f() { e.Type = "object.modify-metadata"; g("operation."); g("example.org"); g("job.json.gz", "version.json") }`
	f, err := parser.ParseFile(token.NewFileSet(), "p.go", code, 0)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	eventTypes(f, func(name string) { all = append(all, name) })
	if want := []string{"job.state", "storage.paused", "object.modify-metadata"}; !slices.Equal(all, want) {
		t.Errorf("found %q, expected %q", all, want)
	}
}
