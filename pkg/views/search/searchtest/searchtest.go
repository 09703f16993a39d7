// Package searchtest has the tests that every search.Index passes.
package searchtest

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"archivist/pkg/kernel/fault"
	"archivist/pkg/views/search"
)

// State is the state of objects, whose documents are indexed. It is safe for concurrent use.
type State struct {
	mu      sync.Mutex
	objects map[string]*search.Document
	version int64
}

// Put changes an object; nil removes it. The name is the last part of its ARK.
func (s *State) Put(name string, d *search.Document) search.Change {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.objects == nil {
		s.objects = map[string]*search.Document{}
	}

	s.version++
	ark := "ark:/99999/" + name
	if d == nil {
		delete(s.objects, ark)
	} else {
		d.ARK, d.Version = ark, s.version
		s.objects[ark] = d
	}
	return search.Change{ARK: ark, Version: s.version}
}

// Read is a search.Reader.
func (s *State) Read(_ context.Context, ark string) (*search.Document, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.objects[ark], nil
}

// Library changes a few objects, which the queries of the tests tell apart.
func (s *State) Library() []search.Change {
	return []search.Change{
		s.Put("harbour", &search.Document{
			Collection: "maps",
			Titles:     []string{"Map of the Harbour"},
			Creators:   []string{"Blunt, John", "Admiralty"},
			Dates:      []string{"1851"},
			LocalIDs:   []string{"map-1851"},
			Files:      []string{"producer/sheets/Harbour_north.tif"},
			Formats:    []string{"fmt/353", "image/tiff", "x-fmt/111"},
			Kinds:      []string{"image/tiff", "x-fmt/111"},
			Modified:   3,
		}),
		s.Put("cafe", &search.Document{
			Collection: "photos",
			Titles:     []string{"Café of the map makers"},
			Creators:   []string{"Müller"},
			Dates:      []string{"circa 1904-05"},
			Modified:   2,
			More:       []string{"Bought at the harbour."},
			Formats:    []string{"image/tiff"},
			Kinds:      []string{"image/tiff"},
		}),
		s.Put("untitled", &search.Document{
			Collection: "photos",
			LocalIDs:   []string{"P 7"},
			Modified:   1,
		}),
	}
}

// Names are the last parts of ARKs.
func Names(arks []string) []string {
	out := slices.Clone(arks)
	for i, ark := range out {
		out[i] = ark[strings.LastIndex(ark, "/")+1:]
	}
	return out
}

// Search returns a page, or fails the test.
func Search(t testing.TB, x search.Index, query, order string, limit int,
	after string) search.Result {
	t.Helper()
	q, err := search.ParseQuery(query)
	if err != nil {
		t.Fatalf("%s: %v", query, err)
	}

	found, err := x.Search(t.Context(), search.Request{
		Query: q,
		Order: order,
		Limit: limit,
		After: after,
	})
	if err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return found
}

// Find returns the names of the objects that are found, as text.
func Find(t testing.TB, x search.Index, query, order string) string {
	t.Helper()
	return strings.Join(Names(Search(t, x, query, order, 0, "").ARKs), " ")
}

// Update makes the index have the changes, or fails the test.
func Update(t testing.TB, x search.Index, s *State, changed ...search.Change) {
	t.Helper()
	if err := x.Update(t.Context(), changed, s.Read); err != nil {
		t.Fatal(err)
	}
}

// Conform runs the tests on indexes, each of which is empty at first.
func Conform(t *testing.T, open func(t *testing.T) search.Index) {
	t.Run("queries", func(t *testing.T) { queries(t, open(t)) })
	t.Run("pages", func(t *testing.T) { pages(t, open(t)) })
	t.Run("changes", func(t *testing.T) { changes(t, open(t)) })
	t.Run("prune", func(t *testing.T) { prune(t, open(t)) })
	t.Run("modified", func(t *testing.T) { modified(t, open(t)) })
}

