package component

import (
	"testing"
	"time"

	"archivist/pkg/table"
)

// TestKeep: the tick fills, and reconciles once an hour, a part in each call.
func TestKeep(t *testing.T) {
	s := newStore(t)
	now := time.UnixMilli(1_000_000)
	s.Now = func() time.Time { return now }
	keep := func() {
		t.Helper()
		if err := s.Keep(t.Context(), now.Add(-time.Second)); err != nil {
			t.Fatal(err)
		}
	}
	keep() // no component: nothing to do
	received(t, s, 5)
	define(t, s, checker("check", "Checked"))
	lose := func() {
		t.Helper()
		var page []placeRow
		if _, err := s.Table.Page(t.Context(), table.Query{PK: linePK("check"), Prefix: Ready}, &page); err != nil {
			t.Fatal(err)
		}
		if len(page) == 5 {
			write(t, s, func(tx *table.Tx) { tx.Remove(&page[0]) })
		}
	}
	rows := func() int {
		list, _, err := s.Line(t.Context(), "check", Ready, "", 100)
		if err != nil {
			t.Fatal(err)
		}
		return len(list)
	}
	for range 100 { // the back-fill, and the reconciliation of the first hour
		now = now.Add(time.Second)
		keep()
	}
	lose()
	for range 100 {
		now = now.Add(time.Second)
		keep()
	}
	if n := rows(); n != 4 {
		t.Errorf("%d rows within the hour", n)
	}
	now = now.Add(sweepEvery)
	calls := 0
	for ; rows() < 5 && calls < 100; calls++ {
		now = now.Add(time.Second)
		keep()
	}
	if calls == 0 || calls > 40 {
		t.Errorf("repaired after %d calls", calls)
	}
}
