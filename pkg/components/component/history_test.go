package component

import (
	"testing"
	"time"

	"archivist/pkg/events/event"
	"archivist/pkg/kernel/fault"
)

// TestHistory: events of the subject and of the item are in the order of time, in pages; those that were
// revoked are marked.
func TestHistory(t *testing.T) {
	s := newStore(t)
	now := int64(1_000_000)
	s.Now = func() time.Time { return time.UnixMilli(now) }
	const batch = "batch:b1"
	of, _ := subjectOf(batch)
	subject := func(version int64) {
		tx := s.Table.Begin(s.NewID())
		err := event.Append(tx, of, version, event.New{Type: "batch.held", Time: now, Component: "queue"})
		if err == nil {
			err = tx.Commit(t.Context())
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	want := []string{}
	for i := range int64(40) {
		subject(i + 1)
		do(t)(s.Register(t.Context(), batch, "Checked", "", by("")))
		want = append(want, "batch.held", "Checked revoked")
		now += i % 2 // some at the same time
	}
	do(t)(s.Revoke(t.Context(), batch, []string{"Checked"}, by("")))
	do(t)(s.Register(t.Context(), batch, "Checked", "", by("")))
	want = append(want, "item.revoke", "Checked")

	got := map[string]int{}
	var last Happened
	all, pages := 0, 0
	for cursor := ""; ; {
		page, next, err := s.History(t.Context(), batch, cursor)
		if err != nil {
			t.Fatal(err)
		}
		pages++
		for _, h := range page {
			if h.Time < last.Time {
				t.Errorf("%d follows %d", h.Time, last.Time)
			}
			if h.Revoked {
				h.Name += " revoked"
			}
			got[h.Name]++
			last = h
			all++
		}
		if next == "" {
			break
		}
		cursor = next
	}
	if all != len(want) || pages != 2 || got["batch.held"] != 40 || got["Checked revoked"] != 40 ||
		got["Checked"] != 1 || last.Name != "Checked" {
		t.Errorf("%d events on %d pages: %v", all, pages, got)
	}
	for _, cursor := range []string{"x", "1-2x", "-1-2"} {
		if _, _, err := s.History(t.Context(), batch, cursor); !fault.Is(err, fault.Invalid) {
			t.Errorf("the cursor %q: %v", cursor, err)
		}
	}
	if _, _, err := s.History(t.Context(), "batch:none", ""); !fault.Is(err, fault.NotFound) {
		t.Error(err)
	}
}
