package table_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/table"
	"archivist/pkg/kernel/table/tabletest"
)

type thing struct {
	table.Head
	Name  string `dynamo:"word"`
	Owner string `dynamo:"owned_by,omitempty"`
	Count int64  `dynamo:"n,omitempty"`
}

func newThing(pk, sk string) *thing { return &thing{Head: table.Head{PK: pk, SK: sk}} }

func commit(t *testing.T, tb *table.Table, id string, f func(*table.Tx)) {
	t.Helper()
	tx := tb.Begin(id)
	f(tx)
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatalf("commit %s: %v", id, err)
	}
}

func get(t *testing.T, tb *table.Table, k table.Key) thing {
	t.Helper()
	var got thing
	if err := tb.Get(t.Context(), k, &got); err != nil {
		t.Fatal(err)
	}
	return got
}

func TestRevIsTheFence(t *testing.T) {
	tb := tabletest.Open(t)
	a := newThing("a", "x")
	commit(t, tb, "1", func(tx *table.Tx) { tx.Insert(a); tx.Insert(newThing("b", "x")) })
	stale := get(t, tb, a.Key())
	commit(t, tb, "2", func(tx *table.Tx) { a.Name = "second"; tx.Save(a) })
	tx := tb.Begin("3")
	stale.Name = "third"
	tx.Save(&stale)
	err := tx.Commit(t.Context())
	var ce *table.ConditionError
	if !fault.Is(err, fault.Stale) || !errors.As(err, &ce) || !ce.Failed(a.Key()) {
		t.Fatalf("a stale save gave %v", err)
	}
	if got := get(t, tb, a.Key()); got.Name != "second" || got.Rev != 2 || got.TxID != "2" {
		t.Errorf("the row is %+v", got)
	}
}

// TestInsertOrSave: a new row must not exist yet, and one that was read must not have been written since.
func TestInsertOrSave(t *testing.T) {
	tb := tabletest.Open(t)
	a := newThing("a", "x")
	commit(t, tb, "1", func(tx *table.Tx) { tx.InsertOrSave(a) })
	read := get(t, tb, a.Key())
	commit(t, tb, "2", func(tx *table.Tx) { a.Name = "second"; tx.InsertOrSave(a) })
	for id, row := range map[string]*thing{"inserted again": newThing("a", "x"), "saved again": &read} {
		tx := tb.Begin(id)
		tx.InsertOrSave(row)
		if err := tx.Commit(t.Context()); !fault.Is(err, fault.Stale) {
			t.Errorf("%s: %v", id, err)
		}
	}
	if got := get(t, tb, a.Key()); got.Name != "second" || got.Rev != 2 {
		t.Errorf("the row is %+v", got)
	}
}

func TestTransactionIsWhole(t *testing.T) {
	tb := tabletest.Open(t)
	commit(t, tb, "1", func(tx *table.Tx) { tx.Insert(newThing("lock", "x")) })
	for name, second := range map[string]func(*table.Tx){
		"insert": func(tx *table.Tx) { tx.Insert(newThing("lock", "x")) },
		"remove": func(tx *table.Tx) { tx.RemoveOwned(table.Key{PK: "lock", SK: "x"}, "nobody") },
		"check":  func(tx *table.Tx) { tx.Require(table.Key{PK: "lock", SK: "x"}, "n = ?", 7) },
		"count":  func(tx *table.Tx) { tx.Count(table.Key{PK: "gone", SK: "x"}, map[string]int64{"n": 1}) },
	} {
		tx := tb.Begin("2")
		tx.Insert(newThing("new", name))
		second(tx)
		if err := tx.Commit(t.Context()); !fault.Is(err, fault.Stale) {
			t.Errorf("%s: got %v, want Stale", name, err)
		}
		var row thing
		if err := tb.Get(t.Context(), table.Key{PK: "new", SK: name}, &row); !fault.Is(err, fault.NotFound) {
			t.Errorf("%s: half of the transaction was written: %v", name, err)
		}
	}
}

