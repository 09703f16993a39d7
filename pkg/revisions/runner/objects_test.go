package runner

import (
	"errors"
	"io"
	"os"
	"testing"

	"archivist/pkg/kernel/bucket"
	"archivist/pkg/kernel/bucket/buckettest"
	"archivist/pkg/kernel/fault"
)

// TestObjects: a folder does what a bucket does.
func TestObjects(t *testing.T) {
	_, buckets := buckettest.Open(t, "work")
	folder := Folder(t.TempDir())
	for name, o := range map[string]Objects{"bucket": buckets[0], "folder": folder} {
		read := func(key, want string) {
			t.Helper()
			data, _, err := o.Read(t.Context(), key)
			if err != nil || string(data) != want {
				t.Errorf("%s: %s is %q, %v; want %q", name, key, data, err, want)
			}
		}
		put := func(key, text string, c bucket.Condition) error {
			return o.Put(t.Context(), key, []byte(text), c)
		}
		_, _, err := o.Open(t.Context(), "a/b")
		if !fault.Is(err, fault.NotFound) {
			t.Errorf("%s: a missing object: %v", name, err)
		}
		absent := bucket.Condition{Absent: true}
		if err := put("a/b", "one", absent); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if err := put("a/b", "two", absent); !fault.Is(err, fault.Stale) {
			t.Errorf("%s: an object that is there: %v", name, err)
		}
		read("a/b", "one")
		if err := put("a/b", "three", bucket.Condition{}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		read("a/b", "three")
		broken := errors.New("broken")
		err = o.Create(t.Context(), "a/c", bucket.Condition{}, func(w io.Writer) error {
			_, _ = io.WriteString(w, "half")
			return broken
		})
		if !errors.Is(err, broken) {
			t.Errorf("%s: a stream that breaks: %v", name, err)
		}
		if _, _, err := o.Read(t.Context(), "a/c"); !fault.Is(err, fault.NotFound) {
			t.Errorf("%s: half of an object is there: %v", name, err)
		}
	}
	if err := folder.Put(t.Context(), "../x", nil, bucket.Condition{}); !fault.Is(err, fault.Invalid) {
		t.Errorf("a key that leads out: %v", err)
	}
	if left, err := os.ReadDir(string(folder)); err != nil || len(left) != 1 {
		t.Errorf("the folder has %v, %v", left, err)
	}
}
