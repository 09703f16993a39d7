package bagit_test

import (
	"archive/zip"
	"crypto/sha512"
	"encoding/hex"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"archivist/pkg/formats/bagit"
)

// TestConformance: the bags of the conformance suite have its verdicts: valid, invalid, or valid with a warning. Bags
// that are only wrong on one system are wrong on all.
func TestConformance(t *testing.T) {
	suite, err := zip.OpenReader("testdata/conformance.zip")
	if err != nil {
		t.Fatal(err)
	}
	defer suite.Close()
	versions, err := fs.Glob(suite, "v*/*/*/bagit.txt")
	if err != nil {
		t.Fatal(err)
	}
	missing, err := fs.Glob(suite, "v*/*/missing-bagit.txt")
	if err != nil || len(missing) != 1 {
		t.Fatal(missing, err)
	}
	bags := []string{missing[0]}
	for _, v := range versions {
		bags = append(bags, path.Dir(v))
	}

	count := map[string]int{}
	rows := []string{}
	for _, bag := range bags {
		verdict := path.Base(path.Dir(bag))
		in, err := fs.Sub(suite, bag)
		if err != nil {
			t.Fatal(err)
		}
		if path.Base(bag) == "special-system-files" {
			in = withSystemFile{in}
		}
		report, err := bagit.Check(t.Context(), in, nil)
		if err != nil {
			t.Errorf("%s: %v", bag, err)
			continue
		}
		count[verdict]++
		valid, warned := len(report.Problems) == 0, len(report.Warnings) > 0
		if valid != (verdict == "valid" || verdict == "warning") || verdict == "warning" && !warned {
			t.Errorf("%s: problems %v, warnings %v", bag, report.Problems, report.Warnings)
		}
		rows = append(rows, row(bag, verdict, report))
	}
	table(t, rows)
	want := map[string]int{"valid": 27, "warning": 6, "invalid": 15, "linux-only": 6, "windows-only": 6}
	if fmt.Sprint(count) != fmt.Sprint(want) {
		t.Errorf("checked %v, want %v", count, want)
	}
}

// verdicts is the table of what the suite and this package say of each of its bags.
const verdicts = "../../../bench/BAGIT.md"

var update = flag.Bool("update", false, "write "+verdicts)

// row is a line of the table. Bags that only some systems can hold are not valid on the others; here they are read from
// a zip file, which can hold all.
func row(bag, expected string, r *bagit.Report) string {
	is, says := "valid", ""
	switch {
	case len(r.Problems) > 0:
		is, says = "invalid", r.Problems[0].String()
	case len(r.Warnings) > 0:
		is, says = "warning", r.Warnings[0].String()
	}
	says = strings.NewReplacer("|", "\\|", "\n", " ", "\r", " ").Replace(says)
	if runes := []rune(says); len(runes) > 150 {
		says = string(runes[:150]) + "…"
	}
	return fmt.Sprintf("| `%s` | %s | %s | %s |\n", bag, expected, is, says)
}

