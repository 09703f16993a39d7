package search

import (
	"slices"
	"testing"

	"archivist/pkg/objects/aip"
	"archivist/pkg/objects/formats"
)

// TestNamed: a result from before media types were kept gives its ids, and the list of files its
// media types, without their parameters, each once. A list that was not read to its end is
// marked.
func TestNamed(t *testing.T) {
	files := []aip.Entry{{MediaType: "Text/HTML; charset=utf-8"}, {MediaType: "text/html"},
		{MediaType: "nonsense"}, {}}
	names := func(r formats.Result) (d Document) {
		var n named
		n.identified(r, r.Typed)
		n.listed(files)
		n.into(&d)
		return d
	}
	r := formats.Result{Formats: []formats.Count{{ID: "fmt/96"}}, Unknown: 1}
	d := names(r)
	if !slices.Equal(d.Formats, []string{"fmt/96", "unknown", "text/html"}) ||
		!slices.Equal(d.Kinds, []string{"text/html"}) {
		t.Errorf("%q, counted %q", d.Formats, d.Kinds)
	}
	files = append(files, make([]aip.Entry, MaxFiles-len(files))...)
	d = names(r)
	if !slices.Contains(d.Formats, OtherFormats) || !slices.Contains(d.Kinds,
		OtherFormats) {
		t.Errorf("of %d files: %q, counted %q", len(files), d.Formats, d.Kinds)
	}
}