// found has queries and the objects that they find in the library, in the order of titles.
var found = map[string]string{
	"harbour":                              "cafe harbour",
	"map":                                  "cafe harbour",
	"title:harbour":                        "harbour",
	"HARBOUR north":                        "harbour",
	`"the harbour"`:                        "cafe harbour",
	`title:"of the map"`:                   "cafe",
	`"map harbour"`:                        "",
	"cafe":                                 "cafe",
	"CAFÉ":                                 "cafe",
	"creator:muller":                       "cafe",
	"creator:admir*":                       "harbour",
	`creator:"john admiralty"`:             "",
	"harb* -collection:maps":               "cafe",
	"collection:photos":                    "cafe untitled",
	"collection:photo":                     "",
	"date:1800..1899":                      "harbour",
	"date:1904..":                          "cafe",
	"date:..1851":                          "harbour",
	"date:..1850-12":                       "",
	"date:1904..1904":                      "cafe",
	"date:circa":                           "cafe",
	"date:1851":                            "harbour",
	"id:map-1851":                          "harbour",
	`id:"P 7"`:                             "untitled",
	"map-1851":                             "harbour",
	"file:north":                           "harbour",
	"Harbour_north.tif":                    "harbour",
	"ark:/99999/cafe":                      "cafe",
	"format:image/tiff":                    "cafe harbour",
	"format:Image/TIFF collection:maps":    "harbour",
	"format:FMT/353":                       "harbour",
	"format:image":                         "",
	"tiff":                                 "",
	"collection:photos -format:image/tiff": "untitled",
	"-title:map date:1000..":               "",
	"-title:harbour collection:photos":     "cafe untitled",
}

func queries(t *testing.T, x search.Index) {
	var s State
	if found := Search(t, x, "map", "", 0, ""); found.Total != 0 || found.ARKs != nil {
		t.Errorf("an index without documents has %+v", found)
	}

	Update(t, x, &s, s.Library()...)
	for query, want := range found {
		if found := Find(t, x, query, search.ByTitle); found != want {
			t.Errorf("%s: found %q, want %q", query, found, want)
		}
	}

	formats(t, x)
	for order, want := range map[string]string{"": "harbour cafe",
		search.ByRelevance: "harbour cafe",
		search.ByTitle:     "cafe harbour", search.ByDate: "harbour cafe",
		search.ByModified: "harbour cafe"} {
		if found := Find(t, x, "harbour", order); found != want {
			t.Errorf("by %q: found %q, want %q", order, found, want)
		}
	}

	if found := Find(t, x, "collection:photos", search.ByDate); found != "cafe untitled" {
		t.Errorf("objects without a date are not the last: %q", found)
	}

	found := Search(t, x, "collection:photos", "", 1, "")
	if want := []search.Count{{Collection: "photos", Objects: 2}}; !slices.Equal(found.Collections,
		want) ||
		found.Total != 2 || len(found.ARKs) != 1 {
		t.Errorf("%+v; want two objects, one on the page", found)
	}

	if years := Search(t, x, "harbour", "", 1, "").Years; !slices.Equal(years,
		[]search.YearCount{{Year: "1904", Objects: 1}, {Year: "1851", Objects: 1}}) {
		t.Errorf("the years of two objects: %+v", years)
	}
	if years := Search(t, x, "untitled", "", 1, "").Years; len(years) != 0 {
		t.Errorf("the years of what has no date: %+v", years)
	}

	q, _ := search.ParseQuery("map")
	inCollections(t, x, q)
	if _, err := x.Search(t.Context(), search.Request{Query: q, Order: "size"}); !fault.Is(err,
		fault.Invalid) {
		t.Errorf("an unknown order: %v", err)
	}
}

