// Package test holds what is tested on the system as a whole. This file keeps
// the promises that the repository makes about itself.
package test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"archivist/pkg/table/tabletest"
)

const root = ".."

// layers are the packages in order: each may import those before it. Values
// import nothing of ours.
var layers = []struct {
	dirs []string
	why  string
}{
	{[]string{"pkg/fault", "pkg/source", "pkg/anvl", "pkg/ark", "pkg/premis", "pkg/notify", "pkg/spill", "pkg/backoff",
		"pkg/table/schema", "pkg/terminal", "pkg/envelope", "statemachines", "pkg/audio/audiotest",
		"events"}, "values and formats stand alone"},
	{[]string{"pkg/filter"}, "filters look at what events say"},
	{[]string{"pkg/audio"}, "files of sound are samples"},
	{[]string{"pkg/definition", "pkg/curation"}, "what is defined or listed in a file is checked by itself"},
	{[]string{"pkg/graph"}, "what is drawn is nodes and links"},
	{[]string{"pkg/workflow"}, "what is planned for a revision follows from files"},
	{[]string{"pkg/analysis"}, "what an analysis is"},
	{[]string{"pkg/correlate"}, "clips are found in samples"},
	{[]string{"pkg/analysis/shipped"}, "the analyses that there are"},
	{[]string{"pkg/checkm"}, "manifests list only what can be fetched"},
	{[]string{"pkg/erc"}, "descriptions are read from ANVL and XML"},
	{[]string{"pkg/ingest"}, "the rules know only the kinds of errors"},
	{[]string{"pkg/api/v1"}, "the wire types need no AWS, so that the command line needs none"},
	{[]string{"pkg/table"}, "the table knows no domain word"},
	{[]string{"pkg/table/tabletest"}, "the twin of the table"},
	{[]string{"pkg/lease"}, "leases are rows"},
	{[]string{"pkg/event"}, "events are rows"},
	{[]string{"pkg/event/eventtest"}, "compares events with their schemas"},
	{[]string{"pkg/consumer"}, "consumers have rows, and read the log"},
	{[]string{"pkg/component"}, "components have rows, and follow events"},
	{[]string{"pkg/research"}, "research has rows with events, and leases"},
	{[]string{"pkg/history", "pkg/statistics", "pkg/eventarchive"}, "records, counts and archive follow from the log"},
	{[]string{"pkg/inventory", "pkg/collection"}, "objects and profiles are rows with events"},
	{[]string{"pkg/bucket", "pkg/fetch"}, "adapters to S3 and HTTP"},
	{[]string{"pkg/feed"}, "feeds are read by the guards and the retries of downloads"},
	{[]string{"pkg/researcher"}, "researchers download recordings, analyse them, and call the API"},
	{[]string{"pkg/researcher/pending"}, "work items come from a queue of SQS, too"},
	{[]string{"pkg/eventlog"}, "the log is rows that refer to events, and files"},
	{[]string{"pkg/callback"}, "callbacks keep to the guard and the retries of downloads"},
	{[]string{"pkg/bucket/buckettest"}, "the twin of S3"},
	{[]string{"pkg/ocfl"}, "the storage root is keys in a bucket"},
	{[]string{"pkg/description"}, "how a version is described follows from records and rules"},
	{[]string{"pkg/aip"}, "what a stored version contains is read from the storage root"},
	{[]string{"pkg/aip/aiptest"}, "stored versions on the twin of S3"},
	{[]string{"pkg/derivatives", "pkg/manifest", "pkg/inventorycache"},
		"thumbnails, manifests and summaries follow from stored versions"},
	{[]string{"pkg/fixity"}, "stored files are read again"},
	{[]string{"pkg/archive"}, "archives are stored objects and repositories elsewhere"},
	{[]string{"pkg/archive/archivetest"}, "what every archive must do"},
	{[]string{"pkg/archive/git"}, "repositories are read over HTTP, from buckets and disks"},
	{[]string{"pkg/archive/object"}, "versions of objects are read from the storage root"},
	{[]string{"pkg/archive/svn"}, "Subversion is read over HTTP"},
	{[]string{"pkg/archive/kinds"}, "the kinds of archives that there are"},
	{[]string{"pkg/runner"}, "what a task runs is in a bucket, and so is what it makes"},
	{[]string{"pkg/revision"}, "the revision queue is rows with events, and knows archives and runs"},
	{[]string{"pkg/replica"}, "copies of objects are read back, as stored files are"},
	{[]string{"pkg/formats"}, "formats are those of the files of stored versions"},
	{[]string{"pkg/formats/pronom"}, "formats are identified by signatures"},
	{[]string{"pkg/search"}, "what is searched follows from objects"},
	{[]string{"pkg/browse"}, "lists of objects are rows"},
	{[]string{"pkg/search/searchtest"}, "what every index must do"},
	{[]string{"pkg/search/embedded"}, "the index is files in a bucket, and a row"},
	{[]string{"pkg/search/opensearch"}, "the index is one of another service"},
	{[]string{"pkg/snapshot"}, "what is stored is read from the storage root and rows"},
	{[]string{"pkg/reindex"}, "rows follow from what stored versions contain"},
	{[]string{"pkg/provenance"}, "what happened to a version follows from its job, its files and the event log"},
	{[]string{"pkg/systemfile"}, "system files follow from the job, its description and its files"},
	{[]string{"pkg/workspace"}, "what jobs keep in the work bucket is files of versions to be"},
	{[]string{"pkg/payload"}, "what a payload is follows from its first bytes"},
	{[]string{"pkg/transfer"}, "files are brought from their sources into the work bucket"},
	{[]string{"pkg/queue"}, "the service decides and composes the transactions"},
	{[]string{"pkg/queue/queuetest"}, "drives the service in a test"},
	{[]string{"pkg/preservation"}, "components that ship do the work of other packages"},
	{[]string{"pkg/doctor"}, "compares rows with each other and with what is stored, and decides nothing else"},
	{[]string{"pkg/identity"}, "an identifier is an object's by rows, and by the lock of the job that it is for"},
	{[]string{"pkg/mail"}, "what a mail says is in the batch's row and its report"},
	{[]string{"pkg/stage"}, "stages do, the queue decides"},
	{[]string{"pkg/stage/stagetest"}, "the stages on twins"},
	{[]string{"pkg/api"}, "handlers translate"},
	{[]string{"pkg/awstest"}, "an AWS endpoint for tests of adapters"},
	{[]string{"pkg/stepfunctions", "pkg/sqs", "pkg/ses", "pkg/secretsmanager", "pkg/cloudwatch",
		"pkg/eventbridge", "pkg/invoke"},
		"adapters to AWS, each behind what its users ask for"},
	{[]string{"pkg/target"}, "events go to functions and queues"},
	{[]string{"pkg/crash"}, "ends a worker's process in a test"},
	{[]string{"pkg/lambda"}, "events become calls of the queue"},
	{[]string{"pkg/boot"}, "wires everything; time, ids and environment enter here"},
}

