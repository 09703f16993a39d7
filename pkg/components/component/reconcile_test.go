package component

import (
	"context"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"archivist/pkg/kernel/table"
	"archivist/pkg/kernel/table/tabletest"
)

// reconcile reconciles all, a step in each call, and lets between do something after each.
func reconcile(t *testing.T, s *Store, between func()) (all Reconciled) {
	t.Helper()
	s.Table.Wait = func(context.Context, time.Duration) error { return nil }
	for cursor, more := "", true; more; more = cursor != "" {
		out, next, err := s.Reconcile(t.Context(), cursor, s.Now().Add(-time.Second))
		if err != nil {
			t.Fatal(err)
		}
		all.Add(out)
		cursor = next
		between()
	}
	return all
}

// write changes rows by hand.
func write(t *testing.T, s *Store, f func(tx *table.Tx)) {
	t.Helper()
	tx := s.Table.Begin(s.NewID())
	f(tx)
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// TestReconcile: each kind of damage is found, and repaired once.
func TestReconcile(t *testing.T) {
	s, ctx := newStore(t), t.Context()
	var metric float64
	s.Metric = func(name string, n float64) {
		if name == MetricReconciled {
			metric += n
		}
	}
	define(t, s, checker("check", "Checked"), checker("other", "Other"))
	backfill(t, s)
	ids := received(t, s, 30)
	none := reconcile(t, s, func() {})
	if none.repairs() > 0 || none.Items != 30 || none.Moving+none.Damaged+none.Behind > 0 {
		t.Fatalf("without damage: %+v", none)
	}
	row := func(id string) *itemRow {
		r, err := s.row(ctx, id)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	place := func(id string) table.Key { return placeKey("check", row(id).Places["check"]) }
	born := s.known.all[0].born
	for name, c := range map[string]struct {
		damage func(tx *table.Tx)
		is     func(r Reconciled) int
		want   int
	}{
		"a row of the line is lost": {func(tx *table.Tx) { tx.RemoveOwned(place(ids[1]), ids[1]) },
			func(r Reconciled) int { return r.Missing }, 1},
		"a row of another place": {func(tx *table.Tx) {
			k := placeKey("check", "ready#1#0000000000001#"+ids[2])
			tx.Insert(&placeRow{Head: table.Head{PK: k.PK, SK: k.SK}, Item: ids[2], Owner: ids[2]})
		}, func(r Reconciled) int { return r.Foreign }, 1},
		"a row of no item": {func(tx *table.Tx) {
			k := placeKey("other", "failed#item:none")
			tx.Insert(&placeRow{Head: table.Head{PK: k.PK, SK: k.SK}, Item: "item:none", Owner: "item:none"})
		}, func(r Reconciled) int { return r.Foreign }, 1},
		"another place in the item": {func(tx *table.Tx) {
			r := row(ids[3])
			delete(r.Places, "check")
			tx.Save(r)
			tx.RemoveOwned(placeKey("check", "ready#4#0000001000000#"+ids[3]), ids[3])
			tx.Count(countKey("check", born, shard(ids[3])), map[string]int64{"ready_n": -1})
		}, func(r Reconciled) int { return r.Places }, 1},
		"a wrong count": {func(tx *table.Tx) { tx.Count(countKey("check", born, 3), map[string]int64{"done_n": 4}) },
			func(r Reconciled) int { return r.Counts }, 1},
		"a lost count": {func(tx *table.Tx) {
			k := countKey("check", born, 4)
			tx.Remove(&countRow{Head: table.Head{PK: k.PK, SK: k.SK, Rev: revOf(t, s, k)}})
		}, func(r Reconciled) int { return r.Counts }, 1},
	} {
		write(t, s, c.damage)
		metric = 0
		got := reconcile(t, s, func() {})
		if c.is(got) != c.want || got.repairs() != c.want || len(got.Findings) != c.want || metric != float64(c.want) {
			t.Errorf("%s: %+v", name, got)
		}
		if again := reconcile(t, s, func() {}); again.repairs() > 0 {
			t.Errorf("%s, again: %+v", name, again)
		}
		checkLines(t, s)
	}
}

func revOf(t *testing.T, s *Store, k table.Key) int64 {
	t.Helper()
	var h table.Head
	if err := s.Table.Get(t.Context(), k, &h); err != nil {
		t.Fatal(err)
	}
	return h.Rev
}

// TestReconcileDamagedItem: an item that cannot be read is named, nothing of it is removed, and the
// others go on.
func TestReconcileDamagedItem(t *testing.T) {
	s := newStore(t)
	define(t, s, checker("check", "Checked"))
	backfill(t, s)
	ids := received(t, s, 5)
	damage(t, s, ids[2])
	got := reconcile(t, s, func() {})
	if got.Damaged == 0 || got.Foreign+got.Missing+got.Places > 0 || !strings.Contains(got.Findings[0], ids[2]) {
		t.Errorf("%+v", got)
	}
	if c := counted(t, s, "check"); c.Ready != 5 {
		t.Errorf("%+v", c)
	}
}

// TestReconcileBehind: an item whose consumer was lost learns of its subject, without a finding.
func TestReconcileBehind(t *testing.T) {
	s := newStore(t)
	define(t, s, Definition{Name: "check", Event: "Checked", PastSuccess: []string{"object.modify"},
		Future: []string{"Checked"}, Runnable: Runnable{Function: "x"}})
	backfill(t, s)
	happen(t, s, object(1), 1, "object.create", "record")
	if _, err := s.Sync(t.Context(), IDOf(ref(object(1)))); err != nil {
		t.Fatal(err)
	}
	happen(t, s, object(1), 2, "object.modify", "record")
	if got := reconcile(t, s, func() {}); got.Behind != 1 || got.repairs() > 0 {
		t.Errorf("%+v", got)
	}
	if c := counted(t, s, "check"); c.Ready != 1 {
		t.Errorf("%+v", c)
	}
}

// TestReconcileWhileItemsMove: what is right is not repaired while everything moves.
func TestReconcileWhileItemsMove(t *testing.T) {
	s := newStore(t)
	var plays []*play
	moves := false
	move := func(op string, call func() error) error {
		err := call()
		if moves && (op == "Query" || op == "BatchGetItem") { // after what the reconciliation read, items move
			moves = false
			pick(plays[0].rng, plays).step()
			moves = true
		}
		return err
	}
	s.Table = tabletest.Table(&tabletest.Client{DynamoDBAPI: tabletest.New(), Do: move})
	define(t, s, rules()...)
	backfill(t, s)
	now := int64(1_000_000)
	s.Now = func() time.Time { return time.UnixMilli(now) }
	for i := range uint64(40) {
		p := &play{t: t, s: s, rng: rand.New(rand.NewPCG(i, 2)), id: IDOf(ref(object(int(i)))), now: &now,
			subject: object(int(i)), claims: map[string]Claim{}}
		p.fact()
		p.change(nil)
		plays = append(plays, p)
	}
	moving := 0
	for range 3 {
		moves = true
		got := reconcile(t, s, func() {})
		moves = false
		moving += got.Moving
		if got.repairs() > 0 || got.Damaged > 0 {
			t.Fatalf("%+v", got)
		}
	}
	for _, p := range plays {
		p.change(nil)
	}
	if moving == 0 {
		t.Error("no item moved")
	}
	checkLines(t, s)
}

// TestReconcileBesideFill: a back-fill that ends, or a definition that is made, between any two calls of a
// reconciliation makes nothing wrong.
func TestReconcileBesideFill(t *testing.T) {
	for _, defines := range []bool{false, true} {
		for at, calls := 1, 1; at <= calls; at++ {
			s := newStore(t)
			define(t, s, checker("first", "First"))
			backfill(t, s)
			received(t, s, 3)
			define(t, s, checker("second", "Second"))
			calls = 0
			beside := func(_ string, call func() error) error {
				err := call()
				calls++
				if calls == at {
					if defines {
						define(t, s, checker("third", "Third"))
					}
					backfill(t, s)
				}
				return err
			}
			reader := again(s, tabletest.Table(&tabletest.Client{DynamoDBAPI: s.Table.DB.Client(), Do: beside}))
			got := reconcile(t, reader, func() {})
			if got.repairs() > 0 || got.Damaged > 0 {
				t.Errorf("the back-fill ends after call %d of %d: %+v", at, calls, got)
			}
		}
	}
}
