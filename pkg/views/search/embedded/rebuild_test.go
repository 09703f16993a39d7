package embedded_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"archivist/pkg/events/consumer"
	"archivist/pkg/events/envelope"
	"archivist/pkg/views/search"
	"archivist/pkg/views/search/embedded"
	"archivist/pkg/views/search/searchtest"
)

// words of the titles and creators of the objects below.
var vocabulary = strings.Fields("harbour map city river bridge church market canal field forest mill tower")

// The years of the objects below.
const (
	firstYear = 1700
	years     = 300
)

// TestRebuild: an index that followed the events of 2,500 objects, which were created, changed,
// deleted, repeated and coalesced, and that was pruned of objects that were deleted without an event, has
// the same documents, and answers the same, as one that is made from the state at the end.
func TestRebuild(t *testing.T) {
	const objects, most = 2500, 250
	w := newWorld(t)
	followed, rebuilt := w.process(&calls{}), w.elsewhere()
	random := rand.New(rand.NewPCG(1, 2))
	word := func() string { return vocabulary[random.IntN(len(vocabulary))] }
	follow := search.Consumer{Index: followed, Read: w.Read}

	left := map[string]bool{}
	var events consumer.Batch
	handle := func(x search.Consumer) {
		if failed, err := x.Handle(t.Context(), events); err != nil || len(failed) > 0 {
			t.Fatal(failed, err)
		}
		events = consumer.Batch{}
	}
	see := func(c search.Change) {
		events.Events = append(events.Events, consumer.Item{Event: envelope.Event{Version: c.Version,
			Subject: envelope.Ref{Type: "Object", ID: c.ARK}}})
	}
	for n := range objects * 5 / 4 {
		at := n
		if n >= objects {
			at = random.IntN(objects) // a change
		}
		name := fmt.Sprintf("o%05d", at)
		left[name] = n < objects || random.IntN(3) > 0
		var d *search.Document
		if left[name] {
			d = &search.Document{Collection: word(), Titles: []string{word() + " " + word()},
				Creators: []string{word()}, Dates: []string{fmt.Sprint(firstYear + random.IntN(years))},
				Files: []string{fmt.Sprint("file", n, ".tif")}}
		}
		see(w.Put(name, d))
		if random.IntN(10) == 0 {
			see(search.Change{ARK: "ark:/99999/" + name}) // again, and late
		}
		if len(events.Events) >= most {
			handle(follow)
		}
	}
	handle(follow)
	for n, name := range sorted(left) {
		if n%400 == 0 { // deleted without an event
			left[name] = false
			w.Put(name, nil)
		}
	}
	searchtest.Prune(t, followed, &w.State)
	for _, name := range sorted(left) {
		see(search.Change{ARK: "ark:/99999/" + name})
		if len(events.Events) == most {
			handle(search.Consumer{Index: rebuilt, Read: w.Read})
		}
	}
	handle(search.Consumer{Index: rebuilt, Read: w.Read})
	w.same(followed, rebuilt)
}

// sorted are the names of what is left.
func sorted(left map[string]bool) (names []string) {
	for name, is := range left {
		if is {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// elsewhere is an index of the same objects that shares nothing with the others.
func (w *world) elsewhere() *embedded.Index {
	x := newWorld(w.TB).process(&calls{})
	return x
}

// same compares the answers of two indexes, among them the objects of each year, which are all
// that they have.
func (w *world) same(a, b search.Index) {
	w.Helper()
	queries := []string{"file:file42*", "harb* -creator:mill", "title:map date:1850..1899"}
	for year := firstYear; year < firstYear+years; year++ {
		queries = append(queries, fmt.Sprintf("date:%d..%d", year, year))
	}
	for _, word := range vocabulary {
		queries = append(queries, word, "title:"+word, "creator:"+word, "collection:"+word, `"map `+word+`"`)
	}
	for _, q := range queries {
		for x, y := "", ""; ; {
			one := searchtest.Search(w, a, q, search.ByTitle, 0, x)
			two := searchtest.Search(w, b, q, search.ByTitle, 0, y)
			same := one.Total == two.Total && slices.Equal(one.ARKs, two.ARKs) &&
				slices.Equal(one.Collections, two.Collections)
			if !same {
				w.Fatalf("%s: one has %d, the other %d: %v, %v", q, one.Total, two.Total, one.Collections,
					two.Collections)
			}
			x, y = one.Cursor, two.Cursor
			if x == "" || one.Total > 2*search.MaxLimit {
				break
			}
		}
	}
}
