package bagit_test

import (
	"bytes"
	"errors"
	"io/fs"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"testing/iotest"

	"archivist/pkg/formats/bagit"
)

// packed reads the files of a folder in an order, below another folder.
func packed(t *testing.T, below string, files fstest.MapFS, order []string) *bagit.Packed {
	t.Helper()
	p := &bagit.Packed{}
	for _, name := range order {
		if err := p.Add(below+name, bytes.NewReader(files[name].Data)); err != nil {
			t.Fatal(err)
		}
	}
	p.Complete()
	return p
}

// TestPacked: a bag that is read file by file, in any order, gets the verdict that its folder gets.
func TestPacked(t *testing.T) {
	for name, change := range map[string]func(fstest.MapFS){
		"valid":         func(fstest.MapFS) {},
		"changed":       func(b fstest.MapFS) { b["data/a.txt"] = &fstest.MapFile{Data: []byte("two")} },
		"lost":          func(b fstest.MapFS) { delete(b, "data/a.txt") },
		"changed tag":   func(b fstest.MapFS) { b["bag-info.txt"] = &fstest.MapFile{Data: []byte("A: b\n")} },
		"too many":      func(b fstest.MapFS) { b["data/c.txt"] = &fstest.MapFile{} },
		"a data folder": func(b fstest.MapFS) { b["notes/data/x.txt"] = &fstest.MapFile{Data: []byte("x")} },
	} {
		b := bag()
		change(b)
		want, err := bagit.Check(t.Context(), b, nil)
		if err != nil {
			t.Fatal(err)
		}
		names := slices.Sorted(maps.Keys(b))
		for _, below := range []string{"", "delivery/"} {
			got, err := bagit.Check(t.Context(), packed(t, below, b, names), nil)
			if err != nil || !reflect.DeepEqual(got, want) {
				t.Errorf("%s below %q: %+v, %v; its folder is %+v", name, below, got, err, want)
			}
			slices.Reverse(names)
		}
	}

	none := fstest.MapFS{"a/bagit.txt": {}, "b/bagit.txt": {}}
	report, err := bagit.Check(t.Context(), packed(t, "", none, []string{"a/bagit.txt", "b/bagit.txt"}), nil)
	if err != nil || len(report.Problems) != 1 || !strings.Contains(report.Problems[0].Reason, "not a bag") {
		t.Errorf("%+v, %v", report, err)
	}
	if err := (&bagit.Packed{}).Add("x", iotest.ErrReader(fs.ErrClosed)); !errors.Is(err, fs.ErrClosed) {
		t.Errorf("a file that cannot be read: %v", err)
	}
}
