package ocfl_test

import (
	"fmt"
	"slices"
	"testing"

	"archivist/pkg/kernel/bucket"
	"archivist/pkg/kernel/bucket/buckettest"
	"archivist/pkg/objects/ocfl"
)

// TestObjects: every object is listed once, up to a limit, and the keys of an object of
// many files are skipped.
func TestObjects(t *testing.T) {
	twin, buckets := buckettest.Open(t, "storage", "work")
	lists := 0
	twin.Before = func(op, _ string) int {
		if op == "List" {
			lists++
		}
		return 0
	}
	root := ocfl.Root{Bucket: buckets[0], Work: buckets[1]}
	put := func(key string) {
		if err := root.Bucket.Put(t.Context(), key, nil, bucket.Condition{}); err != nil {
			t.Fatal(err)
		}
	}
	const declaration = "0=ocfl_object_1.1"
	folders := []string{"0a0/111/222/small/", "7ff/000/000/large/", "800/000/000/next/", "fff/fff/fff/last/"}
	for _, f := range folders {
		put(f + declaration)
		put(f + "v1/inventory.json")
	}
	for n := range 3100 {
		put(fmt.Sprintf("%sv1/content/job.1/producer/%05d", folders[1], n))
		put(fmt.Sprintf("%sx%05d", folders[1], n)) // keys that do not belong there
	}
	all := func(cursor, to string) (found []string) {
		for first := true; first || cursor != ""; first = false {
			keys, next, err := root.Objects(t.Context(), cursor, to)
			if err != nil {
				t.Fatal(err)
			}
			for _, key := range keys {
				found = append(found, key[:len(key)-len(declaration)])
			}
			cursor = next
		}
		return found
	}
	if got := all("", ""); !slices.Equal(got, folders) || lists != 2 {
		t.Errorf("found %q in %d requests", got, lists)
	}
	if got := all("7", "8"); !slices.Equal(got, folders[1:2]) {
		t.Errorf("from 7 to 8 there is %q", got)
	}
	if got := all("", folders[1]+declaration); !slices.Equal(got, folders[:1]) {
		t.Errorf("before the declaration of %s there is %q", folders[1], got)
	}
	if got := all("8", ""); !slices.Equal(got, folders[2:]) {
		t.Errorf("from 8 on there is %q", got)
	}
}
