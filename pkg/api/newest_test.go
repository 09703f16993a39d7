package api_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "archivist/pkg/api/v1"
	"archivist/pkg/events/event"
	"archivist/pkg/events/eventlog"
	"archivist/pkg/ingest/collection"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/table"
)

// TestNewestOfSplitLog: the newest events of a log that was split are those after the split, whatever the clocks of
// their writers said; and later pages have none of a partition that was made after the first page.
func TestNewestOfSplitLog(t *testing.T) {
	c, q := serve(t, through)
	log := &eventlog.Log{Table: q.Table, Now: q.Now, NewID: q.NewID}
	profiles := collection.Store{Table: q.Table, NewID: q.NewID}
	happen := func(title string, at int64) {
		t.Helper()
		if err := profiles.Put(t.Context(), "maps", collection.Profile{Title: title},
			collection.By{Actor: "me"}, at); err != nil {
			t.Fatal(err)
		}
		if _, err := log.Place(t.Context(), []event.Subject{{Type: event.Collection, ID: "maps"}}); err != nil {
			t.Fatal(err)
		}
	}
	titles := func(cursor string) (all []string, next string) {
		t.Helper()
		p := page[json.RawMessage](t, c, "/v1/events?collection=maps&cursor="+url.QueryEscape(cursor))
		for _, e := range p.Items {
			all = append(all, string(e))
		}
		return all, p.Cursor
	}
	for n := range 120 {
		happen(fmt.Sprintf("before %d", n), int64(5000+n))
	}
	first, cursor := titles("")
	if cursor == "" {
		t.Fatalf("%d events have no second page", len(first))
	}

	if err := log.Split(t.Context(), "maps", 2); err != nil {
		t.Fatal(err)
	}
	happen("late", 1000) // by a clock that is behind
	if all, _ := titles(""); !strings.Contains(all[0], `"late"`) {
		t.Errorf("the newest event is %s", all[0])
	}
	if all, _ := titles(cursor); slices.ContainsFunc(all, func(e string) bool { return strings.Contains(e, `"late"`) }) {
		t.Errorf("the second page has an event of a partition that was made after the first")
	}
}

// TestNewestOfAll: without a collection, the newest events of all logs are listed by their times.
func TestNewestOfAll(t *testing.T) {
	c, q := serve(t, through)
	now := int64(10_000_000)
	log := &eventlog.Log{Table: q.Table, Now: func() time.Time { return time.UnixMilli(now) }, NewID: q.NewID}
	profiles := collection.Store{Table: q.Table, NewID: q.NewID}
	happen := func(name string) {
		t.Helper()
		now += 1000
		if err := profiles.Put(t.Context(), name, collection.Profile{Title: fmt.Sprint(name, " ", now)},
			collection.By{Actor: "me"}, now-500); err != nil {
			t.Fatal(err)
		}
		if _, err := log.Place(t.Context(), []event.Subject{{Type: event.Collection, ID: name}}); err != nil {
			t.Fatal(err)
		}
	}
	newest := func(filter string) (names []string) {
		t.Helper()
		p := page[struct {
			Subject struct{ ID string }
			Time    string
		}](t, c, "/v1/events?filter="+url.QueryEscape(filter))
		for i, e := range p.Items {
			names = append(names, e.Subject.ID)
			if i > 0 && e.Time > p.Items[i-1].Time {
				t.Errorf("%s is after %s", e.Time, p.Items[i-1].Time)
			}
		}
		return names
	}
	if got := newest(""); len(got) != 0 {
		t.Errorf("of nothing: %v", got)
	}

	for range 30 {
		happen("old")
	}
	for range 60 {
		happen("maps")
		happen("letters")
	}
	got := newest("")
	if len(got) != 50 || got[0] != "letters" || got[1] != "maps" || slices.Contains(got, "old") {
		t.Errorf("%d: %v", len(got), got)
	}
	if got := newest("Collection+All{id=old}"); len(got) != 30 {
		t.Errorf("a filter found %d of 30 events", len(got))
	}

	for n := range 20 { // each of them has the newest event
		happen(fmt.Sprint("one-", n))
	}
	got = newest("")
	for n := range 20 {
		if len(got) != 50 || got[n] != fmt.Sprint("one-", 19-n) || got[20] != "letters" || got[21] != "maps" {
			t.Fatalf("of many logs: %v", got)
		}
	}

	for n := range 120 {
		happen(fmt.Sprint("two-", n))
	}
	for range 60 { // all but the newest of a log have to be read
		happen("letters")
	}
	if got := newest(""); len(got) != 50 || got[0] != "letters" || got[49] != "letters" {
		t.Errorf("of one among many logs: %v", got)
	}
}

// eventPage is a page of events, as far as it is looked at.
type eventPage struct {
	Items []struct {
		Subject struct{ ID string }
		Version int
		Time    string
	}
	Cursor string
	Others int
}

// allPages reads the events of all logs. calls are those of the table.
type allPages struct {
	*testing.T
	c     *v1.Client
	calls *int
}

