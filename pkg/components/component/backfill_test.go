package component

import (
	"context"
	"fmt"
	"testing"
	"time"

	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/table/tabletest"
)

// received makes custom items that were received.
func received(t *testing.T, s *Store, n int) (ids []string) {
	t.Helper()
	for i := range n {
		id := fmt.Sprintf("item:d%04d", i)
		record(t, s, id, "Received")
		ids = append(ids, id)
	}
	return ids
}

// record records events of an item, and makes it if it is new.
func record(t *testing.T, s *Store, id string, events ...string) {
	t.Helper()
	_, err := s.change(t.Context(), id, func(c *change) error {
		if c.item().Version == 0 {
			if err := c.append("item.create", "", "items", By{Actor: "eva"}, Shape{}); err != nil {
				return err
			}
		}
		for _, e := range events {
			if err := c.append("item.event", "", "items", By{Actor: "eva"}, Registered{Event: e}); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// backfill does the whole back-fill.
func backfill(t *testing.T, s *Store) {
	t.Helper()
	if more, err := s.Backfill(t.Context(), s.Now()); more || err != nil {
		t.Fatal(more, err)
	}
}

// counted are the numbers of a component's items.
func counted(t testing.TB, s *Store, name string) Counts {
	t.Helper()
	c, err := s.Counts(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestFill: a new component finds the items that are there already, a changed one those that it can
// work on now, and one made again under the name of a deleted one begins with an empty line.
func TestFill(t *testing.T) {
	s, ctx := newStore(t), t.Context()
	received(t, s, 40)
	define(t, s, checker("check", "Checked"))
	if c := counted(t, s, "check"); c.Ready != 0 {
		t.Errorf("before the back-fill: %+v", c)
	}
	backfill(t, s)
	if c, err := s.Get(ctx, "check"); err != nil || c.Backfill != nil || counted(t, s, "check").Ready != 40 {
		t.Errorf("%+v, %v", c, err)
	}
	d := checker("check", "Checked")
	d.Items, d.Wake = &Items{IDs: []string{"item:d0003"}}, true
	s.Wake = func(_ context.Context, name string) error {
		t.Errorf("%s was woken by the back-fill", name)
		return nil
	}
	define(t, s, d)
	if c, err := s.Get(ctx, "check"); err != nil || c.Backfill == nil {
		t.Errorf("%+v, %v", c, err)
	}
	backfill(t, s)
	if c := counted(t, s, "check"); c != (Counts{Ready: 1, Oldest: 1_000_000}) {
		t.Errorf("of one item: %+v", c)
	}
	s.Wake = nil
	for range 2 {
		if err := s.Delete(ctx, "check", By{Reason: "again"}); err != nil {
			t.Fatal(err)
		}
		define(t, s, checker("check", "Checked"))
		record(t, s, "item:d0003", "Counted") // its row has a place of the deleted component
		backfill(t, s)
		if c := counted(t, s, "check"); c.Ready != 40 {
			t.Errorf("made again: %+v", c)
		}
	}
	d.Items, d.MaxItems = nil, 3
	define(t, s, d) // only what decides places opens a back-fill
	if c, err := s.Get(ctx, "check"); err != nil || c.Backfill != nil || c.MaxItems != 3 {
		t.Errorf("%+v, %v", c, err)
	}
}

// TestFillIsBounded: a back-fill that ends before it is done goes on from there, and begins anew if a
// component is applied meanwhile. What it shows is how far it is, and it is not done before all parts are.
func TestFillIsBounded(t *testing.T) {
	s, ctx := newStore(t), t.Context()
	all := int64(len(received(t, s, 10)))
	for i := 0; all < 2*backfillPage+30; i++ { // one part has most items
		if id := fmt.Sprintf("item:s%d", i); shard(id) == 3 {
			record(t, s, id, "Received")
			all++
		}
	}
	define(t, s, checker("check", "Checked"))
	now := time.UnixMilli(2_000_000)
	s.Now = func() time.Time { now = now.Add(time.Second); return now }
	step := func() bool {
		more, err := s.Backfill(ctx, now)
		if err != nil {
			t.Fatal(err)
		}
		return more
	}
	if !step() {
		t.Fatal("all was done in one step")
	}
	c, err := s.Get(ctx, "check")
	if err != nil || c.Backfill == nil || c.Backfill.Items < backfillPage || c.Backfill.Items >= all ||
		c.Backfill.Shard != 15 {
		t.Fatalf("%+v, %v", c.Backfill, err)
	}
	define(t, s, checker("other", "Other"))
	if c, err := s.Get(ctx, "check"); err != nil || c.Backfill == nil || c.Backfill.Items != 0 {
		t.Fatalf("%+v, %v", c.Backfill, err)
	}
	steps := 1
	for ; step(); steps++ {
		if c, err := s.Get(ctx, "other"); err != nil || c.Backfill == nil {
			t.Fatalf("it says that it is done: %+v, %v", c, err)
		}
	}
	for _, name := range []string{"check", "other"} {
		if c := counted(t, s, name); c.Ready != all || steps < 3 {
			t.Errorf("%s: %+v after %d steps", name, c, steps)
		}
	}
}

// TestFillGoesOnPastDamage: an item whose row cannot be read does not stop the others.
func TestFillGoesOnPastDamage(t *testing.T) {
	s := newStore(t)
	ids := received(t, s, 10)
	damage(t, s, ids[4])
	define(t, s, checker("check", "Checked"))
	backfill(t, s)
	if c := counted(t, s, "check"); c.Ready != 9 {
		t.Errorf("%+v", c)
	}
}

// damage makes the row of an item unreadable.
func damage(t *testing.T, s *Store, id string) {
	t.Helper()
	r, err := s.row(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	r.Text = "{"
	tx := s.Table.Begin(s.NewID())
	tx.Save(r)
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Sync(t.Context(), id); !fault.Is(err, fault.Invalid) {
		t.Fatal(err)
	}
}

// TestLateChange: a change of an item that was decided by definitions of before is decided again.
func TestLateChange(t *testing.T) {
	s, ctx := newStore(t), t.Context()
	define(t, s, checker("check", "Checked"))
	record(t, s, "item:d1")
	backfill(t, s)
	tries := 0
	_, err := s.change(ctx, "item:d1", func(c *change) error {
		tries++
		if tries == 1 { // before it is saved, the component is made anew
			again := &Store{Table: s.Table, Now: s.Now, NewID: s.NewID, Functions: s.Functions,
				Wake: func(context.Context, string) error { return nil }}
			if err := again.Delete(ctx, "check", By{Reason: "again"}); err != nil {
				return err
			}
			if _, err := again.Apply(ctx, checker("check", "Checked"), By{}); err != nil {
				return err
			}
		}
		return c.append("item.event", "", "items", By{Actor: "eva"}, Registered{Event: "Received"})
	})
	if err != nil || tries != 2 {
		t.Fatal(tries, err)
	}
	backfill(t, s)
	if c := counted(t, s, "check"); c.Ready != 1 {
		t.Errorf("%+v", c)
	}
}

// TestDefinitionsAreOfOneEpoch: definitions that change while they are read are read again: no item is
// decided by some that are newer than their epoch.
func TestDefinitionsAreOfOneEpoch(t *testing.T) {
	s := newStore(t)
	define(t, s, checker("check", "Checked"))
	applied := false
	change := func(op string, call func() error) error {
		if op == "Query" && !applied { // the head was read
			applied = true
			define(t, s, checker("other", "Other"))
		}
		return call()
	}
	reader := &Store{Now: s.Now, NewID: s.NewID,
		Table: tabletest.Table(&tabletest.Client{DynamoDBAPI: s.Table.DB.Client(), Do: change})}
	reader.Table.Rows = reader.Table.DB.Table(s.Table.Rows.Name())
	defs, err := reader.load(t.Context())
	if err != nil || len(defs.all) != 2 {
		t.Fatal(defs, err)
	}
	for _, c := range defs.all {
		if c.born > defs.epoch {
			t.Errorf("%s is of epoch %d, the definitions are of epoch %d", c.Name, c.born, defs.epoch)
		}
	}
}

// TestNewItemByNewestDefinitions: while an item is made, a component is added and its back-fill ends. The item is
// decided by it, too: no back-fill would see it again. So it is with a registry of an earlier release, which has one
// row for the epoch.
func TestNewItemByNewestDefinitions(t *testing.T) {
	once := func(name, event string) Definition {
		return Definition{Name: name, Event: event, Types: []string{"Crate"}, Future: []string{event},
			Runnable: Runnable{Function: "x"}}
	}
	for _, earlier := range []bool{false, true} {
		s := newStore(t)
		define(t, s, once("check", "Checked"))
		if earlier {
			h, err := s.head(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			h.Spread = false
			tx := s.Table.Begin(s.NewID())
			tx.Save(&h)
			if err := tx.Commit(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		added := false
		writer := again(s, tabletest.Table(&tabletest.Client{DynamoDBAPI: s.Table.DB.Client(),
			Do: func(op string, call func() error) error {
				if op == "TransactWriteItems" && !added {
					added = true
					define(t, s, once("other", "Other"))
					backfill(t, s)
				}
				return call()
			}}))
		writer.Table.Rows = writer.Table.DB.Table(s.Table.Rows.Name())
		by := By{Actor: "ada", Reason: "a delivery"}
		_, err := writer.Create(t.Context(), "item:new", CustomItem{Types: []string{"Crate"}}, by)
		if err != nil || !added {
			t.Fatal(added, err)
		}
		for _, name := range []string{"check", "other"} {
			if c := counted(t, s, name); c.Ready != 1 {
				t.Errorf("with one row: %v: %s has %+v", earlier, name, c)
			}
		}
	}
}