// TestCountAndRemoveOwned: each change goes along with a row that proves it. Without one, a response that is lost
// on the way from an emulator would be a second count, or a Stale.
func TestCountAndRemoveOwned(t *testing.T) {
	tb := tabletest.Open(t)
	k := table.Key{PK: "c", SK: "x"}
	row := newThing("c", "x")
	row.Owner = "me"
	commit(t, tb, "1", func(tx *table.Tx) { tx.Insert(row) })
	commit(t, tb, "2", func(tx *table.Tx) { tx.Count(k, map[string]int64{"n": 3}); tx.Insert(newThing("b", "x")) })
	commit(t, tb, "3", func(tx *table.Tx) { tx.Count(k, map[string]int64{"n": -1}); tx.Insert(newThing("d", "x")) })
	if got := get(t, tb, k); got.Count != 2 || got.Rev != 3 {
		t.Errorf("counted %+v", got)
	}
	commit(t, tb, "4", func(tx *table.Tx) { tx.RemoveOwned(k, "me"); tx.Insert(newThing("e", "x")) })
	var gone thing
	if err := tb.Get(t.Context(), k, &gone); !fault.Is(err, fault.NotFound) {
		t.Errorf("after removal: %v", err)
	}
}

func TestPages(t *testing.T) {
	tb := tabletest.Open(t)
	for i := range 7 {
		row := newThing("p", fmt.Sprintf("s%d", i))
		row.WorkPK, row.WorkSK = "gate", fmt.Sprintf("%03d", 9-i)
		commit(t, tb, fmt.Sprint(i), func(tx *table.Tx) { tx.Insert(row) })
	}
	walk := func(q table.Query) (got string) {
		for {
			var rows []thing
			next, err := tb.Page(t.Context(), q, &rows)
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range rows {
				got += r.SK[1:]
			}
			q.Cursor = next
			if next == "" {
				return got
			}
		}
	}
	for want, q := range map[string]table.Query{
		"0123456": {PK: "p", Limit: 3},
		"6543210": {PK: "p", Limit: 2, Desc: true},
		"6543":    {Index: "work", PK: "gate", From: "0", To: "006", Limit: 3},
		"345":     {PK: "p", From: "s3", To: "s5", Limit: 1},
		"456":     {PK: "p", From: "s4"},
		"2":       {PK: "p", Prefix: "s2"},
		"":        {PK: "nothing"},
	} {
		if got := walk(q); got != want {
			t.Errorf("%+v: got %s, want %s", q, got, want)
		}
	}
	for _, q := range []table.Query{{PK: "p", From: "s5", To: "s3"},
		{Index: "work", PK: "gate", From: "006", To: "0"}} {
		if got := walk(q); got != "" {
			t.Errorf("a range that ends before it begins: %+v: got %s", q, got)
		}
	}
	var rows []thing
	if _, err := tb.Page(t.Context(), table.Query{PK: "p", Cursor: "rubbish"}, &rows); !fault.Is(err, fault.Invalid) {
		t.Errorf("a bad cursor gave %v", err)
	}
}

// TestCommitChangesTheRowAfterwards: a row is as the caller left it until the
// commit has succeeded, whatever the commit failed for.
func TestCommitChangesTheRowAfterwards(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		down := false
		tb := tabletest.Table(&tabletest.Client{DynamoDBAPI: tabletest.New(),
			Do: func(_ string, call func() error) error {
				if down {
					return errors.New("the connection broke")
				}
				return call()
			}})
		row, other := newThing("a", "x"), newThing("b", "x")
		order := ""
		commit(t, tb, "1", func(tx *table.Tx) {
			tx.OnCommit(func() { order += "1" })
			tx.Insert(row)
			tx.OnCommit(func() { order += fmt.Sprintf(" 2 rev %d", row.Rev) })
		})
		if order != "1 2 rev 1" || row.TxID != "1" {
			t.Errorf("after the commit ran %q, the row is %+v", order, row)
		}
		for name, c := range map[string]struct {
			spoil func(tx *table.Tx)
			want  fault.Kind
		}{
			"too many rows": {func(tx *table.Tx) {
				for i := range table.MaxActions {
					tx.Insert(newThing("m", fmt.Sprint(i)))
				}
			}, fault.Invalid},
			"a row too large": {func(tx *table.Tx) {
				tx.Insert(&thing{Head: table.Head{PK: "l", SK: "x"}, Name: string(make([]byte, table.MaxRowBytes))})
			}, fault.Invalid},
			"too many bytes": {func(tx *table.Tx) {
				for i := range 12 {
					tx.Insert(&thing{Head: table.Head{PK: "l", SK: fmt.Sprint(i)}, Name: string(make([]byte, 390<<10))})
				}
			}, fault.Invalid},
			"a condition": {func(tx *table.Tx) { tx.Require(table.Key{PK: "gone", SK: "x"}, "n = ?", 7) },
				fault.Stale},
			"not answered": {func(*table.Tx) { down = true }, fault.Unavailable},
		} {
			before := *row
			tx := tb.Begin("2")
			tx.Save(row)
			tx.Insert(other)
			tx.OnCommit(func() { t.Errorf("%s: OnCommit ran", name) })
			c.spoil(tx)
			if err := tx.Commit(t.Context()); !fault.Is(err, c.want) {
				t.Errorf("%s: got %v, want %s", name, err, c.want)
			}
			down = false
			if *row != before || other.Rev != 0 || other.TxID != "" {
				t.Errorf("%s: the failed commit changed the rows: %+v, %+v", name, row, other)
			}
		}
		commit(t, tb, "3", func(tx *table.Tx) { tx.Save(row) }) // what was read is still its fence
	})
}