// formats: what is found is counted by the formats of files, without conditions all is found, and
// what has no date is last in either direction.
func formats(t *testing.T, x search.Index) {
	found := Search(t, x, "map", "", 1, "").Formats
	want := []search.FormatCount{{Format: "image/tiff", Objects: 2}, {Format: "x-fmt/111",
		Objects: 1}}
	if !slices.Equal(found, want) {
		t.Errorf("the formats of two objects: %+v, want %+v", found, want)
	}
	all, err := x.Search(t.Context(), search.Request{Order: search.ByTitle})
	if err != nil || all.Total != 3 {
		t.Errorf("without a condition: %+v, %v", all, err)
	}
	if found := reversed(t, x, "collection:photos", search.ByDate); found != "cafe untitled" {
		t.Errorf("objects without a date are not the last in the reverse order: %q", found)
	}
}

// reversed returns the names of the objects that are found, in the reverse of an order.
func reversed(t testing.TB, x search.Index, query, order string) string {
	t.Helper()
	q, err := search.ParseQuery(query)
	if err != nil {
		t.Fatal(err)
	}
	found, err := x.Search(t.Context(), search.Request{Query: q, Order: order, Reverse: true})
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(Names(found.ARKs), " ")
}

// inCollections: a search that is limited finds, and counts, what is in these collections only.
func inCollections(t *testing.T, x search.Index, q search.Query) {
	for want, in := range map[string][]string{"": {}, "harbour": {"maps"}, "cafe": {"photos",
		"none"},
		"cafe harbour": {"photos", "maps"}} {
		found, err := x.Search(t.Context(), search.Request{Query: q, Order: search.ByTitle, In: in})
		if names := strings.Join(Names(found.ARKs), " "); err != nil || names != want ||
			found.Total != len(found.ARKs) || len(found.Collections) != len(found.ARKs) {
			t.Errorf("in %v: %+v, %v", in, found, err)
		}
	}
}

// pages: the pages of every order together have each object once, in the order of one large
// page; a cursor of another search is refused.
func pages(t *testing.T, x search.Index) {
	var s State
	var changed []search.Change
	for n := range 40 {
		d := &search.Document{
			Collection: "maps",
			Titles:     []string{fmt.Sprint("Map ", n%7)},
			Modified:   int64(n % 5),
		}
		if n%3 > 0 {
			d.Dates = []string{fmt.Sprint(1800 + n%4)}
		}
		changed = append(changed, s.Put(fmt.Sprint(n), d))
	}

	Update(t, x, &s, changed...)
	for _, order := range search.Orders {
		whole := Search(t, x, "map", order, 0, "")
		var paged []string
		for after, first := "", true; first || after != ""; first = false {
			page := Search(t, x, "map", order, 7, after)
			paged, after = append(paged, page.ARKs...), page.Cursor
		}

		if len(whole.ARKs) != len(changed) || whole.Cursor != "" ||
			!slices.Equal(paged, whole.ARKs) {
			t.Errorf("by %s: the pages have %v, the whole has %v", order, Names(paged),
				Names(whole.ARKs))
		}
	}

	q, _ := search.ParseQuery("map")
	backwards(t, x, q, len(changed))
	for _, after := range []string{"x", Search(t, x, "map", search.ByDate, 7, "").Cursor} {
		if _, err := x.Search(t.Context(), search.Request{Query: q, After: after}); !fault.Is(err,
			fault.Invalid) {
			t.Errorf("the cursor %q: %v", after, err)
		}
	}
}

// backwards: the pages of the reverse of every order together have each object once, in the order
// of one large page. A cursor of the order itself is refused.
func backwards(t *testing.T, x search.Index, q search.Query, all int) {
	for _, order := range search.Orders {
		r := search.Request{Query: q, Order: order, Reverse: true}
		whole, err := x.Search(t.Context(), r)
		if err != nil {
			t.Fatal(err)
		}
		var paged []string
		r.Limit = 7
		for first := true; first || r.After != ""; first = false {
			page, err := x.Search(t.Context(), r)
			if err != nil {
				t.Fatal(err)
			}
			paged, r.After = append(paged, page.ARKs...), page.Cursor
		}

		forwards := Search(t, x, "map", order, 0, "").ARKs
		if len(whole.ARKs) != all || !slices.Equal(paged, whole.ARKs) || slices.Equal(forwards,
			whole.ARKs) {
			t.Errorf("in the reverse of %s: the pages have %v, the whole has %v", order,
				Names(paged), Names(whole.ARKs))
		}
		r.After = Search(t, x, "map", order, 7, "").Cursor
		if _, err := x.Search(t.Context(), r); !fault.Is(err, fault.Invalid) {
			t.Errorf("in the reverse of %s, a cursor of %s: %v", order, order, err)
		}
	}
}

