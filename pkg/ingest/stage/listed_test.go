package stage_test

import (
	"crypto/md5"
	"crypto/sha256"
	"fmt"
	"hash/adler32"
	"maps"
	"strings"
	"testing"

	"archivist/pkg/ingest"
)

// TestInnerManifest: the files of a container are those of the manifest among them.
func TestInnerManifest(t *testing.T) {
	d := newDeposits(t)
	list := func(rows ...string) string { return manifest("mrt-ingest-manifest", fileFields, rows...) }
	a, b := "Dear Anna", "Dear Bert"
	good := []string{
		fmt.Sprintf(" | sha256 | %x | %d | | letters/a.txt |", sha256.Sum256([]byte(a)), len(a)),
		fmt.Sprintf("https://example.org/b | md5 | %x | | | letters/b.txt |", md5.Sum([]byte(b))),
	}
	files := map[string]string{"letters/a.txt": a, "letters/b.txt": b, "mrt-manifest.txt": list(good...)}
	d.holds(d.send("a.zip", zipped(files)), files)
	d.holds(d.send("a.tgz", tarred(files)), files)
	adler := maps.Clone(files)
	adler["mrt-manifest.txt"] = list(good[0], fmt.Sprintf(" | adler32 | %08x | | | letters/b.txt |",
		adler32.Checksum([]byte(b))))
	d.holds(d.send("b.zip", zipped(adler)), adler)
	d.Refused(d.send("b.tgz", tarred(adler)).ID, "its adler32 is not computed in a tar file")

	for says, change := range map[string]func(map[string]string){
		"letters/b.txt: its md5 is":         func(f map[string]string) { f["letters/b.txt"] = "changed" },
		"letters/a.txt: it has 3 bytes":     func(f map[string]string) { f["letters/a.txt"] = "abc" },
		"more.txt: it is not listed":        func(f map[string]string) { f["more.txt"] = "" },
		"it is listed, but not there":       func(f map[string]string) { delete(f, "letters/b.txt") },
		"mrt-manifest.txt: the manifest is": func(f map[string]string) { f["mrt-manifest.txt"] = "a text" },
	} {
		wrong := maps.Clone(files)
		change(wrong)
		j := d.send(fmt.Sprintf("%d.zip", len(d.files)), zipped(wrong))
		if j.State != ingest.Failed || !j.NotRecoverable || !strings.Contains(j.Message, says) {
			t.Errorf("%s: %s; expected %q", j.State, j.Message, says)
		}
	}
}
