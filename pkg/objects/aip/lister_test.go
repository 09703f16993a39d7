package aip_test

import (
	"errors"
	"fmt"
	"testing"

	"archivist/pkg/events/envelope"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/objects/aip"
	"archivist/pkg/objects/aip/aiptest"
	"archivist/pkg/objects/inventory"
)

// TestLister: a list is continued from the place behind any file, with one request; each version has its
// own list, also one that is stored later.
func TestLister(t *testing.T) {
	root := aiptest.New(t)
	producer := map[string]string{}
	for n := range 30 {
		producer[fmt.Sprintf("%02d.txt", n)] = fmt.Sprint(n)
	}
	root.Store(id, producer, nil)
	l := &aip.Lister{Root: root.Root}
	before := root.Twin.Calls["GET object"]
	version := func(n int) envelope.Event {
		return envelope.Event{Subject: envelope.Ref{Type: "Version", ID: inventory.VersionID(id, n)}}
	}
	enough := errors.New("enough")
	count := 0
	for at, more := int64(0), true; more; {
		more = false
		err := l.Files(t.Context(), version(1), at, func(f envelope.File, next int64) error {
			if more {
				return enough
			}
			if f.Path != fmt.Sprintf("producer/%02d.txt", count) || f.Size == 0 || f.Digests["sha512"] == "" {
				t.Errorf("file %d is %+v", count, f)
			}
			count, at, more = count+1, next, true
			return nil
		})
		more = errors.Is(err, enough)
		if err != nil && !more {
			t.Fatal(err)
		}
	}
	if gets := root.Twin.Calls["GET object"] - before; count != 30 || gets > 1+30 {
		t.Errorf("%d files with %d requests", count, gets)
	}
	root.Store(id, map[string]string{"new.txt": "n"}, nil)
	var paths []string
	err := l.Files(t.Context(), version(2), 0, func(f envelope.File, _ int64) error {
		paths = append(paths, f.Path)
		return nil
	})
	if fmt.Sprint(paths) != "[producer/new.txt]" || err != nil {
		t.Errorf("the second version has %v, %v", paths, err)
	}
	if err := l.Files(t.Context(), version(3), 0, nil); !fault.Is(err, fault.NotFound) {
		t.Errorf("a version that is not stored: %v", err)
	}
	object := envelope.Event{Subject: envelope.Ref{Type: "Object", ID: id}}
	if err := l.Files(t.Context(), object, 0, nil); !fault.Is(err, fault.Invalid) {
		t.Errorf("an object: %v", err)
	}
}
