package api_test

import (
	"errors"
	"slices"
	"testing"

	v1 "archivist/pkg/api/v1"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/objects/inventory"
	"archivist/pkg/objects/ocfl"
)

// TestPlaces: an object is where its folder in the storage says, with a folder for each version.
// Without a copy there is one place.
func TestPlaces(t *testing.T) {
	a, client, root := kept(t)
	a.Replica = "second"
	const ark = "ark:/99999/fk4x"
	all, err := client.Places(t.Context(), ark)
	if err != nil || len(all) != 1 || all[0].In != v1.InStorage || all[0].Bucket != root.Root.Bucket.Name ||
		all[0].Key != ocfl.Prefix(ark) || len(all[0].Versions) != 1 || all[0].Versions[0].Key != all[0].Key+"v1/" {
		t.Fatalf("%+v, %v", all, err)
	}
	if _, err := root.Root.Bucket.Head(t.Context(), all[0].Versions[0].Key+"inventory.json"); err != nil {
		t.Errorf("nothing is in the folder of the version: %v", err)
	}
	if _, err := client.Places(t.Context(), "ark:/99999/none"); !fault.Is(err, fault.NotFound) {
		t.Errorf("of no object: %v", err)
	}
}

// TestPlacesOfManyVersions: places come in pages of 500 versions, each version once and in order, and
// the client joins them. A cursor of something else is refused.
func TestPlacesOfManyVersions(t *testing.T) {
	a, client, _ := kept(t)
	const ark = "ark:/99999/fk4x"
	for head, sizes := range map[int][]int{500: {500}, 1203: {500, 500, 203}} {
		o, err := a.Inventory.Object(t.Context(), ark)
		if err != nil {
			t.Fatal(err)
		}
		o.HeadOf = head
		tx := a.Queue.Table.Begin(a.Queue.NewID())
		tx.Save(o)
		if err := tx.Commit(t.Context()); err != nil {
			t.Fatal(err)
		}
		var is []int
		for cursor := ""; ; {
			page, err := client.PlacePage(t.Context(), ark, cursor)
			if err != nil || len(page.Items) != 1 {
				t.Fatalf("%+v, %v", page, err)
			}
			is = append(is, len(page.Items[0].Versions))
			cursor = page.Cursor
			if cursor == "" {
				break
			}
		}
		all, err := client.Places(t.Context(), ark)
		if err != nil || !slices.Equal(is, sizes) || len(all) != 1 || len(all[0].Versions) != head {
			t.Fatalf("pages of %v, %d places, %v", is, len(all), err)
		}
		for i, v := range all[0].Versions {
			if v.Version != i+1 {
				t.Fatalf("version %d is at %d", v.Version, i)
			}
		}
	}
	for _, cursor := range []string{"x", "-1"} {
		if _, err := client.PlacePage(t.Context(), ark, cursor); !fault.Is(err, fault.Invalid) {
			t.Errorf("cursor %q: %v", cursor, err)
		}
	}
}

// TestMade: a version says whether its zip file is there, and whether it is small enough for one.
func TestMade(t *testing.T) {
	const ark = "ark:/99999/fk4x"
	for files, zippable := range map[int]bool{3: true, 301: false} {
		a, client, _ := kept(t)
		if _, err := client.Made(t.Context(), ark, 1); !fault.Is(err, fault.NotFound) {
			t.Errorf("of no version: %v", err)
		}
		o, err := a.Inventory.Object(t.Context(), ark)
		if err != nil {
			t.Fatal(err)
		}
		put, err := a.Inventory.Prepare(t.Context(), inventory.Record{Object: *o,
			Versions: []inventory.Version{{Number: 1, Files: files, Digest: o.Digest}}}, 2000)
		if err != nil {
			t.Fatal(err)
		}
		tx := a.Queue.Table.Begin(a.Queue.NewID())
		if err := errors.Join(put(tx), tx.Commit(t.Context())); err != nil {
			t.Fatal(err)
		}

		want := v1.VersionMade{Version: 1, Zippable: zippable}
		for range 2 {
			if got, err := client.Made(t.Context(), ark, 1); err != nil || got != want {
				t.Errorf("%d files: %+v, %v", files, got, err)
			}
			_, err := client.MakeZip(t.Context(), ark, 1)
			if (err == nil) != zippable {
				t.Errorf("%d files: %v", files, err)
			}
			want.Zip = zippable
		}
	}
}