// changes: what changes is found as it is now, and what is removed is not found, also if it is
// removed again or never was.
func changes(t *testing.T, x search.Index) {
	var s State
	Update(t, x, &s, s.Library()...)
	Update(t, x, &s, s.Put("cafe", nil), search.Change{ARK: "ark:/99999/unknown", Version: 1},
		s.Put("untitled",
			&search.Document{Collection: "photos", Titles: []string{"The harbour at night"}}))

	if found := Find(t, x, "harbour", search.ByTitle); found != "harbour untitled" {
		t.Errorf("after the changes: found %q", found)
	}

	Update(t, x, &s, s.Put("cafe", nil))
	Update(t, x, &s, s.Put("cafe", &search.Document{Titles: []string{"Harbour café"}}))
	if found := Find(t, x, "harbour", search.ByTitle); found != "cafe harbour untitled" {
		t.Errorf("after it is back: found %q", found)
	}
}

// Prune lets a consumer look at all documents, and returns how many pages it needed.
func Prune(t testing.TB, x search.Index, s *State) (pages int) {
	t.Helper()
	c := search.Consumer{
		Index: x,
		Read:  s.Read,
		Exists: func(ctx context.Context, ark string) (bool, error) {
			d, err := s.Read(ctx, ark)
			return d != nil, err
		},
	}

	for cursor := ""; pages == 0 || cursor != ""; pages++ {
		var err error
		if cursor, err = c.Prune(t.Context(), cursor); err != nil {
			t.Fatal(err)
		}
	}
	return pages
}

// prune: documents of objects that were deleted without an event are removed, and no others; an
// object that is made again is found again.
func prune(t *testing.T, x search.Index) {
	var s State
	var all []search.Change
	for n := range 2*search.MaxARKs + 20 {
		all = append(all,
			s.Put(fmt.Sprintf("o%03d", n), &search.Document{Titles: []string{"The harbour"}}))
	}

	Update(t, x, &s, all...)
	for n := range 2*search.MaxARKs + 20 {
		if n%3 == 0 {
			s.Put(fmt.Sprintf("o%03d", n), nil)
		}
	}

	if pages := Prune(t, x, &s); pages < 3 {
		t.Errorf("%d pages", pages)
	}

	if n := Search(t, x, "harbour", "", 0, "").Total; n != 346 {
		t.Errorf("%d objects are found", n)
	}

	if found := Find(t, x, "ark:/99999/o003", ""); found != "" {
		t.Errorf("found %q", found)
	}
}

// modified: each document says of which state of its object it is.
func modified(t *testing.T, x search.Index) {
	var s State
	arks := []string{"ark:/99999/harbour", "ark:/99999/cafe", "ark:/99999/unknown"}
	expect := func(want map[string]int64) {
		t.Helper()
		found, err := x.Modified(t.Context(), arks)
		if err != nil || len(found) != len(want) || !maps.Equal(found, want) {
			t.Errorf("found %v, %v, expected %v", found, err, want)
		}
	}

	expect(nil)
	Update(t, x, &s, s.Library()...)
	cafe := s.Put("cafe", &search.Document{Titles: []string{"Café"}, Modified: 1_800_000_000_123})
	Update(t, x, &s, cafe)
	expect(map[string]int64{arks[0]: 3, arks[1]: 1_800_000_000_123})
	Update(t, x, &s, s.Put("harbour", nil))
	expect(map[string]int64{arks[1]: 1_800_000_000_123})
}