// TestCursorsOfOtherLists: a cursor of another partition, kind of rows or index is refused.
func TestCursorsOfOtherLists(t *testing.T) {
	tb := tabletest.Open(t)
	for i := range 4 {
		for _, pk := range []string{"p", "q"} {
			row := newThing(pk, fmt.Sprintf("s%d", i))
			row.WorkPK, row.WorkSK = "gate "+pk, fmt.Sprint(i)
			commit(t, tb, fmt.Sprint(pk, i), func(tx *table.Tx) { tx.Insert(row) })
		}
	}
	lists := []table.Query{{PK: "p"}, {PK: "q"}, {PK: "q", Prefix: "s"}, {PK: "p", Prefix: "t"},
		{Index: "work", PK: "gate p"}, {Index: "work", PK: "gate q"}}
	for i, from := range lists {
		var rows []thing
		from.Limit = 2
		cursor, err := tb.Page(t.Context(), from, &rows)
		if err != nil || cursor == "" && from.Prefix != "t" {
			t.Fatalf("%+v: %q, %v", from, cursor, err)
		}
		for k, to := range lists {
			same := from.PK == to.PK && (to.Prefix == "" || to.Prefix == "s")
			to.Cursor = cursor
			_, err := tb.Page(t.Context(), to, &rows)
			if cursor != "" && same != (err == nil) || err != nil && !fault.Is(err, fault.Invalid) {
				t.Errorf("the cursor of list %d in list %d: %v", i, k, err)
			}
		}
	}
}

// TestSlowPage: a page that comes too late is read again, whole and once.
func TestSlowPage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked := 0
		tb := tabletest.Table(&tabletest.Client{DynamoDBAPI: tabletest.New(),
			Do: func(op string, call func() error) error {
				if op == "Query" {
					asked++
					if asked == 1 {
						defer time.Sleep(time.Minute / 4) // of the bubble
					}
				}
				return call()
			}})
		for i := range 3 {
			commit(t, tb, fmt.Sprint(i), func(tx *table.Tx) { tx.Insert(newThing("p", fmt.Sprint(i))) })
		}
		rows := []thing{{Name: "of before"}}
		if _, err := tb.Page(t.Context(), table.Query{PK: "p"}, &rows); err != nil || len(rows) != 3 || asked != 2 {
			t.Errorf("%d rows after %d requests, %v", len(rows), asked, err)
		}
	})
}

