package aip_test

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"archivist/pkg/kernel/fault"
	"archivist/pkg/objects/aip"
	"archivist/pkg/objects/aip/aiptest"
	"archivist/pkg/objects/ocfl"
)

const id = "ark:/99999/fk4tq65d6k"

// TestFiles: a list is read page by page, and every file's content is found, also in a
// list that is not read at once.
func TestFiles(t *testing.T) {
	root := aiptest.New(t)
	producer := map[string]string{}
	for n := range 1500 {
		producer[fmt.Sprintf("%04d/ä \"x\".txt", n)] = fmt.Sprint("content ", n%7)
	}
	stored := root.Store(id, producer, map[string]string{"mrt-owner.txt": "owner: maps\n"})
	v := aip.Head(root.Root, stored)

	read := map[string]aip.Entry{}
	for from := int64(0); ; {
		files, next, err := v.Files(t.Context(), from, 400)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			read[f.Path] = f
		}
		if len(files) < 400 {
			break
		}
		from = next
	}
	size := int64(0)
	for name, content := range producer {
		f := read["producer/"+name]
		if f.Source != "" || f.URL != "https://example.org/"+name || f.Size != int64(len(content)) {
			t.Fatalf("%s is listed as %+v", name, f)
		}
		size += f.Size
	}
	files, bytes, err := v.Totals(t.Context())
	if err != nil || files != len(producer) || bytes != size || len(read) != files {
		t.Errorf("%d files, %d bytes, %d read, %v; want %d, %d", files, bytes, len(read), err, len(producer), size)
	}

	for _, name := range []string{"0000/ä \"x\".txt", "0777/ä \"x\".txt", "1499/ä \"x\".txt"} {
		if got := content(t, v, "producer/"+name); got != producer[name] {
			t.Errorf("%s has the content %q, want %q", name, got, producer[name])
		}
	}
	if got := content(t, v, "system/mrt-owner.txt"); got != "owner: maps\n" {
		t.Errorf("the system file has the content %q", got)
	}
	for _, path := range []string{"producer/0000", "producer/zzz", "system/none", "elsewhere"} {
		if key, err := v.Content(t.Context(), path); !fault.Is(err, fault.NotFound) {
			t.Errorf("%s: got %q, %v; want a NotFound", path, key, err)
		}
	}
	if _, _, err := v.Files(t.Context(), 3, 1); !fault.Is(err, fault.Invalid) {
		t.Errorf("a byte inside a line gives %v, want an Invalid", err)
	}
}

