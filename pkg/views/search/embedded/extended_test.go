package embedded

import (
	"path/filepath"
	"testing"

	"github.com/blevesearch/bleve/v2"
	"github.com/blevesearch/bleve/v2/index/scorch"

	"archivist/pkg/views/search"
)

// TestExtended: an index of an earlier release, without formats, gets the fields when it is
// written to. What was written before is found as before, and what is written then has formats,
// also once the index was closed.
func TestExtended(t *testing.T) {
	earlier, err := fields()
	if err != nil {
		t.Fatal(err)
	}
	delete(earlier.DefaultMapping.Properties, search.FieldFormat)
	delete(earlier.DefaultMapping.Properties, kindName)
	dir := filepath.Join(t.TempDir(), "index")
	x, err := bleve.NewUsing(dir, earlier, scorch.Name, scorch.Name, nil)
	if err != nil {
		t.Fatal(err)
	}
	add := func(ark string) {
		t.Helper()
		d := &search.Document{ARK: ark, Titles: []string{"Map"}, Formats: []string{"fmt/353",
			"image/tiff"},
			Kinds: []string{"image/tiff"}}
		if err := apply(t.Context(), x, []change{{ark, d}}); err != nil {
			t.Fatal(err)
		}
	}
	expect := func(query string, all, tiffs int) {
		t.Helper()
		q, err := search.ParseQuery(query)
		if err != nil {
			t.Fatal(err)
		}
		r := bleve.NewSearchRequest(condition(q))
		r.AddFacet(kindsName, bleve.NewFacetRequest(kindName, search.MaxFacets))
		found, err := x.Search(r)
		if err != nil {
			t.Fatal(err)
		}
		counted := 0
		for _, f := range found.Facets[kindsName].Terms.Terms() {
			counted += f.Count
		}
		if int(found.Total) != all || counted != tiffs {
			t.Errorf("%s: %d objects, %d of image/tiff; want %d and %d", query, found.Total,
				counted, all, tiffs)
		}
	}

	add("ark:/99999/before")
	expect("map", 1, 0)
	for n := range 2 { // the second time there is nothing to add
		if err := x.Close(); err != nil {
			t.Fatal(err)
		}
		if x, err = extended(dir); err != nil {
			t.Fatal(err)
		}
		add([]string{"ark:/99999/after", "ark:/99999/later"}[n])
		expect("map", n+2, n+1)
		expect("format:image/tiff", n+1, n+1)
	}
	add("ark:/99999/before") // it is indexed again
	expect("format:fmt/353", 3, 3)
	if err := x.Close(); err != nil {
		t.Fatal(err)
	}
}
