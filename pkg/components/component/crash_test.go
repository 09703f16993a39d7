package component

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"archivist/pkg/events/event"
	"archivist/pkg/kernel/table"
	"archivist/pkg/kernel/table/tabletest"
)

// crashWorld is a store with items and components, on a fake.
func crashWorld(t *testing.T) (*Store, *tabletest.Fake) {
	t.Helper()
	fake, n := tabletest.New(), atomic.Int64{}
	s := &Store{Table: tabletest.Through(fake, through), Now: func() time.Time { return time.UnixMilli(1_000_000) },
		Functions: []string{"x"}, NewID: func() string { return fmt.Sprintf("tx%04d", n.Add(1)) }}
	define(t, s, checker("first", "First"))
	backfill(t, s)
	received(t, s, 6)
	return s, fake
}

// again is a store of another process on the same table: it knows nothing.
func again(s *Store, tb *table.Table) *Store {
	return &Store{Table: tb, Now: s.Now, NewID: s.NewID, Functions: s.Functions}
}

// TestCrashes: each action dies at each of its calls and is repeated. Then it is done once, and each line
// has what it should have.
func TestCrashes(t *testing.T) {
	by := By{Actor: "ada", Reason: "because", Request: "r1"}
	changed := checker("first", "First")
	changed.Items = &Items{IDs: []string{"item:d0001"}}
	for name, c := range map[string]struct {
		prepare func(t *testing.T, s *Store)
		act     func(ctx context.Context, s *Store) error
		events  int // of the component "first", in the end; its creation is one
		ready   int64
	}{
		"apply": {func(*testing.T, *Store) {}, func(ctx context.Context, s *Store) error {
			_, err := s.Apply(ctx, changed, by)
			return err
		}, 2, 1},
		"pause": {func(*testing.T, *Store) {}, func(ctx context.Context, s *Store) error {
			return s.Pause(ctx, "first", by)
		}, 2, 6},
		"fill": {func(t *testing.T, s *Store) { define(t, s, changed) }, func(ctx context.Context, s *Store) error {
			_, err := s.Backfill(ctx, s.Now())
			return err
		}, 2, 1},
		"delete": {func(*testing.T, *Store) {}, func(ctx context.Context, s *Store) error {
			return s.Delete(ctx, "first", by)
		}, 2, 0},
		"reconcile": {func(t *testing.T, s *Store) {
			write(t, s, func(tx *table.Tx) {
				tx.RemoveOwned(placeKey("first", "ready#4#0000001000000#item:d0002"), "item:d0002")
				tx.Count(countKey("first", 1, shard("item:d0004")), map[string]int64{"failed_n": 2})
				k := placeKey("first", "failed#item:none")
				tx.Insert(&placeRow{Head: table.Head{PK: k.PK, SK: k.SK}, Item: "item:none", Owner: "item:none"})
			})
		}, func(ctx context.Context, s *Store) error {
			_, _, err := s.Reconcile(ctx, "", s.Now())
			return err
		}, 1, 6},
	} {
		t.Run(name, func(t *testing.T) {
			tabletest.Crashes(t, 1, func(t *testing.T, m *tabletest.Mortal) {
				s, fake := crashWorld(t)
				c.prepare(t, s)
				err := c.act(t.Context(), again(s, tabletest.Through(fake, m.Do)))
				if err != nil && !m.Dead() {
					t.Fatal(err)
				}
				if err := c.act(t.Context(), again(s, s.Table)); err != nil {
					t.Fatalf("again: %v", err)
				}
				s = again(s, s.Table)
				backfill(t, s)
				checkCrashed(t, s, c.events, c.ready)
			})
		})
	}
}

// checkCrashed checks what there is in the end.
func checkCrashed(t *testing.T, s *Store, events int, ready int64) {
	t.Helper()
	rows, _, err := event.Page(t.Context(), s.Table, event.Subject{Type: event.Component, ID: "first"}, "")
	if err != nil || len(rows) != events {
		t.Errorf("%d events, %v", len(rows), err)
	}
	checkLines(t, s)
	if ready > 0 {
		if c := counted(t, s, "first"); c.Ready != ready {
			t.Errorf("%+v", c)
		}
		return
	}
	for _, prefix := range []string{"count#", Ready, Failed} {
		var left []table.Head
		if _, err := s.Table.Page(t.Context(), table.Query{PK: linePK("first"), Prefix: prefix}, &left); err != nil ||
			len(left) > 0 {
			t.Errorf("%d rows of a deleted component, %v", len(left), err)
		}
	}
}
