package ocfl

import (
	_ "embed"
	"encoding/json"
	"io"
	"reflect"
	"testing"
	"time"

	"archivist/pkg/kernel/bucket"
)

// earlier is an inventory as the first releases wrote it: without an attempt in the
// folder's name, and with other escapes.
//
//go:embed testdata/earlier.json
var earlier []byte

// TestEarlierInventory: an object that an earlier release stored gets a new version without
// a loss. Its job recognises its version by the content paths; a job whose version has the
// same message does not.
func TestEarlierInventory(t *testing.T) {
	f := open(t)
	if err := f.root.Bucket.Put(t.Context(), Prefix(id)+inventoryName, earlier, bucket.Condition{}); err != nil {
		t.Fatal(err)
	}
	var before inventory
	if err := json.Unmarshal(earlier, &before); err != nil {
		t.Fatal(err)
	}
	files := []File{f.file(t, "producer/a <b>", "one"), f.file(t, "system/job", "y")}
	prepare := func(job string, out io.Writer) Prepared {
		t.Helper()
		p, err := f.root.Prepare(t.Context(), Draft{ID: id, Job: job, Attempt: "2", Files: all(files),
			Version: Version{Created: time.UnixMilli(2000), Message: before.Versions["v1"].Message}}, out,
			func(Content) error { return nil })
		if err != nil {
			t.Fatal(err)
		}
		return p
	}

	if p := prepare("20261121-jobabc", io.Discard); !p.Written || p.Number != 1 {
		t.Errorf("the job of version 1 does not recognise it: %+v", p)
	}
	w := f.root.Work.Writer(t.Context(), "inventory", bucket.Condition{})
	if p := prepare("20261121-other", w); p.Written || p.Number != 2 || p.Contents != 1 {
		t.Errorf("another job's version is %+v, expected version 2 with one new content", p)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	text, _, err := f.root.Work.Read(t.Context(), "inventory")
	if err != nil {
		t.Fatal(err)
	}
	var after inventory
	if err := json.Unmarshal(text, &after); err != nil {
		t.Fatal(err)
	}
	if got, want := after.Versions["v1"], before.Versions["v1"]; !reflect.DeepEqual(got, want) {
		t.Errorf("version 1 is %+v, was %+v", got, want)
	}
	for digest, paths := range before.Manifest {
		if !reflect.DeepEqual(after.Manifest[digest], paths) {
			t.Errorf("the manifest has %q for %s, had %q", after.Manifest[digest], digest, paths)
		}
	}
}