// table compares the table with that of the repository, or writes it.
func table(t *testing.T, rows []string) {
	t.Helper()
	slices.Sort(rows)
	text := "# The conformance suite of BagIt\n\nThe verdicts on the bags of " +
		"[LibraryOfCongress/bagit-conformance-suite](https://github.com/LibraryOfCongress/bagit-conformance-suite), " +
		"by\n`go test ./pkg/formats/bagit -run TestConformance`, which compares them with this table. What is " +
		"`linux-only` or\n`windows-only` is invalid: its paths lead out of the bag on some system.\n\n" +
		"| bag | the suite says | Archivist says | first problem or warning |\n|---|---|---|---|\n" +
		strings.Join(rows, "")
	if *update {
		if err := os.WriteFile(verdicts, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if is, err := os.ReadFile(verdicts); err != nil || string(is) != text {
		t.Errorf("%s is not as the verdicts are (%v); -update writes it", verdicts, err)
	}
}

// withSystemFile has the empty file of that bag which its repository does not have, since Git ignores it.
type withSystemFile struct{ fs.FS }

func (w withSystemFile) ReadDir(name string) ([]fs.DirEntry, error) {
	all, err := fs.ReadDir(w.FS, name)
	if name == "data" && err == nil {
		hidden, err := fs.ReadDir(fstest.MapFS{".DS_Store": {}}, ".")
		return append(all, hidden...), err
	}
	return all, err
}

func (w withSystemFile) Open(name string) (fs.File, error) {
	if name == "data/.DS_Store" {
		return fstest.MapFS{name: {}}.Open(name)
	}
	return w.FS.Open(name)
}

// bag is a valid bag of two files.
func bag() fstest.MapFS {
	files := map[string]string{"data/a.txt": "one", "data/b/ü.txt": "two",
		"bag-info.txt": "Source-Organization: Somebody\nPayload-Oxum: 6.2\nExternal-Description: A\n  long one\n"}
	out := fstest.MapFS{"bagit.txt": {Data: []byte("BagIt-Version: 1.0\nTag-File-Character-Encoding: UTF-8\n")}}
	var manifest, tags string
	for name, text := range files {
		out[name] = &fstest.MapFile{Data: []byte(text)}
		sum := sha512.Sum512([]byte(text))
		line := hex.EncodeToString(sum[:]) + "  " + name + "\n"
		if strings.HasPrefix(name, "data/") {
			manifest += line
		} else {
			tags += line
		}
	}
	out["manifest-sha512.txt"] = &fstest.MapFile{Data: []byte(manifest)}
	out["tagmanifest-sha512.txt"] = &fstest.MapFile{Data: []byte(tags)}
	return out
}

// TestCheck: a bag is valid; whatever is changed in it is found, with the file.
func TestCheck(t *testing.T) {
	set := func(name, text string) func(fstest.MapFS) {
		return func(b fstest.MapFS) { b[name] = &fstest.MapFile{Data: []byte(text)} }
	}
	add := func(name, text string) func(fstest.MapFS) {
		return func(b fstest.MapFS) { b[name] = &fstest.MapFile{Data: append(b[name].Data, text...)} }
	}
	drop := func(name string) func(fstest.MapFS) { return func(b fstest.MapFS) { delete(b, name) } }
	for name, c := range map[string]struct {
		change func(fstest.MapFS)
		want   string // the first problem has it; "" for none
	}{
		"as it is":              {func(fstest.MapFS) {}, ""},
		"a tag file not listed": {set("notes/more.txt", "x"), ""},
		"a changed file":        {set("data/a.txt", "two"), "data/a.txt: its sha512 is"},
		"a lost file":           {drop("data/b/ü.txt"), "data/b/ü.txt: it is not there; manifest-sha512.txt lists it"},
		"a file too many":       {set("data/c.txt", "x"), "data/c.txt: no manifest lists it"},
		"a changed tag file":    {add("bag-info.txt", "X: y\n"), "bag-info.txt: its sha512 is"},
		"a lost tag file":       {drop("bag-info.txt"), "bag-info.txt: it is not there; tagmanifest-sha512.txt"},
		"no declaration":        {drop("bagit.txt"), "there is no bagit.txt"},
		"another version": {set("bagit.txt", "BagIt-Version: 1.1\nTag-File-Character-Encoding: UTF-8\n"),
			"version 1.1"},
		"another encoding": {set("bagit.txt", "BagIt-Version: 1.0\nTag-File-Character-Encoding: X\n"),
			"encoding \"X\""},
		"no manifest": {drop("manifest-sha512.txt"), "there is no manifest"},
		"no lines":    {set("manifest-sha512.txt", "what\n"), "manifest-sha512.txt:1: found \"what\""},
		"a path out of it": {add("manifest-sha512.txt", strings.Repeat("a", 128)+" data/../../x\n"),
			"leads out of the bag"},
		"a second manifest": {set("manifest-md5.txt", "f97c5d29941bfb1b2fdab0874906ab82 data/a.txt\n"),
			"manifest-md5.txt does not list it"},
		"a digest not known": {set("manifest-crc.txt", "1 data/a.txt\n"), ""},
		"not fetched": {func(b fstest.MapFS) {
			delete(b, "data/a.txt")
			set("fetch.txt", "https://example.org/a 3 data/a.txt\n")(b)
		}, "data/a.txt: it is not there yet: fetch.txt"},
		"fetched without a digest": {set("fetch.txt", "https://example.org/a - data/new\n"),
			"no manifest lists data/new"},
		"a link": {func(b fstest.MapFS) { b["data/l"] = &fstest.MapFile{Mode: fs.ModeSymlink} },
			"data/l: it is a link"},
		"no UTF-8": {set("bag-info.txt", "A: \xff\n"), "bag-info.txt: it is not UTF-8"},
	} {
		b := bag()
		c.change(b)
		report, err := bagit.Check(t.Context(), b, nil)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		got := ""
		for _, p := range report.Problems {
			got += p.String() + "\n"
		}
		if c.want == "" && got != "" || !strings.Contains(got, c.want) {
			t.Errorf("%s: found %s", name, got)
		}
	}
}

// TestReport: what a bag says of itself is read, and each file is read once.
func TestReport(t *testing.T) {
	calls := 0
	r, err := bagit.Check(t.Context(), bag(), func(_, of int, _ int64) { calls++ })
	if err != nil || r.Version != "1.0" || r.Encoding != "UTF-8" || r.Files != 2 || r.Bytes != 6 || calls != 3 ||
		len(r.Info) != 3 || r.Info[2] != (bagit.Field{Name: "External-Description", Value: "A long one"}) {
		t.Errorf("%+v, %v; %d files read", r, err, calls)
	}
	b := bag()
	b["bag-info.txt"] = &fstest.MapFile{Data: []byte("Payload-Oxum: 7.2\n")}
	delete(b, "tagmanifest-sha512.txt")
	if r, err := bagit.Check(t.Context(), b, nil); err != nil || len(r.Problems) != 1 ||
		!strings.Contains(r.Problems[0].Reason, "Payload-Oxum says 7 bytes in 2 files; there are 6") {
		t.Errorf("%+v, %v", r, err)
	}
}

// FuzzCheck: no tag file makes a check fail, or accept a file that is not what it was.
func FuzzCheck(f *testing.F) {
	b := bag()
	for _, name := range []string{"bagit.txt", "manifest-sha512.txt", "bag-info.txt"} {
		f.Add(name, b[name].Data)
	}
	f.Add("fetch.txt", []byte("https://example.org - data/a.txt"))
	f.Fuzz(func(t *testing.T, name string, data []byte) {
		if !fs.ValidPath(name) || strings.HasPrefix(name, "data") || strings.HasSuffix(name, "/") || name == "." {
			t.Skip("the name of no tag file")
		}
		b := bag()
		b[name] = &fstest.MapFile{Data: data}
		b["data/a.txt"] = &fstest.MapFile{Data: []byte("changed")}
		report, err := bagit.Check(t.Context(), b, nil)
		if err == nil && len(report.Problems) == 0 && !strings.Contains(string(data), digestOfChanged) {
			t.Errorf("%s: %q: a changed file is valid", name, data)
		}
	})
}

var digestOfChanged = func() string {
	sum := sha512.Sum512([]byte("changed"))
	return hex.EncodeToString(sum[:])[:16]
}()

// TestFolder: a bag on disk is read as it is.
func TestFolder(t *testing.T) {
	dir := t.TempDir()
	if err := os.CopyFS(dir, bag()); err != nil {
		t.Fatal(err)
	}
	r, err := bagit.Check(t.Context(), os.DirFS(dir), nil)
	if err != nil || len(r.Problems) > 0 || r.Files != 2 {
		t.Errorf("%+v, %v", r, err)
	}
}
