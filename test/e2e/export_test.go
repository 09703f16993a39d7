package e2e

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	v1 "archivist/pkg/api/v1"
	"archivist/pkg/ingest"
)

// TestExport: the objects of a collection leave the archive by one command, and other people's tools read them: as a
// storage root of OCFL with all versions, and as bags in zip files.
func TestExport(t *testing.T) {
	begin(t)
	src := newSource(t)
	submit := func(path, id string) {
		t.Helper()
		b, err := client.Submit(t.Context(), v1.BatchRequest{Collection: "leaving",
			Identifiers: &v1.Identifiers{Local: []string{id}},
			Payload:     v1.Payload{URL: src.put(path, []byte("content of "+path)), Type: "file"}}, "")
		if err != nil {
			t.Fatal(err)
		}
		ends(t, ingest.JobID(b.ID, 1), "Completed", soon)
	}
	submit("/one ä.txt", "one")
	submit("/two.txt", "two")
	submit("/three.txt", "one") // the second version of the first

	at, err := command()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	export := func(as string) (all []struct{ Folder string }) {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), at, "object", "export", "-c", "leaving", "--as", as, "-o", as,
			"--json", "all")
		cmd.Dir, cmd.Env, cmd.Stderr = dir, append(os.Environ(), "ARCHIVIST_API="+out.APIURL), os.Stderr
		text, err := cmd.Output()
		if err == nil {
			err = json.Unmarshal(text, &all)
		}
		if err != nil || len(all) != 2 {
			t.Fatalf("%v: %s", err, text)
		}
		return all
	}

	export("ocfl")
	if n, err := stack.Validate(t.Context(), filepath.Join(dir, "ocfl")); n != 2 || err != nil {
		t.Errorf("ocfl-py finds %d valid objects: %v", n, err)
	}
	for _, one := range export("zip") {
		cmd := exec.CommandContext(t.Context(), at, "batch", "check-bag", one.Folder)
		cmd.Dir = dir
		if text, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%s: %v: %s", one.Folder, err, text)
		}
	}
}
