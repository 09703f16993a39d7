package stage_test

import (
	"slices"
	"strings"
	"testing"

	"archivist/pkg/formats/checkm"
	"archivist/pkg/kernel/fetch"
)

// TestNotTaken: a submission of content that is preserved already makes no version; what it says otherwise of its
// files is named.
func TestNotTaken(t *testing.T) {
	p := newPackages(t)
	files := map[string]string{"a.txt": "a", "b.txt": "b", "c.txt": "c"}
	p.Ended(p.pack(files), 1, false)
	if j := p.Ended(p.pack(files), 1, true); len(j.FileWarnings) > 0 {
		t.Errorf("the same again: %q", j.FileWarnings)
	}
	p.row = func(r *checkm.Row) {
		switch r.Name {
		case "a.txt":
			r.MediaType = "text/html"
		case "b.txt":
			r.Modified = "2020-02-03T04:05:06Z"
		case "c.txt":
			d := fetch.NewDigester("sha1")
			_, _ = d.Write([]byte("c"))
			r.Algorithm, r.Digest = "sha1", d.Sums()["sha1"]
		}
	}
	const not = ": not taken, because the content is unchanged: "
	want := []string{
		"a.txt" + not + "the media type text/html (stored: ",
		"b.txt" + not + "the date 2020-02-03T04:05:06Z ",
		"c.txt" + not + "the digest sha1, which was verified",
	}
	j := p.Ended(p.pack(files), 1, true)
	if !slices.EqualFunc(j.FileWarnings, want, func(got, want string) bool { return strings.Contains(got, want) }) {
		t.Errorf("the warnings are %q", j.FileWarnings)
	}
	// A media type that only the name suggests was not said.
	files["d.txt"] = "d"
	p.row = func(r *checkm.Row) { r.MediaType = "text/html" }
	p.Ended(p.pack(files), 2, false)
	p.row = func(*checkm.Row) {}
	if j := p.Ended(p.pack(files), 2, true); len(j.FileWarnings) > 0 {
		t.Errorf("without media types: %q", j.FileWarnings)
	}
	files["e.txt"] = "e"
	if j := p.Ended(p.pack(files), 3, false); len(j.FileWarnings) > 0 {
		t.Errorf("a new version: %q", j.FileWarnings)
	}
	if j := p.Ended(p.pack(files), 3, true); len(j.FileWarnings) > 0 {
		t.Errorf("the new version again: %q", j.FileWarnings)
	}
}
