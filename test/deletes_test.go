package test

import (
	"go/ast"
	"go/types"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// deletion is the code that deletes objects of a bucket, or what is called so and is none.
type deletion struct {
	times int
	// row is the row of its table in docs/operations.md ("Keep content"): the bucket is a storage root. "": it is none.
	row string
}

// Rows of that table.
const (
	unfinished = "Remains of unfinished versions"
	wrongCopy  = "A copy that is wrong"
)

// deletions are all that delete, by their file and what they call. A new one that deletes below a storage root belongs
// into the document, asks policy.Deletable, and is granted in infra (TestNothingDeletesVersions there).
var deletions = map[string]deletion{
	"pkg/app/doctor/stored.go s.root().Bucket.Delete": {1, unfinished},
	"pkg/objects/ocfl/commit.go r.Bucket.Delete":      {1, unfinished},
	"pkg/objects/ocfl/sweep.go b.Delete":              {1, unfinished},
	"pkg/objects/ocfl/sweep.go b.DeleteSame":          {1, unfinished},
	"pkg/objects/ocfl/sweep.go l.bucket.Delete":       {2, unfinished},
	"pkg/objects/replica/copy.go w.To.DeleteSame":     {1, wrongCopy},

	// Work files, derived data.
	"pkg/ingest/stage/download.go d.Work.Delete":                  {1, ""},
	"pkg/app/doctor/work.go p.Work.Delete":                        {1, ""},
	"pkg/ingest/stage/estimate.go e.Work.Delete":                  {1, ""},
	"pkg/ingest/stage/store.go s.Work.Delete":                     {1, ""},
	"pkg/ingest/stage/unpack.go u.Work.Delete":                    {1, ""},
	"pkg/ingest/transfer/transfer.go t.Work.Delete":               {1, ""},
	"pkg/ingest/upload/sweep.go s.Work.DeleteAll":                 {1, ""},
	"pkg/ingest/workspace/workspace.go s.DeleteAll":               {1, ""},
	"pkg/objects/ocfl/commit.go r.Work.Delete":                    {2, ""},
	"pkg/objects/replica/transfer.go t.notes.Delete":              {1, ""},
	"pkg/views/inventorycache/inventorycache.go c.Derived.Delete": {1, ""},
	"pkg/views/search/embedded/write.go x.Bucket.Delete":          {2, ""},

	// The one package that calls S3.
	"pkg/kernel/bucket/bucket.go b.Client.DeleteObject":  {2, ""},
	"pkg/kernel/bucket/bucket.go b.Client.DeleteObjects": {1, ""},
	"pkg/kernel/bucket/bucket.go b.Delete":               {1, ""},

	// Rows and messages; reservations at EZID.
	"pkg/ingest/ezid/registry.go r.Client.Delete": {1, ""},
	"pkg/api/archives.go a.Revisions.Delete":      {1, ""},
	"pkg/api/components.go a.Components.Delete":   {1, ""},
	"pkg/api/consumers.go s.Delete":               {1, ""},
	"pkg/app/boot/research.go q.Delete":           {1, ""},
	"pkg/events/consumer/install.go s.Delete":     {1, ""},
	"pkg/research/next.go in.Delete":              {1, ""},
}

// production are the folders of what is deployed, and of the command line.
var production = regexp.MustCompile(`^(pkg|cmd|functions)/`)

// TestDeletions: no code deletes from a bucket but what the table names, and each that deletes below a storage root is
// in the document. What S3 can do beyond that, such as to delete a version or to change a bucket, nothing calls.
func TestDeletions(t *testing.T) {
	found := map[string]int{}
	goFiles(t, func(path string, f *ast.File, src []byte) {
		if strings.Contains(path, "test/") || !production.MatchString(path) || strings.HasSuffix(path, "_test.go") {
			return
		}
		for _, name := range []string{"PutBucket", "DeleteBucket", "VersionId", "BypassGovernance"} {
			if strings.Contains(string(src), name) {
				t.Errorf("%s has %s", path, name)
			}
		}
		for _, used := range deleting(f) {
			found[path+" "+used]++
		}
	})
	want := map[string]int{}
	doc, err := os.ReadFile("../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	for name, d := range deletions {
		want[name] = d.times
		if d.row != "" && !strings.Contains(string(doc), "\n| "+d.row+" | ") {
			t.Errorf("%s: docs/operations.md has no row %q", name, d.row)
		}
	}
	if maps.Equal(found, want) {
		return
	}
	for _, name := range slices.Sorted(maps.Keys(found)) {
		if found[name] != want[name] {
			t.Errorf("%s: found %d times, named %d times", name, found[name], want[name])
		}
	}
	for name := range want {
		if found[name] == 0 {
			t.Errorf("%s is named, and is not there", name)
		}
	}
}

// deleting are the methods of a file that may delete objects of a bucket: those with the names of the bucket's own that
// take a context, or that are not called but handed on.
func deleting(f *ast.File) (found []string) {
	called := map[*ast.SelectorExpr]bool{} // without a context
	ast.Inspect(f, func(n ast.Node) bool {
		if call, ok := n.(*ast.CallExpr); ok {
			s, method := call.Fun.(*ast.SelectorExpr)
			if method && (len(call.Args) == 0 || !strings.Contains(types.ExprString(call.Args[0]), "ctx")) {
				called[s] = true
			}
		}
		s, ok := n.(*ast.SelectorExpr)
		names := []string{"Delete", "DeleteSame", "DeleteAll", "DeleteObject", "DeleteObjects"}
		if !ok || called[s] || !slices.Contains(names, s.Sel.Name) {
			return true
		}
		if x, name := s.X.(*ast.Ident); !name || !imported(f, x.Name) {
			found = append(found, types.ExprString(s))
		}
		return true
	})
	return found
}

// imported reports whether a name is that of a package which the file imports.
func imported(f *ast.File, name string) bool {
	ends := regexp.MustCompile(`(^|/)` + regexp.QuoteMeta(name) + `(/v\d+)?$`)
	return slices.ContainsFunc(f.Imports, func(i *ast.ImportSpec) bool {
		return i.Name != nil && i.Name.Name == name || ends.MatchString(strings.Trim(i.Path.Value, `"`))
	})
}
