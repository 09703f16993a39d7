package ocfl_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"archivist/pkg/kernel/bucket"
	"archivist/pkg/objects/aip/aiptest"
	"archivist/pkg/objects/ocfl"
)

// TestManifest: a manifest is read in pages of any size, with blanks or without, and each entry once.
func TestManifest(t *testing.T) {
	root := aiptest.New(t)
	const id = "ark:/99999/fk4x"
	files := map[string]string{}
	for n := range 20 {
		files[fmt.Sprint(n)] = fmt.Sprint("content ", n)
	}
	root.Store(id, files, aiptest.System("maps", "", "", ""))
	key := ocfl.Inventory(id, 0).Key
	text, _ := root.Twin.Object("storage/" + key)
	spaced := strings.NewReplacer(`,"`, " ,\n \"", `]}`, "] \n}", `":[`, `" : [`).Replace(string(text))
	var want []string
	for _, inventory := range []string{string(text), spaced} {
		if err := root.Bucket.Put(t.Context(), key, []byte(inventory), bucket.Condition{}); err != nil {
			t.Fatal(err)
		}
		for _, n := range []int{1000, 1, 2, 3, 7} {
			digests := read(t, root.Root, id, ocfl.Place{}, n)
			if want == nil {
				want = digests
			}
			if !slices.Equal(digests, want) || len(digests) < 20 {
				t.Errorf("pages of %d: %d entries, want %d", n, len(digests), len(want))
			}
		}
	}
}

// read reads a manifest in pages of n entries.
func read(t *testing.T, root ocfl.Root, id string, from ocfl.Place, n int) (digests []string) {
	t.Helper()
	for {
		all, err := root.Manifest(t.Context(), id, from, n)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range all {
			if len(e.Paths) != 1 {
				t.Errorf("%s has the paths %q", e.Digest, e.Paths)
			}
			digests, from = append(digests, e.Digest), e.Next
		}
		if len(all) < n {
			return digests
		}
	}
}

// TestManifestChanged: after a new version the entries behind the place are read, and no others.
func TestManifestChanged(t *testing.T) {
	root := aiptest.New(t)
	const id = "ark:/99999/fk4x"
	root.Store(id, map[string]string{"a": "1", "b": "2", "c": "3"}, aiptest.System("maps", "", "", ""))
	first, err := root.Manifest(t.Context(), id, ocfl.Place{}, 3)
	if err != nil {
		t.Fatal(err)
	}
	root.Store(id, map[string]string{"a": "4", "b": "5"}, aiptest.System("maps", "", "", ""))
	all := read(t, root.Root, id, ocfl.Place{}, 1000)
	at, _ := slices.BinarySearch(all, first[2].Digest)
	if got := read(t, root.Root, id, first[2].Next, 2); !slices.Equal(got, all[at+1:]) || len(got) == 0 {
		t.Errorf("%d entries are left of %d, want %d", len(got), len(all), len(all)-at-1)
	}
}

// TestManifestBroken: a manifest that breaks off is an error, and not a short one.
func TestManifestBroken(t *testing.T) {
	root := aiptest.New(t)
	const id = "ark:/99999/fk4x"
	root.Store(id, map[string]string{"a": "1", "b": "2"}, aiptest.System("maps", "", "", ""))
	key := ocfl.Inventory(id, 0).Key
	text, _ := root.Twin.Object("storage/" + key)
	first, err := root.Manifest(t.Context(), id, ocfl.Place{}, 1)
	if err != nil {
		t.Fatal(err)
	}
	end := first[0].Next.At
	for _, n := range []int64{0, 1, end - 1, end, end + 1, end + 3, end + 140} {
		if err := root.Bucket.Put(t.Context(), key, text[:n], bucket.Condition{}); err != nil {
			t.Fatal(err)
		}
		if all, err := root.Manifest(t.Context(), id, ocfl.Place{}, 1000); err == nil {
			t.Errorf("cut at %d: %d entries", n, len(all))
		}
		info, err := root.Bucket.Head(t.Context(), key)
		if err != nil {
			t.Fatal(err)
		}
		from := ocfl.Place{ETag: info.ETag, At: end, Digest: first[0].Digest}
		if all, err := root.Manifest(t.Context(), id, from, 1000); err == nil && n >= end {
			t.Errorf("cut at %d, continued at %d: %d entries", n, end, len(all))
		}
	}
}