func layerOf(dir string) int {
	for i, l := range layers {
		if slices.Contains(l.dirs, dir) {
			return i
		}
	}
	return -1
}

// goFiles parses every Go file of the repository below dir.
func goFiles(t *testing.T, each func(path string, f *ast.File, src []byte)) {
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (strings.HasPrefix(d.Name(), ".") && d.Name() != ".." || d.Name() == "node_modules" ||
			d.Name() == "cdk.out") {
			return filepath.SkipDir
		}
		if !strings.HasSuffix(path, ".go") {
			return nil
		}
		src, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		f, err := parser.ParseFile(token.NewFileSet(), path, src, parser.ParseComments)
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(root, path)
		each(filepath.ToSlash(rel), f, src)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestImports: packages import downwards only.
func TestImports(t *testing.T) {
	goFiles(t, func(path string, f *ast.File, _ []byte) {
		dir := filepath.ToSlash(filepath.Dir(path))
		if strings.HasSuffix(path, "_test.go") || !strings.HasPrefix(dir, "pkg/") {
			return
		}
		mine := layerOf(dir)
		if mine < 0 {
			t.Errorf("%s: the package %s has no place in layers", path, dir)
			return
		}
		for _, imp := range f.Imports {
			name, ours := strings.CutPrefix(strings.Trim(imp.Path.Value, `"`), "archivist/")
			if !ours {
				continue
			}
			if other := layerOf(name); other < 0 || other >= mine {
				t.Errorf("%s imports %s, which is not below it: %s", path, name, layers[mine].why)
			}
		}
	})
}

// TestPackageComments: a package, and a command, says what it is for, beginning as go doc
// wants it.
func TestPackageComments(t *testing.T) {
	commented, seen := map[string]bool{}, map[string]string{}
	goFiles(t, func(path string, f *ast.File, _ []byte) {
		dir := filepath.Dir(path)
		begins := "Package " + f.Name.Name + " "
		if f.Name.Name == "main" {
			begins = "Command " + filepath.Base(dir) + " "
		}
		seen[dir] = begins
		if f.Doc != nil && strings.HasPrefix(f.Doc.Text(), begins) {
			commented[dir] = true
		}
	})
	for dir, begins := range seen {
		if !commented[dir] {
			t.Errorf("%s: no file has a package comment that begins with %q", dir, begins)
		}
	}
}

// TestBelowBoot: wall clock, environment and random ids enter in boot.
func TestBelowBoot(t *testing.T) {
	banned := regexp.MustCompile(`\b(time\.Now|os\.Getenv|os\.LookupEnv|ulid\.Make|uuid\.New)\(`)
	goFiles(t, func(path string, _ *ast.File, src []byte) {
		if !strings.HasPrefix(path, "pkg/") || strings.HasPrefix(path, "pkg/boot/") ||
			strings.HasPrefix(path, "pkg/table/tabletest/") ||
			strings.HasSuffix(path, "_test.go") {
			return
		}
		if m := banned.Find(src); m != nil {
			t.Errorf("%s: %s belongs into boot", path, m)
		}
	})
}

// TestSizes: a newcomer reads a file in one sitting and a function at a glance.
func TestSizes(t *testing.T) {
	goFiles(t, func(path string, f *ast.File, src []byte) {
		lines := func(from, to token.Pos) int {
			return strings.Count(string(src[from-f.FileStart:to-f.FileStart]), "\n") + 1
		}
		if n := strings.Count(string(src), "\n"); n > 500 {
			t.Errorf("%s has %d lines; the ceiling is 500", path, n)
		}
		for _, d := range f.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok {
				if n := lines(fn.Pos(), fn.End()); n > 70 {
					t.Errorf("%s: %s has %d lines; the ceiling is 70", path, fn.Name.Name, n)
				}
				if n := lines(fn.Pos(), fn.End()); strings.HasPrefix(path, "functions/") && n > 30 {
					t.Errorf("%s: %s has %d lines; a function's main has at most 30", path, fn.Name.Name, n)
				}
			}
		}
	})
}

// TestAttributeNames: no attribute has a reserved word for its name, so that
// expressions can be read as they are.
func TestAttributeNames(t *testing.T) {
	tag := regexp.MustCompile(`dynamo:"([a-z0-9_]+)`)
	goFiles(t, func(path string, _ *ast.File, src []byte) {
		for _, m := range tag.FindAllSubmatch(src, -1) {
			if tabletest.Reserved(string(m[1])) {
				t.Errorf("%s: the attribute %s is a reserved word of DynamoDB", path, m[1])
			}
		}
	})
}
