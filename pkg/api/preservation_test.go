package api_test

import (
	"context"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	v1 "archivist/pkg/api/v1"
	"archivist/pkg/kernel/bucket"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/objects/fixity"
	"archivist/pkg/objects/formats"
	"archivist/pkg/objects/ocfl"
)

// TestFixity: an object has its last check, with what is wrong; so have lists of objects.
func TestFixity(t *testing.T) {
	a, client, root := kept(t)
	const ark = "ark:/99999/fk4x"
	if _, err := client.Fixity(t.Context(), ark, v1.InStorage); !fault.Is(err, fault.NotFound) ||
		!strings.Contains(err.Error(), "not checked yet") {
		t.Errorf("before the first check: %v", err)
	}
	if o, err := client.Object(t.Context(), ark); err != nil || o.FixityChecked != "" || o.FixityOutcome != "" {
		t.Errorf("before the first check: %+v, %v", o, err)
	}
	now := time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
	c := &fixity.Checker{Table: a.Queue.Table, NewID: a.Queue.NewID, Now: func() time.Time { return now },
		At: fixity.InStorage, Root: root.Root, Limits: fixity.DefaultLimits}
	check := func() {
		t.Helper()
		if _, err := c.Check(t.Context(), ark, now.Add(time.Minute)); err != nil {
			t.Fatal(err)
		}
	}
	check()
	const when = "2030-01-02T03:04:05Z"
	f, err := client.Fixity(t.Context(), ark, v1.InStorage)
	if err != nil || f.Outcome != fixity.OK || f.Checked != when || f.Files < 8 || len(f.Problems) != 0 {
		t.Errorf("got %+v, %v", f, err)
	}
	key := ocfl.Inventory(ark, 1).Key
	if err := root.Bucket.Put(t.Context(), key, []byte("{}"), bucket.Condition{}); err != nil {
		t.Fatal(err)
	}
	check()
	f, err = client.Fixity(t.Context(), ark, v1.InStorage)
	if err != nil || f.Outcome != fixity.Damaged || len(f.Problems) != 1 || f.Problems[0].Key != key ||
		len(f.Problems[0].Actual) != 128 {
		t.Errorf("got %+v, %v", f, err)
	}
	o, err := client.Object(t.Context(), ark)
	if err != nil || o.FixityChecked != when || o.FixityOutcome != fixity.Damaged {
		t.Errorf("the object is %+v, %v", o, err)
	}
	all, err := client.Objects(t.Context(), v1.Filter{Collection: "maps"})
	if err != nil || len(all) != 1 || all[0].FixityChecked != when {
		t.Errorf("the list is %+v, %v", all, err)
	}
}

// TestFormats: the formats of a version are listed once they are identified.
func TestFormats(t *testing.T) {
	a, client, root := kept(t)
	const ark = "ark:/99999/fk4x"
	if _, err := client.Formats(t.Context(), ark, 1); !fault.Is(err, fault.NotFound) {
		t.Errorf("before they are identified: %v", err)
	}
	m := &formats.Maker{Store: formats.Store{Table: a.Queue.Table, Derived: root.Derived}, NewID: a.Queue.NewID,
		Now: func() time.Time { return time.UnixMilli(0) }, Root: root.Root, Signatures: "V1",
		Identify: func(_ context.Context, name string, _ io.ReaderAt, _ int64) ([]formats.Match, error) {
			return []formats.Match{{ID: "fmt/1", Name: name}}, nil
		}}
	if _, err := m.Version(t.Context(), ark, 1, time.UnixMilli(1000)); err != nil {
		t.Fatal(err)
	}
	all, err := client.Formats(t.Context(), ark, 1)
	if err != nil || len(all) != 3 {
		t.Fatalf("got %+v, %v", all, err)
	}
	for i, path := range []string{"producer/a.png", "producer/b.txt", "producer/c.jpg"} {
		want := fmt.Sprint(path, []v1.Format{{ID: "fmt/1", Name: path}})
		if got := fmt.Sprint(all[i].Path, all[i].Formats); got != want {
			t.Errorf("file %d is %s, want %s", i, got, want)
		}
	}
}
