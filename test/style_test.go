package test

import (
	"go/ast"
	"go/token"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// Columns of a line; a tab is four. Most lines end where a window for two files side by side does.
const (
	widest = 120
	usual  = 100
)

// mostWide is the share of lines of code that may be wider than usual, in parts of a thousand, outside of tests.
const mostWide = 15

// TestLineLength: code is read next to other code. Raw strings but tags, and the output of
// examples, cannot be broken, so they do not count.
func TestLineLength(t *testing.T) {
	code, wide := 0, 0
	goFiles(t, func(path string, f *ast.File, src []byte) {
		tests := strings.HasSuffix(path, "_test.go") || strings.HasPrefix(path, "test/")
		for i, line := range strings.Split(breakable(f, src), "\n") {
			n := utf8.RuneCountInString(strings.ReplaceAll(line, "\t", "    "))
			if n > widest {
				t.Errorf("%s:%d has %d columns; the ceiling is %d", path, i+1, n, widest)
			}
			if text := strings.TrimSpace(line); !tests && text != "" && !strings.HasPrefix(text, "//") {
				code++
				if n > usual {
					wide++
				}
			}
		}
	})
	if wide*1000 > code*mostWide {
		t.Errorf("%d of %d lines of code are wider than %d columns; the ceiling is %d in a thousand", wide, code, usual,
			mostWide)
	}
}

// breakable is a file's text without raw strings that are no tags, and without the output
// of examples.
func breakable(f *ast.File, src []byte) string {
	var left []ast.Node // out
	tags := map[*ast.BasicLit]bool{}
	ast.Inspect(f, func(n ast.Node) bool {
		if field, ok := n.(*ast.Field); ok && field.Tag != nil {
			tags[field.Tag] = true
		}
		if l, ok := n.(*ast.BasicLit); ok && l.Kind == token.STRING && strings.HasPrefix(l.Value, "`") && !tags[l] {
			left = append(left, l)
		}
		return true
	})
	for _, c := range f.Comments {
		if text := strings.ToLower(c.Text()); strings.HasPrefix(text, "output:") {
			left = append(left, c)
		}
	}
	text := slices.Clone(src)
	for _, n := range left {
		for i := n.Pos() - f.FileStart; i < n.End()-f.FileStart; i++ {
			if text[i] != '\n' {
				text[i] = 0
			}
		}
	}
	return strings.ReplaceAll(string(text), "\x00", "")
}

// Ceilings of cyclomatic complexity (McCabe): of any function, and of 99 % of them.
const (
	mostComplex  = 15
	usualComplex = 12
)

// TestComplexity: a function has few ways through it. Tests are left out: they compare
// much, one thing after the other.
func TestComplexity(t *testing.T) {
	var all []int
	goFiles(t, func(path string, f *ast.File, _ []byte) {
		for _, d := range f.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok || strings.HasSuffix(path, "_test.go") {
				continue
			}
			n := complexity(fn)
			all = append(all, n)
			if n > mostComplex {
				t.Errorf("%s: %s has complexity %d; the ceiling is %d", path, fn.Name.Name, n, mostComplex)
			}
		}
	})
	slices.Sort(all)
	if p99 := all[len(all)*99/100]; p99 > usualComplex {
		t.Errorf("one function in a hundred has complexity %d; the ceiling is %d", p99, usualComplex)
	}
	t.Logf("%d functions: half have at most %d, 90 %% %d, 99 %% %d, all %d", len(all),
		all[len(all)/2], all[len(all)*9/10], all[len(all)*99/100], all[len(all)-1])
}

// complexity is the number of decisions in a function, plus one.
func complexity(fn *ast.FuncDecl) int {
	n := 1
	ast.Inspect(fn, func(node ast.Node) bool {
		switch x := node.(type) {
		case *ast.IfStmt, *ast.ForStmt, *ast.RangeStmt:
			n++
		case *ast.CaseClause:
			n += min(1, len(x.List)) // not the default
		case *ast.CommClause:
			if x.Comm != nil {
				n++
			}
		case *ast.BinaryExpr:
			if x.Op == token.LAND || x.Op == token.LOR {
				n++
			}
		}
		return true
	})
	return n
}

// TestExportedComments: whatever other packages can use says what it is.
func TestExportedComments(t *testing.T) {
	goFiles(t, func(path string, f *ast.File, _ []byte) {
		if strings.HasSuffix(path, "_test.go") {
			return
		}
		for _, d := range f.Decls {
			for _, name := range uncommented(d) {
				t.Errorf("%s: %s has no comment", path, name)
			}
		}
	})
}

// uncommented are the exported names of a declaration that have no comment.
func uncommented(d ast.Decl) (names []string) {
	switch d := d.(type) {
	case *ast.FuncDecl:
		if d.Doc == nil && d.Name.IsExported() && (d.Recv == nil || exportedReceiver(d.Recv.List[0].Type)) {
			names = append(names, d.Name.Name)
		}
	case *ast.GenDecl:
		if d.Doc != nil {
			return nil
		}
		for _, spec := range d.Specs {
			if s, ok := spec.(*ast.TypeSpec); ok && s.Doc == nil && s.Name.IsExported() {
				names = append(names, s.Name.Name)
			}
			if s, ok := spec.(*ast.ValueSpec); ok && s.Doc == nil && s.Comment == nil && s.Names[0].IsExported() {
				names = append(names, s.Names[0].Name)
			}
		}
	}
	return names
}

func exportedReceiver(e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.StarExpr:
		return exportedReceiver(e.X)
	case *ast.IndexExpr:
		return exportedReceiver(e.X)
	case *ast.Ident:
		return e.IsExported()
	}
	return false
}

// TestIfHeaders: the header of an if declares what its condition looks at, and changes
// nothing else. Setting err is as good as declaring it.
func TestIfHeaders(t *testing.T) {
	goFiles(t, func(path string, f *ast.File, src []byte) {
		ast.Inspect(f, func(n ast.Node) bool {
			i, ok := n.(*ast.IfStmt)
			if ok && i.Init != nil && changes(i.Init) {
				line := strings.Count(string(src[:i.Pos()-f.FileStart]), "\n") + 1
				t.Errorf("%s:%d: the header of an if changes a variable; put it on a line of its own", path, line)
			}
			return true
		})
	})
}

// changes reports whether a statement does more than to declare variables, or to set err.
func changes(s ast.Stmt) bool {
	a, ok := s.(*ast.AssignStmt)
	if !ok {
		return true
	}
	last, _ := a.Lhs[len(a.Lhs)-1].(*ast.Ident)
	return a.Tok != token.DEFINE && (a.Tok != token.ASSIGN || last == nil || last.Name != "err")
}
