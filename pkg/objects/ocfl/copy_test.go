package ocfl

import (
	"testing"

	"archivist/pkg/kernel/fault"
)

// TestSmallFile: a file with its content in memory is stored by one request. It is not
// stored if its checksum does not match.
func TestSmallFile(t *testing.T) {
	f := open(t)
	file := f.file(t, "system/a", "one")
	file.Source, file.Data = "", []byte("one")
	c := Content{File: file, To: "v1/content/job/system/a"}
	calls := f.twin.Calls["PUT object"]
	err := f.root.Copy(t.Context(), id, c, always)
	if err != nil || f.twin.Calls["PUT object"] != calls+1 || f.twin.Calls["HEAD object"] != 0 {
		t.Errorf("%v, requests: %v", err, f.twin.Calls)
	}
	if got := f.read(t, c.To); string(got) != "one" {
		t.Errorf("%q was stored", got)
	}
	c.To, c.Data = "v1/content/job/system/b", []byte("eno")
	if err := f.root.Copy(t.Context(), id, c, always); err == nil {
		t.Error("another content than the checksum's was stored")
	}
	if _, err := f.root.Bucket.Head(t.Context(), Prefix(id)+c.To); !fault.Is(err, fault.NotFound) {
		t.Errorf("another content than the checksum's is there: %v", err)
	}
}
