package manifest

import (
	"bytes"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"archivist/pkg/events/consumer"
	"archivist/pkg/events/envelope"
	"archivist/pkg/formats/checkm"
	"archivist/pkg/kernel/bucket"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/objects/aip"
	"archivist/pkg/objects/aip/aiptest"
	"archivist/pkg/objects/ocfl"
)

const id = "ark:/99999/fk4x"

func updater(root *aiptest.Root) Updater {
	return Updater{Root: root.Root, Derived: root.Derived, API: "https://api.example.org/prod/"}
}

func changed(id string) consumer.Item {
	return consumer.Item{Event: envelope.Event{ID: "e-" + id, Subject: envelope.Ref{Type: "Object", ID: id}}}
}

func batch(ids ...string) (b consumer.Batch) {
	for _, id := range ids {
		b.Events = append(b.Events, changed(id))
	}
	return b
}

func handle(t *testing.T, u Updater, b consumer.Batch) {
	t.Helper()
	if failures, err := u.Handle(t.Context(), b); err != nil || len(failures) > 0 {
		t.Fatal(failures, err)
	}
}

func store(root *aiptest.Root, content string) *ocfl.Stored {
	return root.Store(id, map[string]string{"a | b.txt": content, "ä.tif": "2"}, aiptest.System("maps", "x", "", ""))
}

// check reads the manifest with our own reader, and compares it with the stored version.
func check(t *testing.T, root *aiptest.Root, want *ocfl.Stored) {
	t.Helper()
	data, _, err := root.Derived.Read(t.Context(), Key(id))
	if err != nil {
		t.Fatal(err)
	}
	m, rows, problems, err := checkm.ReadAll(bytes.NewReader(data), checkm.Options{Stored: true, RequireDigest: true})
	if err != nil || len(problems) > 0 || m.Kind != checkm.Object {
		t.Fatalf("%v %v: %s", err, problems, data)
	}
	if says := fmt.Sprintf(comment, id, want.Head, want.Digest); !strings.Contains(string(data), says) {
		t.Errorf("%q is not in the manifest:\n%s", says, data)
	}
	v := aip.Head(root.Root, want)
	files, _, err := v.Files(t.Context(), 0, 100)
	if err != nil || len(rows) != len(files)+len(want.SystemFiles(want.Head)) {
		t.Fatalf("%d rows, %d files, %v", len(rows), len(files), err)
	}
	for _, r := range rows {
		key, err := v.Content(t.Context(), r.Name)
		if err != nil {
			t.Fatal(err)
		}
		content, _, err := root.Bucket.Read(t.Context(), key)
		if err != nil {
			t.Fatal(err)
		}
		sum := aiptest.File("", string(content)).Digests[r.Algorithm]
		if r.Digest != sum || r.Size != int64(len(content)) {
			t.Errorf("%s is listed with %d bytes, %s; stored are %d, %s", r.Name, r.Size, r.Digest, len(content), sum)
		}
	}
	const url = "https://api.example.org/prod/v1/objects/99999/fk4x/versions/%d/content?path=producer%%2Fa+%%7C+b.txt"
	if got := fmt.Sprintf(url, want.Head); rows[0].URL != got {
		t.Errorf("the URL is %s, want %s", rows[0].URL, got)
	}
}

// TestUpdate: the manifest lists the newest version; the same event again writes nothing.
func TestUpdate(t *testing.T) {
	root := aiptest.New(t)
	u := updater(root)
	first := store(root, "1")
	handle(t, u, batch(id))
	check(t, root, first)
	second := store(root, "22")
	handle(t, u, batch(id, id))
	check(t, root, second)
	puts := root.Twin.Calls["PUT object"]
	handle(t, u, batch(id))
	if again := root.Twin.Calls["PUT object"]; again != puts {
		t.Errorf("the same event again wrote %d objects", again-puts)
	}
}

// TestOlder: a rebuild that read an older version and is late does not replace a newer manifest.
func TestOlder(t *testing.T) {
	root := aiptest.New(t)
	store(root, "1")
	var second *ocfl.Stored
	root.Twin.Before = func(op, key string) int {
		if op == "PUT object" && strings.Contains(key, "manifests/") && second == nil {
			root.Twin.Before = nil
			second = store(root, "22")
			handle(t, updater(root), batch(id)) // a later event is handled by another worker
		}
		return 0
	}
	handle(t, updater(root), batch(id))
	if second == nil {
		t.Fatal("the other worker did not run")
	}
	check(t, root, second)
}

// TestDamaged: a manifest of which nobody knows the version is replaced.
func TestDamaged(t *testing.T) {
	root := aiptest.New(t)
	stored := store(root, "1")
	if err := root.Derived.Put(t.Context(), Key(id), []byte("nothing"), bucket.Condition{}); err != nil {
		t.Fatal(err)
	}
	handle(t, updater(root), batch(id))
	check(t, root, stored)
}

// TestCrash: a call that dies at any request is repeated, and the manifest is right.
func TestCrash(t *testing.T) {
	root := aiptest.New(t)
	stored := store(root, "1")
	for at := 0; ; at++ {
		calls := 0
		root.Twin.Before = func(string, string) int {
			calls++
			if calls > at {
				return http.StatusForbidden
			}
			return 0
		}
		_, err := updater(root).Handle(t.Context(), batch(id))
		root.Twin.Before = nil
		if err != nil && !fault.Is(err, fault.Unavailable) {
			t.Errorf("call %d: %v is no Unavailable", at, err)
		}
		handle(t, updater(root), batch(id))
		check(t, root, stored)
		if err == nil {
			if at < 5 {
				t.Errorf("only %d crashes were tried", at)
			}
			return
		}
		if err := root.Derived.Delete(t.Context(), Key(id)); err != nil {
			t.Fatal(err)
		}
	}
}

// TestFailure: an object that is not stored is a failure of its own, with its reason.
func TestFailure(t *testing.T) {
	root := aiptest.New(t)
	stored := store(root, "1")
	failures, err := updater(root).Handle(t.Context(), batch("ark:/99999/none", id, "ark:/99999/none"))
	if err != nil || len(failures) != 1 || failures[0].ID != "e-ark:/99999/none" {
		t.Errorf("%v, %v", failures, err)
	}
	check(t, root, stored)
}

// TestResolver: without an address of the API, URLs are those of the resolver of ARKs.
func TestResolver(t *testing.T) {
	root := aiptest.New(t)
	got := Updater{}.url(aip.Head(root.Root, store(root, "1")), "producer/a | b.txt")
	if got != "https://n2t.net/ark:/99999/fk4x/v1/producer/a%20%7C%20b.txt" {
		t.Error(got)
	}
}
