package collection_test

import (
	"fmt"
	"testing"

	"archivist/pkg/events/event"
	"archivist/pkg/ingest/collection"
	"archivist/pkg/kernel/table"
	"archivist/pkg/kernel/table/tabletest"
)

// TestEventsOfEarlierReleases: events in the partition of the bare name move once to the
// partition of the row, and new events follow them.
func TestEventsOfEarlierReleases(t *testing.T) {
	n := 0
	tb := tabletest.Open(t)
	s := collection.Store{Table: tb, NewID: func() string { n++; return fmt.Sprint("id", n) }}
	put := func(title string) {
		t.Helper()
		if err := s.Put(t.Context(), "SLOT", collection.Profile{Title: title},
			collection.By{Actor: "me"}, 1); err != nil {
			t.Fatal(err)
		}
	}
	const old = 120 // more than one transaction can move
	for i := range old {
		put(fmt.Sprint("title ", i))
	}
	there := event.Subject{Type: event.Collection, ID: "SLOT"}
	for moved := 0; moved < old; moved++ { // as an earlier release left them
		k := event.Key(there, int64(moved+1))
		var row event.Row
		if err := tb.Get(t.Context(), k, &row); err != nil {
			t.Fatal(err)
		}
		tx := tb.Begin(fmt.Sprint("back", moved))
		bare := row
		bare.PK = "SLOT"
		tx.Insert(&bare)
		tx.Remove(&row)
		if err := tx.Commit(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if rows, _, err := event.Page(t.Context(), tb, there, ""); err != nil || len(rows) != 0 {
		t.Fatalf("%d events, %v", len(rows), err)
	}
	put("one more")
	var all []event.Row
	for cursor, more := "", true; more; more = cursor != "" {
		rows, next, err := s.Events(t.Context(), "SLOT", cursor)
		if err != nil {
			t.Fatal(err)
		}
		all, cursor = append(all, rows...), next
	}
	for i, e := range all {
		if e.Version != int64(i+1) {
			t.Fatalf("event %d has version %d", i+1, e.Version)
		}
	}
	if len(all) != old+1 {
		t.Errorf("%d events; expected %d", len(all), old+1)
	}
	var left []event.Row
	if _, err := tb.Page(t.Context(), table.Query{PK: "SLOT", Prefix: event.Prefix}, &left); err != nil ||
		len(left) != 0 {
		t.Errorf("%d events are left in the bare partition, %v", len(left), err)
	}
}

// TestEventsOfOthers: a name that no collection can have moves nothing.
func TestEventsOfOthers(t *testing.T) {
	tb := tabletest.Open(t)
	s := collection.Store{Table: tb, NewID: func() string { return "id" }}
	tx := tb.Begin("tx")
	job := event.Subject{Type: event.Job, ID: "1"}
	if err := event.Append(tx, job, 1, event.New{Type: "job.state"}); err != nil {
		t.Fatal(err)
	}
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.Events(t.Context(), "JOB#1", ""); err != nil {
		t.Fatal(err)
	}
	if rows, _, err := event.Page(t.Context(), tb, job, ""); err != nil || len(rows) != 1 {
		t.Errorf("the job has %d events, %v", len(rows), err)
	}
}

// TestEventsWithoutProfile: an event of a collection without a profile gives it none, and a
// profile that is put later is its own, also one without any setting.
func TestEventsWithoutProfile(t *testing.T) {
	n := 0
	tb := tabletest.Open(t)
	s := collection.Store{Table: tb, NewID: func() string { n++; return fmt.Sprint("id", n) }}
	record := func() {
		t.Helper()
		tx := tb.Begin(s.NewID())
		if err := s.Record(t.Context(), tx, "maps", event.New{Type: "collection.held"}); err != nil {
			t.Fatal(err)
		}
		if err := tx.Commit(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	known := func(want bool) {
		t.Helper()
		if _, known, err := s.Profile(t.Context(), "maps"); err != nil || known != want {
			t.Errorf("it has a profile: %v, %v", known, err)
		}
	}
	record()
	record()
	known(false)
	for range 2 { // the second time nothing changes
		if err := s.Put(t.Context(), "maps", collection.Profile{}, collection.By{Actor: "me"}, 1); err != nil {
			t.Fatal(err)
		}
	}
	known(true)
	record()
	known(true)
	rows, _, err := s.Events(t.Context(), "maps", "")
	if err != nil || len(rows) != 4 || rows[2].Type != "collection.profile" || rows[3].Version != 4 {
		t.Errorf("%+v, %v", rows, err)
	}
	if err := s.Record(t.Context(), tb.Begin("tx"), "a/b", event.New{}); err == nil {
		t.Error("a name that no collection can have is accepted")
	}
}
