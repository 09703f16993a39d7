package test

import (
	"go/ast"
	"path"
	"strings"
	"testing"
)

// realTime are the files of tests that wait, or measure, on real time, with the reason. None fails because a machine is
// slow.
var realTime = map[string]string{
	"cmd/archivist-task/main_test.go":         "looks at another process again and again, for minutes",
	"pkg/revisions/archive/git/cache_test.go": "the times of files differ by it, however long it takes",
	"pkg/revisions/archive/svn/real_test.go":  "looks at a server of another project again and again, for a minute",
	"pkg/research/researcher/run_test.go":     "waits for another goroutine, without an end",
	"pkg/revisions/runner/crash_test.go":      "whether a process has read an answer when it is killed may be either",
	"pkg/revisions/runner/main_test.go":       "looks at another process again and again, for minutes",
	"pkg/views/search/embedded/world_test.go": "a clock for processes of an index, whose workers no bubble takes",
	"pkg/revisions/workflow/parse_test.go":    "a parser took half a minute; the limit is a hundred times the usual",
	"test/docs/live_test.go":                  "says how long a command took",
}

// TestRealTime: no test waits, or measures, on real time. The time of a bubble costs nothing, and is the same on each
// machine. Benchmarks measure, and end-to-end tests look at other processes.
func TestRealTime(t *testing.T) {
	bubbles, uses := map[string]bool{}, map[string]string{}
	goFiles(t, func(file string, f *ast.File, _ []byte) {
		measures := strings.HasPrefix(file, "bench/") || strings.HasPrefix(file, "test/e2e/")
		if !strings.HasSuffix(file, "_test.go") || measures {
			return
		}
		for _, i := range f.Imports {
			if i.Path.Value == `"testing/synctest"` || strings.HasPrefix(i.Path.Value, `"archivist/test/adversary`) {
				bubbles[path.Dir(file)] = true
			}
		}
		if call := timeCall(f); call != "" {
			uses[file] = call
		}
	})
	for file, call := range uses {
		if !bubbles[path.Dir(file)] && realTime[file] == "" {
			t.Errorf("%s calls time.%s: use a bubble (testing/synctest), or say why in realTime", file, call)
		}
	}
	for file := range realTime {
		if uses[file] == "" {
			t.Errorf("%s has no real time any more: take it off the list", file)
		}
	}
}

// timeCall is the first function of package time that a file calls to wait or to measure.
func timeCall(f *ast.File) (name string) {
	ast.Inspect(f, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return name == ""
		}
		fn, ok := call.Fun.(*ast.SelectorExpr)
		if !ok {
			return name == ""
		}
		pkg, ok := fn.X.(*ast.Ident)
		if ok && pkg.Name == "time" && (fn.Sel.Name == "Sleep" || fn.Sel.Name == "Since") {
			name = fn.Sel.Name
		}
		return name == ""
	})
	return name
}
