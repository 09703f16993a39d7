package component

import (
	"context"
	"errors"
	"testing"
	"time"

	"archivist/pkg/kernel/table"
	"archivist/pkg/kernel/table/tabletest"
)

// TestKeep: the tick fills, and reconciles once a day, a part in each call.
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
	for range 100 { // the back-fill, and the reconciliation of the first day
		now = now.Add(time.Second)
		keep()
	}
	lose()
	for range 100 {
		now = now.Add(time.Second)
		keep()
	}
	if n := rows(); n != 4 {
		t.Errorf("%d rows within the day", n)
	}
	now = now.Add(sweepEvery - time.Hour)
	for range 100 {
		keep()
	}
	if n := rows(); n != 4 {
		t.Errorf("%d rows within the day", n)
	}
	now = now.Add(time.Hour)
	calls := 0
	for ; rows() < 5 && calls < 100; calls++ {
		now = now.Add(time.Second)
		keep()
	}
	if calls == 0 || calls > 40 {
		t.Errorf("repaired after %d calls", calls)
	}
}

// TestKeepGoesPast: a page that cannot be reconciled is tried some times, and then does not hold up the others;
// the counts of its part are left as they are.
func TestKeepGoesPast(t *testing.T) {
	p := newWorkshop(t)
	d := checker("check", "Checked")
	define(t, p.Store, d)
	p.receive(40, 0)
	fails, tries := false, 0
	bad := p.runner(func(op string, call func() error) error {
		if fails && op == "BatchGetItem" {
			return tabletest.ErrDead
		}
		return call()
	})
	bad.Store.Table.Wait = func(context.Context, time.Duration) error { return nil }
	for range 200 { // until the first reconciliation is done
		p.now = p.now.Add(time.Second)
		if err := bad.Store.Keep(t.Context(), p.now.Add(-time.Second)); err != nil {
			t.Fatal(err)
		}
	}
	p.now = p.now.Add(sweepEvery)
	fails = true
	for ; tries < sweepTries; tries++ {
		if err := bad.Store.Keep(t.Context(), p.now.Add(-time.Second)); !errors.Is(err, tabletest.ErrDead) {
			t.Fatalf("try %d: %v", tries, err)
		}
	}
	var r sweepRow
	if err := p.Store.Table.Get(t.Context(), table.Key{PK: rowPK, SK: sweepSK}, &r); err != nil {
		t.Fatal(err)
	}
	var at sweep
	if err := decodeCursor(r.Cursor, &at); err != nil || at.Shard != 1 || r.Failed != 0 {
		t.Errorf("%v: it goes on at %+v, failed %d", err, at, r.Failed)
	}
	fails = false
	before := counted(t, p.Store, "check")
	for range 200 {
		p.now = p.now.Add(time.Second)
		if err := bad.Store.Keep(t.Context(), p.now.Add(-time.Second)); err != nil {
			t.Fatal(err)
		}
	}
	if err := p.Store.Table.Get(t.Context(), table.Key{PK: rowPK, SK: sweepSK}, &r); err != nil {
		t.Fatal(err)
	}
	if after := counted(t, p.Store, "check"); r.Cursor != "" || r.Next <= millis(p.now) || after != before {
		t.Errorf("it is at %q, the next at %d; the counts %+v, before %+v", r.Cursor, r.Next, after, before)
	}
}

// TestSkip: each page of a reconciliation can be left out, to the end.
func TestSkip(t *testing.T) {
	p := newWorkshop(t)
	define(t, p.Store, checker("check", "Checked"), checker("other", "Other"))
	p.receive(3, 0)
	cursor, steps := "", 0
	for ; steps < 100; steps++ {
		next, err := p.Store.skip(t.Context(), cursor)
		if err != nil {
			t.Fatal(err)
		}
		if next == cursor {
			break
		}
		cursor = next
	}
	if steps != shards+2 {
		t.Errorf("%d steps", steps)
	}
	if _, next, err := p.Store.Reconcile(t.Context(), cursor, p.now); err != nil || next != "" {
		t.Errorf("after the last page: %q, %v", next, err)
	}
}
