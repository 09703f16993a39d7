// Package archivetest has what every source of an archive must do. Each kind makes an archive with
// a history, and runs the same tests with it: so what the revision queue counts on is the same for
// all kinds.
package archivetest

import (
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"archivist/pkg/kernel/fault"
	"archivist/pkg/revisions/archive"
	"archivist/pkg/revisions/workflow"
)

// File is a file or a link. Two are equal if they are the same in an archive.
type File struct {
	Content    string
	Executable bool
	Link       string // the target; Content is "" then
}

// Revision is all that an archive has at a revision.
type Revision struct {
	Files           map[string]File // by path
	Author, Message string
}

// Kind is a kind of archives. Objects have no links.
type Kind struct {
	// Make makes an archive whose revisions are the history, and nothing else.
	Make   func(t *testing.T, history []Revision) archive.Source
	Links  bool // it has links, and files that can be executed
	Tokens bool // its messages have trailers, or its revisions properties
}

// Text is a file with a content.
func Text(content string) File { return File{Content: content} }

const task = "tasks: {}\n"

// history has files of all kinds: renamed, removed, in folders, with names and contents that are
// easily spoilt (line ends, bytes that are no text, letters beyond ASCII, characters that URLs
// escape).
func history() []Revision {
	first := map[string]File{
		"a.txt":                         Text("first\n"),
		"Ordner mit ä/ü ß %20 #?&+.txt": Text("Umlaute und Leerzeichen\n"),
		"crlf.txt":                      Text("one\r\ntwo\r\n"),
		"empty":                         Text(""),
		"binary":                        Text("\x00\x01\xff\xfe\r\n\x00"),
		"deep/er/and/deeper":            Text(strings.Repeat("0123456789abcdef", 100_000)),
	}

	second := maps.Clone(first)
	second["_workflows/main.yaml"] = Text(task)
	second["_workflows/nested/more/other.yml"] = Text(task + "# other\n")
	second["_workflows/a.json"] = Text("{}\n")
	second["_workflows/README.md"] = Text("no definition\n")
	second["deep/_workflows/no.yaml"] = Text("not at the root\n")
	third := maps.Clone(second)
	delete(third, "a.txt")
	third["b.txt"] = Text("first\n") // renamed
	third["deep/er/and/deeper"] = Text("now small\n")
	delete(third, "_workflows/main.yaml")
	fourth := maps.Clone(third)
	delete(fourth, "empty")
	fourth["empty/is now a folder"] = Text("x")
	fifth := maps.Clone(fourth)
	fifth["c.txt"] = Text("c\n")
	message := "Fifth\n\nIn two paragraphs.\n\n" + archive.TokenTrailer + ": run-token-5\n"
	return []Revision{{first, "Ada", "First"}, {second, "Ben", "Second: definitions"},
		{third, "Ada", "Third"},
		{fourth, "Ada", "Fourth, with ä"}, {fifth, "archivist", message}}
}

// Run runs all tests.
func Run(t *testing.T, k Kind) {
	all := history()
	s := k.Make(t, all)
	t.Run("Revisions", func(t *testing.T) { revisions(t, k, s, all) })
	t.Run("Missing", func(t *testing.T) { missing(t, s, int64(len(all))) })
	t.Run("Workflows", func(t *testing.T) { workflows(t, s) })
	t.Run("Changed", func(t *testing.T) { changed(t, s, all) })
	t.Run("Checkout", func(t *testing.T) {
		for i, want := range all {
			CheckCheckout(t, s, int64(i+1), want.Files)
		}
	})

	t.Run("Limits", func(t *testing.T) { limits(t, k) })
	if k.Links {
		t.Run("Links", func(t *testing.T) { links(t, k) })
	}
}

// revisions checks the descriptions of all revisions: twice, since the second answer can be a kept
// one.
func revisions(t *testing.T, k Kind, s archive.Source, all []Revision) {
	head, err := s.Head(t.Context())
	if err != nil || head != int64(len(all)) {
		t.Fatalf("the head is %d, %v; want %d", head, err, len(all))
	}

	seen := map[string]bool{}
	for i, want := range all {
		n := int64(i + 1)
		got, err := s.Revision(t.Context(), n)
		if err != nil {
			t.Fatal(err)
		}

		again, err := s.Revision(t.Context(), n)
		if err != nil || again != got {
			t.Errorf("revision %d is %+v, and then %+v, %v", n, got, again, err)
		}

		if got.Number != n || got.Transaction == "" || seen[got.Transaction] || got.Time.IsZero() ||
			got.Time.Location() != time.UTC {
			t.Errorf("revision %d is %+v", n, got)
		}

		seen[got.Transaction] = true
		described(t, k, got, want)
	}
}

