package api_test

import (
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"

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
