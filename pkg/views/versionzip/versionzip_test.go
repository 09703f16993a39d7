package versionzip

import (
	"archive/zip"
	"bytes"
	"io/fs"
	"strings"
	"testing"

	"archivist/pkg/formats/bagit"
	"archivist/pkg/kernel/bucket"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/objects/aip"
	"archivist/pkg/objects/aip/aiptest"
	"archivist/pkg/objects/inventory"
)

const id = "ark:/99999/fk4x"

// world is an object of two versions, of which the second has another b.txt.
func world(t *testing.T) (*aiptest.Root, aip.Version, *inventory.Object, inventory.Version) {
	root := aiptest.New(t)
	system := aiptest.System("maps", "map-1", "who: Blunt\n", "")
	root.Store(id, map[string]string{"a.txt": "one", "b.txt": "two"}, system)
	stored := root.Store(id, map[string]string{"a.txt": "one", "ä b.txt": strings.Repeat("3", 100_000)}, system)
	o := &inventory.Object{ARK: id, Collection: "maps", LocalIDs: []string{"map-1"}, HeadOf: 2}
	row := inventory.Version{ARK: id, Number: 2, Created: 2000, Files: 2, Bytes: 100_003, Digest: stored.Digest}
	return root, aip.Of(root.Root, stored, 2), o, row
}

// TestMake: the zip file is a bag with each file of the version and no other, and is made once.
func TestMake(t *testing.T) {
	root, v, o, row := world(t)
	if err := Make(t.Context(), root.Derived, v, o, row); err != nil {
		t.Fatal(err)
	}
	data, info, err := root.Derived.Read(t.Context(), Key(o, row))
	if err != nil {
		t.Fatal(err)
	}

	r, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	bag, err := fs.Sub(r, "ark_99999_fk4x")
	if err != nil {
		t.Fatal(err)
	}
	report, err := bagit.Check(t.Context(), bag, nil)
	if err != nil || len(report.Problems) > 0 || report.Files != 2+6 { // five system files, and the list of files
		t.Fatalf("%+v, %v", report, err)
	}
	for name, want := range map[string]string{"producer/a.txt": "one", "producer/ä b.txt": strings.Repeat("3", 100_000),
		"system/mrt-erc.txt": "who: Blunt\n"} {
		if got, err := fs.ReadFile(bag, "data/"+name); err != nil || string(got) != want {
			t.Errorf("%s: %.20q, %v", name, got, err)
		}
	}
	if _, err := fs.Stat(bag, "data/producer/b.txt"); err == nil {
		t.Error("a file of another version is in it")
	}

	if err := Make(t.Context(), root.Derived, v, o, row); err != nil {
		t.Error(err)
	}
	if again, err := root.Derived.Head(t.Context(), Key(o, row)); err != nil || again.ETag != info.ETag {
		t.Errorf("it was made again: %v, %v", again, err)
	}
	if other := (inventory.Version{ARK: id, Number: 1, Digest: row.Digest}); Key(o, other) == Key(o, row) {
		t.Error("two versions have one key")
	}
}

// TestDamage: of a version with a file that is missing or another one, there is no zip file, and the file is named.
func TestDamage(t *testing.T) {
	root, v, o, row := world(t)
	key, err := v.Content(t.Context(), "producer/a.txt")
	if err != nil {
		t.Fatal(err)
	}
	for name, damage := range map[string]func() error{
		"it is another one": func() error {
			return root.Root.Bucket.Put(t.Context(), key, []byte("One"), bucket.Condition{})
		},
		"it is shorter": func() error {
			return root.Root.Bucket.Put(t.Context(), key, []byte("o"), bucket.Condition{})
		},
		"it is missing": func() error { return root.Root.Bucket.Delete(t.Context(), key) },
	} {
		if err := damage(); err != nil {
			t.Fatal(err)
		}
		err := Make(t.Context(), root.Derived, v, o, row)
		if !fault.Is(err, fault.Conflict) || !strings.Contains(err.Error(), "producer/a.txt") {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := root.Derived.Head(t.Context(), Key(o, row)); !fault.Is(err, fault.NotFound) {
			t.Errorf("%s: there is a zip file: %v", name, err)
		}
	}
}

// TestLimits: what is larger is refused with the numbers, and the command that has no limit.
func TestLimits(t *testing.T) {
	l := Limits{Files: 2, Bytes: 10}
	for _, c := range []struct {
		files int
		bytes int64
		ok    bool
	}{{2, 10, true}, {3, 10, false}, {2, 11, false}} {
		err := l.Check(inventory.Version{ARK: id, Number: 4, Files: c.files, Bytes: c.bytes})
		if (err == nil) != c.ok {
			t.Errorf("%d files, %d bytes: %v", c.files, c.bytes, err)
		}
		if err != nil && (!fault.Is(err, fault.Conflict) ||
			!strings.Contains(err.Error(), "archivist object export ark:/99999/fk4x --number 4 --as zip")) {
			t.Error(err)
		}
	}
}
