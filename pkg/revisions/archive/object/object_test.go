package object

import (
	"net/http"
	"strings"
	"testing"

	"archivist/pkg/kernel/bucket"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/objects/aip/aiptest"
	"archivist/pkg/objects/ocfl"
	"archivist/pkg/revisions/archive"
	"archivist/pkg/revisions/archive/archivetest"
)

const id = "ark:/99999/fk4tq65d6k"

func store(t *testing.T, root *aiptest.Root, history []archivetest.Revision) *Source {
	t.Helper()
	for _, r := range history {
		files := map[string]string{}
		for path, f := range r.Files {
			files[path] = f.Content
		}
		root.Message, root.User = r.Message, &ocfl.User{Name: r.Author, Address: "mailto:a@example.org"}
		root.Store(id, files, aiptest.System("maps", "", "who: x\n", ""))
	}
	l := archive.Location{Kind: archive.Object, ARK: id}
	if err := l.Check(false); err != nil {
		t.Fatal(err)
	}
	return Open(l, root.Root, archive.Limits{})
}

// TestSource: what every source does.
func TestSource(t *testing.T) {
	archivetest.Run(t, archivetest.Kind{Tokens: true,
		Make: func(t *testing.T, history []archivetest.Revision) archive.Source {
			return store(t, aiptest.New(t), history)
		}})
}

func one(content string) archivetest.Revision {
	return archivetest.Revision{Author: "Ada", Files: map[string]archivetest.File{
		"a": archivetest.Text(content), "b": archivetest.Text("same"), "c": archivetest.Text("same")}}
}

// TestGrows: a version that is stored later is found; what was said of an earlier one stays true.
func TestGrows(t *testing.T) {
	root := aiptest.New(t)
	s := store(t, root, nil)
	if n, err := s.Head(t.Context()); err != nil || n != 0 {
		t.Errorf("the head of no object is %d, %v", n, err)
	}
	if _, err := s.Revision(t.Context(), 1); !fault.Is(err, fault.NotFound) {
		t.Errorf("a version of no object: %v", err)
	}
	store(t, root, []archivetest.Revision{one("1")})
	first, err := s.Revision(t.Context(), 1)
	if err != nil {
		t.Fatal(err)
	}
	store(t, root, []archivetest.Revision{one("2")})
	second, err := s.Revision(t.Context(), 2)
	if err != nil || second.Transaction == first.Transaction {
		t.Errorf("%+v, %v", second, err)
	}
	again, err := store(t, root, nil).Revision(t.Context(), 1)
	if err != nil || again != first || first.Author != "Ada <a@example.org>" {
		t.Errorf("%+v, %v; want %+v", again, err, first)
	}
}

// TestNoDownload: what has changed is found without reading a file.
func TestNoDownload(t *testing.T) {
	root := aiptest.New(t)
	s := store(t, root, []archivetest.Revision{one("1"), one("2")})
	var read []string
	root.Twin.Before = func(op, name string) int {
		if strings.Contains(name, "/content/") {
			read = append(read, name)
		}
		return 0
	}
	paths, err := s.Changed(t.Context(), 1, 2)
	if err != nil || strings.Join(paths, " ") != "a" {
		t.Errorf("%v, %v", paths, err)
	}
	for _, name := range read {
		if !strings.Contains(name, "/system/") {
			t.Errorf("%s was read", name)
		}
	}
}

// TestDamaged: content that is not what it should be, or not there, is refused; a store that is busy is not damaged.
func TestDamaged(t *testing.T) {
	root := aiptest.New(t)
	s := store(t, root, []archivetest.Revision{one("1")})
	var key string
	for _, name := range root.Twin.Names("storage/") {
		if strings.Contains(name, "/content/") && strings.HasSuffix(name, "/producer/a") {
			key = strings.TrimPrefix(name, "storage/")
		}
	}
	root.Twin.Before = func(op, name string) int {
		if strings.HasSuffix(name, key) {
			return http.StatusServiceUnavailable
		}
		return 0
	}
	if err := s.Checkout(t.Context(), 1, t.TempDir()); !fault.Is(err, fault.Unavailable) {
		t.Errorf("a busy store: %v", err)
	}
	root.Twin.Before = nil
	if err := root.Bucket.Put(t.Context(), key, []byte("x"), bucket.Condition{}); err != nil {
		t.Fatal(err)
	}
	err := s.Checkout(t.Context(), 1, t.TempDir())
	if !fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), "a has the sha512") {
		t.Errorf("other content: %v", err)
	}
	if err := root.Bucket.Delete(t.Context(), key); err != nil {
		t.Fatal(err)
	}
	err = s.Checkout(t.Context(), 1, t.TempDir())
	if !fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), "is damaged") {
		t.Errorf("no content: %v", err)
	}
}

// TestLimits: an object that is too large for a checkout is refused.
func TestLimits(t *testing.T) {
	s := store(t, aiptest.New(t), []archivetest.Revision{one(strings.Repeat("x", 100))})
	for want, limits := range map[string]archive.Limits{
		"more than 2 files": {Files: 2}, "more than 99 bytes": {Bytes: 99}} {
		s := Open(s.location, s.root, limits)
		err := s.Checkout(t.Context(), 1, t.TempDir())
		if !fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v", limits, err)
		}
	}
}
