package inventorycache_test

import (
	"fmt"
	"reflect"
	"testing"

	"archivist/pkg/events/consumer"
	"archivist/pkg/events/envelope"
	"archivist/pkg/kernel/bucket"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/objects/aip"
	"archivist/pkg/objects/aip/aiptest"
	"archivist/pkg/objects/ocfl"
	"archivist/pkg/views/inventorycache"
)

const id = "ark:/99999/fk4tq65d6k"

// changed is a call because an object was changed.
func changed(id string) consumer.Batch {
	return consumer.Batch{Consumer: inventorycache.Name, Events: []consumer.Item{{Event: envelope.Event{
		ID: "e", Type: "object.modify", Subject: envelope.Ref{Type: "Object", ID: id}}}}}
}

func many(n int, content string) map[string]string {
	files := map[string]string{}
	for i := range n {
		files[fmt.Sprintf("%03d.txt", i)] = fmt.Sprint(content, i)
	}
	return files
}

// TestCache: once a change was handled, readers find every file without reading the inventory as a whole;
// before, and if the summary is damaged or missing, they read the inventory: what they get is never out of date.
func TestCache(t *testing.T) {
	root := aiptest.New(t)
	c := inventorycache.Cache{Root: root.Root, Derived: root.Derived, Least: 1000}
	key := ocfl.Prefix(id) + "inventory.json"
	system := aiptest.System("maps", "a local id", "", "")
	read := func(what string, head int, summary bool) {
		t.Helper()
		want, err := root.Head(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		before := root.Twin.Calls["GET object"]
		got, err := c.Head(t.Context(), id)
		gets := root.Twin.Calls["GET object"] - before
		if err != nil || got.Head != head || got.Digest != want.Digest || got.ETag() != want.ETag() ||
			!reflect.DeepEqual(got.Versions, want.Versions) {
			t.Fatalf("%s: %+v, %v; expected %+v", what, got, err, want)
		}
		if is := got.InventoryBytes() == 0; is != summary || gets > 2 {
			t.Errorf("%s: from the summary: %t, with %d requests", what, is, gets)
		}
		for _, path := range []string{"producer/007.txt", "system/mrt-owner.txt"} {
			at, err := aip.Head(root.Root, got).Content(t.Context(), path)
			expected, _ := aip.Head(root.Root, want).Content(t.Context(), path)
			if err != nil || at != expected {
				t.Errorf("%s: %s is at %s, %v; expected %s", what, path, at, err, expected)
			}
		}
		if !reflect.DeepEqual(got.Digests(head, "system/mrt-owner.txt"), want.Digests(head, "system/mrt-owner.txt")) {
			t.Errorf("%s: other digests", what)
		}
	}
	handle := func(id string) {
		t.Helper()
		for range 2 { // a repeat changes nothing
			if failed, err := c.Handle(t.Context(), changed(id)); err != nil || failed != nil {
				t.Fatal(failed, err)
			}
		}
	}
	root.Store(id, many(40, "one"), system)
	read("before the first event", 1, false)
	handle(id)
	read("a summary", 1, true)
	root.Store(id, many(50, "two"), system)
	read("before the second event", 2, false)
	handle(id)
	read("after the second event", 2, true)
	if err := c.Derived.Put(t.Context(), inventorycache.Key(id), []byte(`{"id": 7}`), bucket.Condition{}); err != nil {
		t.Fatal(err)
	}
	read("a damaged summary", 2, false)
	handle(id)
	if err := root.Bucket.Delete(t.Context(), key); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Head(t.Context(), id); !fault.Is(err, fault.NotFound) {
		t.Errorf("an object that is gone: %v", err)
	}
	handle(id)
	if _, err := c.Derived.Head(t.Context(), inventorycache.Key(id)); !fault.Is(err, fault.NotFound) {
		t.Errorf("its summary: %v", err)
	}
}

// TestSmallInventory: a small inventory has no summary.
func TestSmallInventory(t *testing.T) {
	root := aiptest.New(t)
	c := inventorycache.Cache{Root: root.Root, Derived: root.Derived, Least: inventorycache.Least}
	root.Store(id, many(8, "one"), nil)
	if failed, err := c.Handle(t.Context(), changed(id)); err != nil || failed != nil {
		t.Fatal(failed, err)
	}
	if _, err := c.Derived.Head(t.Context(), inventorycache.Key(id)); !fault.Is(err, fault.NotFound) {
		t.Errorf("its summary: %v", err)
	}
}
