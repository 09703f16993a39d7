package api_test

import (
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"archivist/pkg/events/event"
	"archivist/pkg/events/eventlog"
	"archivist/pkg/ingest/collection"
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
		if p.Cursor != "" {
			t.Errorf("there is a cursor %q", p.Cursor)
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
