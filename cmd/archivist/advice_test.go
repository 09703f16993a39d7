package main

import (
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/alecthomas/kong"

	"archivist/cmd/archivist/command"
)

// written is the text of an expression of strings; what is not written there is the word X.
func written(e ast.Expr) string {
	switch x := e.(type) {
	case *ast.BasicLit:
		if text, err := strconv.Unquote(x.Value); err == nil {
			return text
		}
	case *ast.BinaryExpr:
		return written(x.X) + written(x.Y)
	}
	return "X"
}

var (
	adviceLine = regexp.MustCompile(`archivist ([a-z][a-z-]+(?: [^.;,"` + "`" + `]*)?)`)
	adviceFlag = regexp.MustCompile(`--([a-z][a-z-]*)`)
)

// commandOf follows the words of a command line to its command, and returns what is left of them.
func commandOf(n *kong.Node, words []string) (*kong.Node, []string) {
	for len(words) > 0 {
		i := slices.IndexFunc(n.Children, func(c *kong.Node) bool { return c.Name == words[0] })
		if i < 0 {
			break
		}
		n, words = n.Children[i], words[1:]
	}
	return n, words
}

// TestAdvice: each command line that a message or an explanation advises is one of this program, with its flags.
func TestAdvice(t *testing.T) {
	model := newProgram().Parser(command.Machine{}, func(int) {}).Model.Node
	n := 0
	check := func(at token.Position, text string) {
		for _, m := range adviceLine.FindAllStringSubmatch(text, -1) {
			words := strings.Fields(m[1])
			c, left := commandOf(model, words)
			if c == model { // prose about the program, or about an archive's archivist
				if strings.HasPrefix(text, "archivist ") && strings.Contains(text, " --reason TEXT") {
					t.Errorf("%s advises %s, which is no command", at, text)
				}
				continue
			}
			n++
			if len(c.Children) > 0 && (len(left) == 0 || !strings.HasPrefix(left[0], "X") && left[0] != "%s") {
				t.Errorf("%s advises archivist %s, which is no command", at, m[1])
			}
			for _, f := range adviceFlag.FindAllStringSubmatch(m[1], -1) {
				known := slices.ContainsFunc(c.AllFlags(false), func(g []*kong.Flag) bool {
					return slices.ContainsFunc(g, func(g *kong.Flag) bool { return g.Name == f[1] })
				})
				if !known && len(c.Children) == 0 {
					t.Errorf("%s advises archivist %s, which has no flag --%s", at, m[1], f[1])
				}
			}
		}
	}
	read := func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		files := token.NewFileSet()
		f, err := parser.ParseFile(files, path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		ast.Inspect(f, func(node ast.Node) bool {
			e, is := node.(ast.Expr)
			if !is {
				return true
			}
			switch e.(type) {
			case *ast.BasicLit, *ast.BinaryExpr:
				check(files.Position(e.Pos()), written(e))
				return false
			}
			return true
		})
		return nil
	}
	if err := errors.Join(filepath.WalkDir("../../pkg", read), filepath.WalkDir(".", read)); err != nil || n < 50 {
		t.Errorf("%d command lines, %v", n, err)
	}
}
