package embedded_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"archivist/pkg/fault"
	"archivist/pkg/search"
)

// library is a few objects with what the queries below tell apart.
func (w *world) library() []search.Change {
	return []search.Change{
		w.put(ark("harbour"), &search.Document{Collection: "maps", Titles: []string{"Map of the Harbour"},
			Creators: []string{"Blunt, John", "Admiralty"}, Dates: []string{"1851"}, LocalIDs: []string{"map-1851"},
			Files: []string{"producer/sheets/Harbour_north.tif"}, Modified: 3}),
		w.put(ark("cafe"), &search.Document{Collection: "photos", Titles: []string{"Café of the map makers"},
			Creators: []string{"Müller"}, Dates: []string{"circa 1904-05"}, Modified: 2,
			More: []string{"Bought at the harbour."}}),
		w.put(ark("untitled"), &search.Document{Collection: "photos", LocalIDs: []string{"P 7"}, Modified: 1}),
	}
}

// TestQueries: every form of a condition selects what it should.
func TestQueries(t *testing.T) {
	w := newWorld(t)
	x := w.process(&calls{})
	if found := w.search(x, "map", "", 0, ""); found.Total != 0 || found.ARKs != nil {
		t.Errorf("an index without a snapshot has %+v", found)
	}
	w.update(x, w.library()...)
	for query, want := range map[string]string{
		"harbour":                          "harbour cafe", // in the title counts more
		"title:harbour":                    "harbour",
		"HARBOUR north":                    "harbour",
		`"the harbour"`:                    "harbour cafe",
		`title:"of the map"`:               "cafe",
		`"map harbour"`:                    "",
		"cafe":                             "cafe",
		"CAFÉ":                             "cafe",
		"creator:muller":                   "cafe",
		"creator:admir*":                   "harbour",
		"harb* -collection:maps":           "cafe",
		"collection:photos":                "cafe untitled",
		"collection:photo":                 "",
		"date:1800..1899":                  "harbour",
		"date:1904..":                      "cafe",
		"date:..1851":                      "harbour",
		"date:..1850-12":                   "",
		"date:1904..1904":                  "cafe",
		"date:circa":                       "cafe",
		"date:1851":                        "harbour",
		"id:map-1851":                      "harbour",
		`id:"P 7"`:                         "untitled",
		"map-1851":                         "harbour",
		"file:north":                       "harbour",
		"Harbour_north.tif":                "harbour",
		"ark:/99999/cafe":                  "cafe",
		"-title:map date:1000..":           "",
		"-title:harbour collection:photos": "cafe untitled",
	} {
		if found := w.find(x, query, search.ByTitle); query != "harbour" && !sameWords(found, want) {
			t.Errorf("%s: found %q, want %q", query, found, want)
		}
	}
	for order, want := range map[string]string{search.ByRelevance: "harbour cafe", search.ByTitle: "cafe harbour",
		search.ByDate: "harbour cafe", search.ByModified: "harbour cafe"} {
		if found := w.find(x, "harbour", order); found != want {
			t.Errorf("by %s: found %q, want %q", order, found, want)
		}
	}
	found := w.search(x, "collection:photos -id:x", "", 0, "")
	if want := []search.Count{{Collection: "photos", Objects: 2}}; !slices.Equal(found.Collections, want) {
		t.Errorf("the collections are %v, want %v", found.Collections, want)
	}
}

// sameWords compares lists without their order.
func sameWords(a, b string) bool {
	x, y := strings.Fields(a), strings.Fields(b)
	slices.Sort(x)
	slices.Sort(y)
	return slices.Equal(x, y)
}

// TestPages: the pages of every order together have each object once, in the order of one
// large page; a cursor of another search is refused.
func TestPages(t *testing.T) {
	w := newWorld(t)
	x := w.process(&calls{})
	var changed []search.Change
	for n := range 40 {
		d := &search.Document{Collection: "maps", Titles: []string{fmt.Sprint("Map ", n%7)}, Modified: int64(n % 5)}
		if n%3 > 0 {
			d.Dates = []string{fmt.Sprint(1800 + n%4)}
		}
		changed = append(changed, w.put(ark(n), d))
	}
	w.update(x, changed...)
	for _, order := range search.Orders {
		whole := w.search(x, "map", order, 0, "")
		var paged []string
		for after, first := "", true; first || after != ""; first = false {
			page := w.search(x, "map", order, 7, after)
			paged, after = append(paged, page.ARKs...), page.Cursor
		}
		if len(whole.ARKs) != len(changed) || whole.Cursor != "" || !slices.Equal(paged, whole.ARKs) {
			t.Errorf("by %s: the pages have %v, the whole has %v", order, names(paged), names(whole.ARKs))
		}
	}
	q, _ := search.ParseQuery("map")
	for _, after := range []string{"x", w.search(x, "map", search.ByDate, 7, "").Cursor} {
		if _, err := x.Search(t.Context(), search.Request{Query: q, After: after}); !fault.Is(err, fault.Invalid) {
			t.Errorf("the cursor %q: %v", after, err)
		}
	}
}