// described compares what an archive says of a revision with what was committed.
func described(t *testing.T, k Kind, got archive.Revision, want Revision) {
	n := got.Number
	if !strings.Contains(got.Author, want.Author) ||
		strings.TrimSpace(got.Message) != strings.TrimSpace(want.Message) {
		t.Errorf("revision %d is by %q: %q; want %q: %q", n, got.Author, got.Message, want.Author,
			want.Message)
	}
	if k.Tokens && (got.Token == "run-token-5") != (n == 5) {
		t.Errorf("revision %d has the token %q", n, got.Token)
	}
}

// missing checks that revisions that there are not are a NotFound that names them, whatever is
// asked.
func missing(t *testing.T, s archive.Source, head int64) {
	for _, n := range []int64{-1, 0, head + 1, head + 1000} {
		_, revision := s.Revision(t.Context(), n)
		_, files := s.Workflows(t.Context(), n)
		checkout := s.Checkout(t.Context(), n, t.TempDir())
		_, paths := s.Changed(t.Context(), 1, n)
		if n == 0 {
			paths = revision // it may be compared: the empty archive
		}

		for what, err := range map[string]error{"Revision": revision, "Workflows": files,
			"Checkout": checkout,
			"Changed":  paths} {
			if !fault.Is(err, fault.NotFound) || !strings.Contains(err.Error(), fmt.Sprint(n)) {
				t.Errorf("%s of revision %d: %v", what, n, err)
			}
		}
	}
	if _, err := s.Changed(t.Context(), head+1, head); !fault.Is(err, fault.NotFound) {
		t.Errorf("Changed since a revision that there is not: %v", err)
	}
}

// workflows checks which files are definitions, and their order.
func workflows(t *testing.T, s archive.Source) {
	want := map[int64][]string{1: nil,
		2: {"_workflows/a.json", "_workflows/main.yaml", "_workflows/nested/more/other.yml"},
		3: {"_workflows/a.json", "_workflows/nested/more/other.yml"}}
	for n, paths := range want {
		files, err := s.Workflows(t.Context(), n)
		var got []string
		for _, f := range files {
			got = append(got, f.Path)
		}

		if err != nil || !slices.Equal(got, paths) {
			t.Errorf("revision %d has the definitions %v, %v; want %v", n, got, err, paths)
		}

		if n == 2 && len(files) == 3 && string(files[2].Data) != task+"# other\n" {
			t.Errorf("%s has %q", files[2].Path, files[2].Data)
		}
	}
}

// changed compares every two revisions with what differs between their files.
func changed(t *testing.T, s archive.Source, all []Revision) {
	states := append([]Revision{{}}, all...)
	for base := range states {
		for n := 1; n < len(states); n++ {
			want := differences(states[base].Files, states[n].Files)
			got, err := s.Changed(t.Context(), int64(base), int64(n))
			if err != nil || !slices.Equal(got, want) {
				t.Errorf("between %d and %d:\n got %q, %v\nwant %q", base, n, got, err, want)
			}
		}
	}
}

// differences are the paths that differ between two states, sorted.
func differences(a, b map[string]File) (paths []string) {
	all := maps.Clone(a)
	if all == nil {
		all = map[string]File{}
	}

	maps.Copy(all, b)
	for path := range all {
		before, was := a[path]
		after, is := b[path]
		if was != is || before != after {
			paths = append(paths, path)
		}
	}

	slices.Sort(paths)
	return paths
}

// CheckCheckout compares a checkout with files, byte by byte.
func CheckCheckout(t *testing.T, s archive.Source, n int64, want map[string]File) {
	t.Helper()
	folder := t.TempDir()
	if err := s.Checkout(t.Context(), n, folder); err != nil {
		t.Errorf("checkout of revision %d: %v", n, err)
		return
	}
	CheckFiles(t, folder, want)
}