// content reads a file of a version.
func content(t *testing.T, v aip.Version, path string) string {
	t.Helper()
	key, err := v.Content(t.Context(), path)
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	data, _, err := v.Root.Bucket.Read(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// TestVersions: each version describes itself; the newest describes the object.
func TestVersions(t *testing.T) {
	root := aiptest.New(t)
	root.Store(id, map[string]string{"a": "one"},
		aiptest.System("maps", "x", "who: A\nwhat: old\n", "<dc:rights>CC0</dc:rights>"))
	stored := root.Store(id, map[string]string{"a": "two!", "b": ""},
		aiptest.System("maps", "x; y z", "who: A\nwho: B\nwhat: new\n", ""))
	head := aip.Head(root.Root, stored)

	who, err := head.Identity(t.Context())
	if err != nil || !who.In("maps") || who.In("letters") || !slices.Equal(who.LocalIDs, []string{"x", "y z"}) {
		t.Errorf("the identity is %+v, %v", who, err)
	}
	who.Owner = "letters"
	if who.In("maps") {
		t.Error("an object of another owner is in the collection")
	}
	before, err := aip.Of(root.Root, stored, 1).Description(t.Context())
	if got := fmt.Sprint(before.Who, before.What, before.More); err != nil || got != "[A] [old] map[rights:[CC0]]" {
		t.Errorf("version 1 is described as %s, %v", got, err)
	}

	r, err := head.Record(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if got := r.Object; got.ARK != id || got.Collection != "maps" || got.Title != "new" || got.Who != "A; B" {
		t.Errorf("the object is recorded as %+v", got)
	}
	if got := r.Object; got.HeadOf != 2 || got.Created != 1000 || got.Modified != 2000 || got.Digest != stored.Digest {
		t.Errorf("the object is recorded as %+v", got)
	}
	if r.First != "job1" {
		t.Errorf("the first version is by %q", r.First)
	}
	for n, want := range map[int]string{1: "1 job1 1 3 1000", 2: "2 job2 2 4 2000"} {
		row, err := aip.Of(root.Root, stored, n).Row(t.Context())
		got := fmt.Sprint(row.Number, " ", row.Job, " ", row.Files, " ", row.Bytes, " ", row.Created)
		if err != nil || got != want || len(row.Digest) != 128 {
			t.Errorf("version %d is recorded as %s with digest %q, %v; want %s", n, got, row.Digest, err, want)
		}
	}
}

// TestForeign: an object of another software has no identity and no description. That is
// no error until it is to be recorded.
func TestForeign(t *testing.T) {
	root := aiptest.New(t)
	v := aip.Head(root.Root, root.Store(id, map[string]string{"a": "a"}, nil))
	if who, err := v.Identity(t.Context()); err != nil || who.Collection != "" || who.In("maps") {
		t.Errorf("the identity is %+v, %v", who, err)
	}
	if k, err := v.Description(t.Context()); err != nil || fmt.Sprint(k) != "{[] [] [] [] map[]}" {
		t.Errorf("the description is %v, %v", k, err)
	}
	_, err := v.Record(t.Context())
	if !fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), "name no collection") {
		t.Errorf("recording gives %v, want an Invalid", err)
	}
}

// TestBrokenList: an error in a list of files is an error, also when it is written.
func TestBrokenList(t *testing.T) {
	broken := errors.New("the bucket does not answer")
	failing := func(yield func(aip.Entry, error) bool) { yield(aip.Entry{}, broken) }
	if err := aip.WriteList(io.Discard, failing); !errors.Is(err, broken) {
		t.Errorf("writing gives %v", err)
	}
	count := 0
	var last error
	for _, err := range aip.ReadList(strings.NewReader(`{"path":"a"}` + "\n{\n")) {
		count, last = count+1, err
	}
	if count != 2 || last == nil {
		t.Errorf("%d entries were read, the last with %v", count, last)
	}
	for text, want := range map[io.Reader]fault.Kind{
		io.MultiReader(strings.NewReader(`{"path":"a"}`+"\n"), iotest.ErrReader(broken)): "", // not of the text
		strings.NewReader(`ath":"a"}` + "\n"):                                            fault.Invalid,
	} {
		err := aip.EachOf(text, 0, func(aip.Entry, int64) error { return nil })
		if fault.Of(err) != want || (want == "") != errors.Is(err, broken) {
			t.Errorf("reading gives %v, want the kind %q", err, want)
		}
	}
	root := aiptest.New(t)
	v := aip.Head(root.Root, root.Put(id, aiptest.File(aip.ListName, "no list")))
	if _, _, err := v.Totals(t.Context()); err == nil || !strings.Contains(err.Error(), aip.ListName) {
		t.Errorf("counting gives %v", err)
	}
}

// A list of files has one line for each file.
func Example() {
	a := aip.Entry{File: ocfl.File{Path: "producer/a.txt", Size: 3, Source: "jobs/1/files/1"}, MediaType: "text/plain"}
	files := func(yield func(aip.Entry, error) bool) { yield(a, nil) }
	if err := aip.WriteList(os.Stdout, files); err != nil {
		fmt.Println(err)
	}
	// Output: {"path":"producer/a.txt","size":3,"digests":null,"crc64nvme":"","url":"","mediaType":"text/plain"}
}
