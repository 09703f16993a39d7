package ocfl

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"io"
	"net/http"
	"reflect"
	"testing"
	"time"

	"archivist/pkg/kernel/bucket"
	"archivist/pkg/kernel/fault"
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

// TestFixityOfOthers: the digests of an algorithm that is not ours, in an object that other software stored, are kept.
func TestFixityOfOthers(t *testing.T) {
	f := open(t)
	with := bytes.Replace(earlier, []byte(`"fixity":{`), []byte(`"fixity":{"blake2b-512":{"00ff":["v1/content/x"]},`), 1)
	if err := f.root.Bucket.Put(t.Context(), Prefix(id)+inventoryName, with, bucket.Condition{}); err != nil {
		t.Fatal(err)
	}
	var text bytes.Buffer
	_, err := f.root.Prepare(t.Context(), Draft{ID: id, Job: "20261121-other", Attempt: "2",
		Files: all([]File{f.file(t, "system/job", "y")}), Version: Version{Created: time.UnixMilli(2000)}}, &text,
		func(Content) error { return nil })
	if err != nil {
		t.Fatal(err)
	}
	var after struct {
		Fixity map[string]map[string][]string
	}
	if err := json.Unmarshal(text.Bytes(), &after); err != nil {
		t.Fatal(err)
	}
	if got := after.Fixity["blake2b-512"]["00ff"]; len(got) != 1 || len(after.Fixity) != 4 {
		t.Errorf("the block has %q of %d algorithms", got, len(after.Fixity))
	}
}

// TestUnreadableObject: an object is taken for one without a version only if its first inventory is known to be
// missing.
func TestUnreadableObject(t *testing.T) {
	f := open(t)
	f.twin.Before = func(op, key string) int {
		if op == "HEAD object" {
			return http.StatusServiceUnavailable
		}
		return 0
	}
	if _, err := f.root.At(t.Context(), Declaration(id).Key); err == nil || fault.Is(err, fault.NotFound) {
		t.Errorf("%v", err)
	}
}