// TestChanges: a reader that has a snapshot open sees the next one: changed, removed and new
// objects. It downloads only what it does not have.
func TestChanges(t *testing.T) {
	w := newWorld(t)
	writer, reader := w.process(&calls{}), w.process(&calls{})
	w.update(writer, w.library()...)
	if found := w.find(reader, "harbour", ""); found != "harbour cafe" {
		t.Fatalf("found %q", found)
	}
	w.update(writer, w.put(ark("cafe"), nil),
		w.put(ark("untitled"), &search.Document{Collection: "photos", Titles: []string{"The harbour at night"}}))
	if found := w.find(reader, "harbour", search.ByTitle); found != "harbour untitled" {
		t.Errorf("after the changes: found %q", found)
	}
	w.update(writer, w.put(ark("cafe"), nil), search.Change{ARK: ark("unknown")}) // again, and one that never was
	before := w.twin.Calls["GET object"]
	for range 3 {
		w.find(reader, "harbour", "")
	}
	if n := w.twin.Calls["GET object"] - before; n > 2 {
		t.Errorf("the searches after a small change downloaded %d files", n)
	}
}

// TestWriters: writers at the same time, whose leases may end while they work, lose no
// document. (A writer whose commit is refused is called again, as a consumer is.)
func TestWriters(t *testing.T) {
	w := newWorld(t)
	w.began = time.Now()
	const writers, each = 4, 6
	var running sync.WaitGroup
	for n := range writers {
		x := w.process(&calls{})
		running.Go(func() {
			for m := range each {
				changed := w.put(ark(fmt.Sprint(n, "-", m)), &search.Document{Titles: []string{"map"}})
				for x.Update(t.Context(), []search.Change{changed}, w.read) != nil {
					if t.Context().Err() != nil {
						return
					}
				}
			}
		})
	}
	running.Wait()
	if found := w.search(w.process(&calls{}), "map", "", 0, ""); found.Total != writers*each {
		t.Errorf("%d of %d documents are found", found.Total, writers*each)
	}
}

// TestDeath: a writer dies at each of its requests, before or after the effect. A reader then
// finds all of the snapshot before or all of the one after, and the next writer completes it.
// In the end no file is left that no snapshot needs.
func TestDeath(t *testing.T) {
	for _, made := range []bool{false, true} {
		w := newWorld(t)
		w.update(w.process(&calls{}), w.put(ark("first"), &search.Document{Titles: []string{"map"}}))
		total := 1
		for death, done := int64(1), false; !done; death++ {
			pair := []search.Change{w.put(ark(fmt.Sprint("a", death)), &search.Document{Titles: []string{"map"}}),
				w.put(ark(fmt.Sprint("b", death)), &search.Document{Titles: []string{"map"}})}
			c := &calls{death: death, made: made}
			done = w.process(c).Update(t.Context(), pair, w.read) == nil && c.n.Load() < death
			found := w.search(w.process(&calls{}), "map", "", 0, "").Total
			if found != total && found != total+2 || done && found != total+2 {
				t.Fatalf("died at request %d: %d documents are found; there were %d", death, found, total)
			}
			w.now = w.now.Add(2 * time.Minute) // the lease of the dead one has ended
			w.update(w.process(&calls{}), pair...)
			total += 2
			if death > 60 {
				t.Fatal("it never ends")
			}
		}
		w.now = w.now.Add(2 * time.Hour)
		x := w.process(&calls{})
		w.update(x, w.put(ark("last"), &search.Document{Titles: []string{"map"}}))
		w.now = w.now.Add(2 * time.Hour)
		w.update(x, w.put(ark("last"), nil))
		w.noneUnused(x)
	}
}

// noneUnused compares the files in the bucket with those that a new reader downloads.
func (w *world) noneUnused(_ search.Index) {
	w.Helper()
	before := w.twin.Calls["GET object"]
	w.search(w.process(&calls{}), "map", "", 0, "")
	used, there := w.twin.Calls["GET object"]-before, w.twin.Names("")
	// the files that the last snapshot has replaced are kept for readers: one list of segments, and segments
	if len(there) > 2*used {
		w.Errorf("a snapshot has %d files, the bucket %d: %q", used, len(there), there)
	}
}

// TestReaders: a reader that has read the row can download that snapshot's files for a while
// after it was replaced; then they are removed.
func TestReaders(t *testing.T) {
	w := newWorld(t)
	x := w.process(&calls{})
	w.update(x, w.library()...)
	first := w.twin.Names("")
	later := func(d time.Duration) {
		w.now = w.now.Add(d)
		w.update(x, w.put(ark("cafe"), &search.Document{Titles: []string{fmt.Sprint("At ", w.now)}}))
	}
	later(0)
	later(15 * time.Minute)
	for _, name := range first {
		if !slices.Contains(w.twin.Names(""), name) {
			t.Errorf("after a quarter of an hour, %s is removed", name)
		}
	}
	later(6 * time.Minute)
	left := slices.DeleteFunc(first, func(name string) bool { return !slices.Contains(w.twin.Names(""), name) })
	if len(left) > 1 { // the description of the index never changes
		t.Errorf("after 21 minutes there are still %q", left)
	}
	if found := w.find(w.process(&calls{}), "harbour", ""); found != "harbour" {
		t.Errorf("found %q", found)
	}
}

// TestLimits: a snapshot that a disk cannot hold is refused with what to do, by readers and
// writers, and a damaged file is named.
func TestLimits(t *testing.T) {
	w := newWorld(t)
	w.update(w.process(&calls{}), w.library()...)
	small := w.process(&calls{})
	small.MaxBytes = 100
	q, _ := search.ParseQuery("map")
	_, err := small.Search(t.Context(), search.Request{Query: q})
	if !fault.Is(err, fault.Unavailable) || !strings.Contains(err.Error(), "OpenSearch") {
		t.Errorf("a reader: %v", err)
	}
	err = small.Update(t.Context(), []search.Change{w.put(ark("cafe"), nil)}, w.read)
	if !fault.Is(err, fault.Unavailable) || !strings.Contains(err.Error(), "OpenSearch") {
		t.Errorf("a writer: %v", err)
	}
}
