package api_test

import (
	"fmt"
	"net/url"
	"testing"

	v1 "archivist/pkg/api/v1"
	"archivist/pkg/events/consumer"
	"archivist/pkg/events/envelope"
	"archivist/pkg/views/acts"
)

// TestListActs: each act is on one page, newest first, also with a filter that finds few; a page
// reads a bounded number of times, and says how far it has looked.
func TestListActs(t *testing.T) {
	calls := 0
	c, q := serve(t, func(_ string, call func() error) error {
		calls++
		return call()
	})
	var b consumer.Batch
	const n = 2300
	for i := range n {
		subject := "letters"
		if i == 7 || i == n-1 {
			subject = "maps"
		}
		b.Events = append(b.Events, consumer.Item{Event: envelope.Event{
			ID:   fmt.Sprintf("tx%05d.0", i),
			Type: "collection.held", Action: "modify", Outcome: "success",
			Time: int64(1_000_000 + i), Version: int64(i),
			Subject: envelope.Ref{Type: "Collection", ID: subject},
			Context: envelope.Context{Actor: "ann"},
			Detail:  []byte(`{"reason":"r"}`)}})
	}
	if _, err := (acts.Recorder{Table: q.Table, NewID: q.NewID}).Handle(t.Context(), b); err != nil {
		t.Fatal(err)
	}

	paged := func(of string) (all []v1.Act, pages int) {
		t.Helper()
		for cursor := ""; pages == 0 || cursor != ""; pages++ {
			calls = 0
			p := page[v1.Act](t, c, "/v1/acts?"+of+"&cursor="+url.QueryEscape(cursor))
			if calls > 5 {
				t.Errorf("%s: a page takes %d calls", of, calls)
			}
			all, cursor = append(all, p.Items...), p.Cursor
		}
		return all, pages
	}
	all, _ := paged("actor=ann")
	if len(all) != n {
		t.Errorf("%d acts of %d", len(all), n)
	}
	for i, a := range all {
		if a.Version != int64(n-1-i) {
			t.Fatalf("act %d is the event %d", i, a.Version)
		}
	}
	if found, pages := paged("filter=" + url.QueryEscape("Collection+All{id=maps}")); len(found) != 2 || pages != 3 {
		t.Errorf("a filter found %d acts on %d pages", len(found), pages)
	}
	first, err := c.ActPage(t.Context(), v1.ActFilter{Filter: "Token+All"}, "")
	if err != nil || first.Cursor == "" || first.Looked == "" || len(first.Items) != 0 {
		t.Errorf("%+v, %v", first, err)
	}
}