// read reads all pages, and counts what it has seen by the ids of the subjects.
func (a allPages) read(filter string, meanwhile func()) (seen map[string]int, others int) {
	a.Helper()
	seen = map[string]int{}
	twice, last, cursor, pages := map[string]bool{}, "9", "", 0
	for ; pages == 0 || cursor != ""; pages++ {
		before := *a.calls
		var p eventPage
		err := a.c.Call(a.Context(), "GET", "/v1/events?filter="+url.QueryEscape(filter)+"&cursor="+cursor, nil, &p)
		if err != nil || pages > 100 || len(cursor) > 2000 {
			a.Fatal(pages, len(cursor), err)
		}
		if n := *a.calls - before; n > 10 {
			a.Errorf("page %d cost %d calls", pages, n)
		}
		for _, e := range p.Items {
			id := fmt.Sprint(e.Subject.ID, e.Version)
			if twice[id] || e.Time > last {
				a.Errorf("%s of %s comes twice, or after %s", id, e.Time, last)
			}
			twice[id], last = true, e.Time
			seen[e.Subject.ID]++
		}
		cursor, others = p.Cursor, p.Others
		meanwhile()
	}
	return seen, others
}

// TestPagesOfAll: the list of all logs goes on to the first event of each, without a gap and with nothing twice, while
// events are added, logs are made and one is split; each page costs at most 10 calls of the table. Of more than 100
// logs it has those that got an event last, and says how many others there are.
func TestPagesOfAll(t *testing.T) {
	calls := 0
	c, q := serve(t, func(_ string, call func() error) error { calls++; return call() })
	now := int64(10_000_000)
	log := &eventlog.Log{Table: q.Table, Now: func() time.Time { return time.UnixMilli(now) }, NewID: q.NewID}
	profiles := collection.Store{Table: q.Table, NewID: q.NewID}
	happened := map[string]int{}
	happen := func(name string) {
		t.Helper()
		now += 1000
		if err := profiles.Put(t.Context(), name, collection.Profile{Title: fmt.Sprint(now)},
			collection.By{Actor: "me"}, now-500); err != nil {
			t.Fatal(err)
		}
		if _, err := log.Place(t.Context(), []event.Subject{{Type: event.Collection, ID: name}}); err != nil {
			t.Fatal(err)
		}
		happened[name]++
	}
	for n := range 90 {
		happen("old")
		happen(fmt.Sprint("many-", n%30))
	}
	read := allPages{t, c, &calls}.read
	before := maps.Clone(happened)
	n := 0
	seen, others := read("", func() {
		n++
		happen("old")
		happen("new")
		if n == 2 {
			if err := log.Split(t.Context(), "many-3", 2); err != nil {
				t.Fatal(err)
			}
		}
		happen("many-3")
	})
	if !maps.Equal(seen, before) || others != 0 {
		t.Errorf("%v and %d others; there were %v", seen, others, before)
	}
	if seen, _ := read("Collection+All{id=many-7}", func() {}); seen["many-7"] != 3 || len(seen) != 1 {
		t.Errorf("with a filter: %v", seen)
	}

	for n := range 100 {
		happen(fmt.Sprint("late-", n))
	}
	seen, others = read("", func() {})
	if len(seen) != 100 || seen["late-7"] != 1 || others != 32 {
		t.Errorf("of 132 logs: %d, and %d others", len(seen), others)
	}
	var refused eventPage
	for _, bad := range []string{"x", "AA!", "AAEB", "maps=3"} {
		err := c.Call(t.Context(), "GET", "/v1/events?cursor="+url.QueryEscape(bad), nil, &refused)
		if !fault.Is(err, fault.Invalid) {
			t.Errorf("the cursor %q: %v", bad, err)
		}
	}
}

// TestEndOfAll: where more logs than a page reads go on in the archive only, the list ends and says why; where all
// is read to the first event, it says nothing.
func TestEndOfAll(t *testing.T) {
	c, q := serve(t, through)
	const logs = 25
	for n := range logs {
		placed(t, q, fmt.Sprint("maps-", n), 1)
	}
	if all, err := c.LogEvents(t.Context(), v1.EventFilter{}); err != nil || len(all.Items) != logs ||
		all.Incomplete != "" {
		t.Errorf("%d events; %q, %v", len(all.Items), all.Incomplete, err)
	}

	tx := q.Table.Begin(q.NewID())
	for n := range logs { // as if they were in the archive
		var row table.Head
		at := table.Key{PK: fmt.Sprint("LOG#maps-", n), SK: fmt.Sprintf("SEQ#%012d", 1)}
		if err := q.Table.Get(t.Context(), at, &row); err != nil {
			t.Fatal(err)
		}
		tx.Remove(&row)
	}
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	all, err := c.LogEvents(t.Context(), v1.EventFilter{})
	if err != nil || len(all.Items) != 0 ||
		!strings.HasPrefix(all.Incomplete, "the next events of 25 collections are no longer in the table") {
		t.Errorf("%d events; %q, %v", len(all.Items), all.Incomplete, err)
	}
}
