package test

import (
	"go/token"
	"go/types"
	"path/filepath"
	"slices"
	"testing"

	"golang.org/x/tools/go/packages"
)

// mostBack is how many of the uses between the files of a package may go back up, in percent.
const mostBack = 10

// use is of a declaration of one file in another one.
type use struct{ in, of string }

// TestFilesAreInLayers: the files of a package can be put in an order in which nearly all use goes down. So a package
// can be read from its top, and each file without those above it.
func TestFilesAreInLayers(t *testing.T) {
	all, err := packages.Load(&packages.Config{Mode: packages.LoadSyntax, Dir: root}, "./...")
	if err != nil || len(all) < 100 {
		t.Fatal(len(all), err)
	}
	for _, p := range all {
		if len(p.Errors) > 0 {
			t.Fatal(p.PkgPath, p.Errors)
		}
		uses := usesOf(p)
		if back := backOf(uses); len(back)*100 > len(uses)*mostBack {
			t.Errorf("%s: %d of %d uses between its files go back up: %v; move a declaration to the file that is "+
				"below both, or give what they share a file of its own", p.PkgPath, len(back), len(uses), back)
		}
	}
}

// usesOf are the uses between the files of a package. Those of fields do not count: their types do.
func usesOf(p *packages.Package) map[use]bool {
	file := func(at token.Pos) string { return filepath.Base(p.Fset.Position(at).Filename) }
	uses := map[use]bool{}
	for id, o := range p.TypesInfo.Uses {
		f, isFunc := o.(*types.Func)
		if isFunc {
			o = f.Origin() // of a generic one, too
		}
		if o.Pkg() != p.Types || !isFunc && o.Parent() != p.Types.Scope() {
			continue
		}
		if u := (use{file(id.Pos()), file(o.Pos())}); u.in != u.of {
			uses[u] = true
		}
	}
	return uses
}

// backOf are the uses that go back up in a good order of the files: each is moved to the place where it is best, as
// long as that helps.
func backOf(uses map[use]bool) (back []use) {
	var order []string
	for u := range uses {
		order = append(order, u.in, u.of)
	}
	slices.Sort(order)
	order = slices.Compact(order)

	back = upIn(order, uses)
	for better := true; better; {
		better = false
		for _, f := range slices.Clone(order) {
			rest := slices.DeleteFunc(slices.Clone(order), func(name string) bool { return name == f })
			for at := range order {
				tried := slices.Insert(slices.Clone(rest), at, f)
				if up := upIn(tried, uses); len(up) < len(back) {
					order, back, better = tried, up, true
				}
			}
		}
	}
	return back
}

// upIn are the uses in an order of files of a declaration in a file above.
func upIn(order []string, uses map[use]bool) (up []use) {
	place := map[string]int{}
	for i, f := range order {
		place[f] = i
	}
	for u := range uses {
		if place[u.of] < place[u.in] {
			up = append(up, u)
		}
	}
	return up
}