// TestAmbiguousCommits: whatever happens to the answer, Commit tells the truth.
func TestAmbiguousCommits(t *testing.T) {
	lost := errors.New("the connection broke")
	cases := map[string]struct {
		do   func(n int, call func() error) error // n counts the writes
		want fault.Kind
	}{
		"the answer is lost":     {func(n int, call func() error) error { return after(n == 1, call, lost) }, ""},
		"lost before the effect": {func(n int, call func() error) error { return before(n == 1, call, lost) }, ""},
		"repeated by the SDK":    {func(n int, call func() error) error { _ = call(); return call() }, ""},
		"throttled, then lost": {func(n int, call func() error) error {
			return throttledThenLost(n, call,
				lost)
		}, ""},
		"conflicts, then happens": {func(n int, call func() error) error {
			return before(n < 5, call,
				tabletest.Conflicted())
		}, ""},
		"conflicts for ever": {func(n int, call func() error) error { return tabletest.Conflicted() },
			fault.Unavailable},
		"never answered, no effect":   {func(n int, call func() error) error { return lost }, fault.Unavailable},
		"never answered, but effects": {func(n int, call func() error) error { _ = call(); return lost }, ""},
	}
	for name, c := range cases {
		for _, rows := range []int{1, 3} {
			synctest.Test(t, func(t *testing.T) {
				fake := tabletest.New()
				n := 0
				tb := tabletest.Table(&tabletest.Client{DynamoDBAPI: fake,
					Do: func(op string, call func() error) error {
						if op == "GetItem" {
							return call()
						}
						n++
						return c.do(n, call)
					}})
				started := time.Now()
				tx := tb.Begin("mine")
				for i := range rows {
					tx.Insert(newThing("r", fmt.Sprint(i)))
				}
				if err := tx.Commit(t.Context()); fault.Of(err) != c.want || (err == nil) != (c.want == "") {
					t.Errorf("%s, %d rows: got %v, want kind %q", name, rows, err, c.want)
				}
				if took := time.Since(started); took > 60*time.Second {
					t.Errorf("%s: retried for %s; a lease would be over", name, took)
				}
			})
		}
	}
}

func after(fails bool, call func() error, err error) error {
	if e := call(); !fails {
		return e
	}
	return err
}

func before(fails bool, call func() error, err error) error {
	if fails {
		return err
	}
	return call()
}

func throttledThenLost(n int, call func() error, lost error) error {
	switch n {
	case 1:
		return tabletest.Throttled()
	case 2:
		_ = call()
		return lost
	}
	return call()
}

// TestSomebodyElses: a lost race is a Stale, also when the answer was lost.
func TestSomebodyElses(t *testing.T) {
	fake := tabletest.New()
	theirs := tabletest.Table(fake).Begin("theirs")
	theirs.Insert(newThing("r", "0"))
	if err := theirs.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	n := 0
	tb := tabletest.Table(&tabletest.Client{DynamoDBAPI: fake, Do: func(op string, call func() error) error {
		n++
		if n == 1 {
			_ = call()
			return errors.New("lost")
		}
		return call()
	}})
	tx := tb.Begin("mine")
	tx.Insert(newThing("r", "0"))
	if err := tx.Commit(context.Background()); !fault.Is(err, fault.Stale) {
		t.Errorf("got %v, want Stale", err)
	}
}

func TestFakeRefuses(t *testing.T) {
	tb := tabletest.Table(tabletest.New())
	big := newThing("big", "x")
	big.Name = string(make([]byte, 401<<10))
	for name, f := range map[string]func(*table.Tx){
		"400 KB": func(tx *table.Tx) { tx.Insert(big) },
		"one row twice": func(tx *table.Tx) {
			tx.Insert(newThing("a", "x"))
			tx.Count(table.Key{PK: "a", SK: "x"},
				nil)
		},
		"reserved word": func(tx *table.Tx) { tx.Require(table.Key{PK: "a", SK: "x"}, "state = ?", 1) },
		"grammar":       func(tx *table.Tx) { tx.Require(table.Key{PK: "a", SK: "x"}, "contains(pk, ?)", "x") },
	} {
		tx := tb.Begin("1")
		f(tx)
		if err := tx.Commit(t.Context()); err == nil || fault.Is(err, fault.Stale) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	tx := tb.Begin("many")
	for i := range 101 {
		tx.Insert(newThing("m", fmt.Sprint(i)))
	}
	if err := tx.Commit(t.Context()); err == nil {
		t.Error("101 rows were committed")
	}
	var txc *types.TransactionCanceledException
	if !errors.As(tabletest.Conflicted(), &txc) {
		t.Error("a conflict is not what DynamoDB sends")
	}
}