// CheckFiles compares what is below a folder with files: content, links, and whether they are
// executable.
func CheckFiles(t *testing.T, folder string, want map[string]File) {
	t.Helper()
	got := map[string]File{}
	err := filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}

		name, _ := filepath.Rel(folder, path)
		if d.Type() == fs.ModeSymlink {
			target, err := os.Readlink(path)
			got[name] = File{Link: target}
			return err
		}

		info, err := d.Info()
		if err != nil {
			return err
		}

		if mode := info.Mode().Perm(); mode != 0o644 && mode != 0o755 {
			t.Errorf("%s has the mode %o", name, mode)
		}

		data, err := os.ReadFile(path)
		got[name] = File{Content: string(data), Executable: info.Mode()&0o100 != 0}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}

	for _, path := range differences(got, want) {
		g, there := got[path]
		w, wanted := want[path]
		t.Errorf("%q: there %v, wanted %v; %.100q, want %.100q", path, there, wanted, fmt.Sprint(g),
			fmt.Sprint(w))
	}
}

// limits checks that as many and as large definitions as are allowed are read, and that more are an
// Invalid.
func limits(t *testing.T, k Kind) {
	many := map[string]File{}
	for i := range workflow.MaxFiles + 1 {
		many[fmt.Sprintf("_workflows/%03d.yaml", i)] = Text(task)
	}

	fit := maps.Clone(many)
	delete(fit, "_workflows/000.yaml")
	fit["_workflows/001.yaml"] = Text(strings.Repeat("#", workflow.MaxFile))
	large := map[string]File{"_workflows/large.json": Text(strings.Repeat("#", workflow.MaxFile+1))}
	s := k.Make(t, []Revision{{many, "Ada", "many"}, {fit, "Ada", "fit"}, {large, "Ada", "large"}})
	for n, want := range []string{"", "has more than 100 files of definitions", "",
		"_workflows/large.json has more than 262144 bytes"} {
		if n == 0 {
			continue
		}
		_, err := s.Workflows(t.Context(), int64(n))
		refused := fault.Is(err, fault.Invalid) && strings.Contains(err.Error(), want)
		if want == "" && err != nil || want != "" && !refused {
			t.Errorf("revision %d: %v; want %q", n, err, want)
		}
	}
}

// links: those that stay inside are made; a checkout with any other is refused, and leaves no file.
// None is followed, also not to a definition.
func links(t *testing.T, k Kind) {
	inside := map[string]File{
		"run.sh":            {Content: "#!/bin/sh\n", Executable: true},
		"d/link":            {Link: "../run.sh"},
		"loose":             {Link: "d/not there"},
		"folder":            {Link: "d"},
		"round":             {Link: "round"},
		"_workflows/x.yaml": {Link: "../run.sh"},
	}

	plain := maps.Clone(inside)
	plain["run.sh"] = Text("#!/bin/sh\n")
	out := []map[string]File{{"l": {Link: "/etc/passwd"}}, {"d/l": {Link: "../../x"}},
		{"x": {Link: "."}, "y": {Link: "x/.."}},
		{"a": {Link: "b"}, "b": {Link: "c/.."}, "c": {Link: ".."}}}

	all := []Revision{{inside, "Ada", "inside"}, {plain, "Ada", "plain"}}
	for _, files := range out {
		all = append(all, Revision{files, "Ada", "out"})
	}

	s := k.Make(t, all)
	CheckCheckout(t, s, 1, inside)
	CheckCheckout(t, s, 2, plain)
	if got, err := s.Changed(t.Context(), 1, 2); err != nil ||
		!slices.Equal(got, []string{"run.sh"}) {
		t.Errorf("a file that can be executed no more: %v, %v", got, err)
	}

	if files, err := s.Workflows(t.Context(), 1); err != nil || len(files) > 0 {
		t.Errorf("a link was followed: %v, %v", files, err)
	}

	for i := range out {
		folder := t.TempDir()
		err := s.Checkout(t.Context(), int64(i+3), folder)
		if !fault.Is(err, fault.Invalid) ||
			!strings.Contains(err.Error(), "outside of the archive") {
			t.Errorf("%v: %v", out[i], err)
		}
		if left, _ := os.ReadDir(folder); slices.ContainsFunc(left,
			func(e fs.DirEntry) bool { return !e.IsDir() }) {
			t.Errorf("%v: %v were made", out[i], left)
		}
	}
}
