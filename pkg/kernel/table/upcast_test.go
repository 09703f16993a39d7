package table_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/guregu/dynamo/v2"

	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/table"
	"archivist/pkg/kernel/table/tabletest"
)

// renamed is a thing whose attribute had another name before there were versions.
type renamed struct {
	table.Head
	Name string `dynamo:"full_name"`
}

func (r *renamed) Upcast(from int64, item table.Item) error {
	if from < 1 {
		item["full_name"] = item["word"]
		delete(item, "word")
	}
	return nil
}

// store puts a row as some release wrote it; version 0 = one before there were versions.
func store(t *testing.T, tb *table.Table, sk string, version int64) table.Key {
	t.Helper()
	item := table.Item{}
	for name, text := range map[string]string{"pk": "a", "sk": sk, "word": "Ghent", "wid": "0", "place": "gate",
		"ranking": sk} {
		item[name] = &types.AttributeValueMemberS{Value: text}
	}
	item["rev"], item["n"] = &types.AttributeValueMemberN{Value: "7"}, &types.AttributeValueMemberN{Value: "3"}
	if version > 0 {
		v, err := dynamo.Marshal(version)
		if err != nil {
			t.Fatal(err)
		}
		item["schema_no"] = v
	}
	if err := tb.Rows.Put(item).Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	return table.Key{PK: "a", SK: sk}
}

func raw(t *testing.T, tb *table.Table, k table.Key) (item table.Item) {
	t.Helper()
	if err := tb.Rows.Get("pk", k.PK).Range("sk", dynamo.Equal, k.SK).Consistent(true).One(t.Context(),
		&item); err != nil {
		t.Fatal(err)
	}
	return item
}

// TestEveryRowHasAVersion: whichever way a row is written.
func TestEveryRowHasAVersion(t *testing.T) {
	tb := tabletest.Open(t)
	row := newThing("b", "saved")
	commit(t, tb, "1", func(tx *table.Tx) { tx.Insert(row); tx.Insert(newThing("b", "inserted")) })
	commit(t, tb, "2", func(tx *table.Tx) { tx.Save(row) })
	if row.Schema != table.Schema {
		t.Errorf("after the commit the row is of version %d", row.Schema)
	}
	changed := table.Key{PK: "b", SK: "changed"}
	if err := tb.Change(t.Context(), changed, "3", func(u *dynamo.Update) { u.Set("word", "x") },
		&thing{}); err != nil {
		t.Fatal(err)
	}
	old := store(t, tb, "old", 0)
	oldRow := get(t, tb, old)
	commit(t, tb, "4", func(tx *table.Tx) { tx.Save(&oldRow) })
	for _, k := range []table.Key{row.Key(), {PK: "b", SK: "inserted"}, changed, old} {
		var v int64
		if err := dynamo.Unmarshal(raw(t, tb, k)["schema_no"], &v); err != nil || v != table.Schema {
			t.Errorf("%s is of version %d, %v", k, v, err)
		}
	}
}

// TestOlderRowsAreUpcast: rows are in the present form for whoever reads them, and
// once they are saved.
func TestOlderRowsAreUpcast(t *testing.T) {
	tb := tabletest.Open(t)
	old := store(t, tb, "old", 0)
	var row renamed
	if err := tb.Get(t.Context(), old, &row); err != nil || row.Name != "Ghent" || row.Rev != 7 {
		t.Fatalf("read %+v, %v", row, err)
	}
	var page []renamed
	if _, err := tb.Page(t.Context(), table.Query{PK: "a"}, &page); err != nil || len(page) != 1 ||
		page[0].Name != "Ghent" {
		t.Errorf("a page has %+v, %v", page, err)
	}
	commit(t, tb, "1", func(tx *table.Tx) { tx.Save(&row) })
	if item := raw(t, tb, old); item["word"] != nil || item["full_name"] == nil {
		t.Errorf("saved as %v", item)
	}
	row = renamed{}
	if err := tb.Get(t.Context(), old, &row); err != nil || row.Name != "Ghent" {
		t.Errorf("read again: %+v, %v", row, err)
	}
}

// TestNewerRowsAreRefused: a row of a later release is neither read nor changed.
func TestNewerRowsAreRefused(t *testing.T) {
	tb := tabletest.Open(t)
	k := store(t, tb, "new", table.Schema+1)
	before := raw(t, tb, k)
	for name, f := range map[string]func() error{
		"get":  func() error { return tb.Get(t.Context(), k, &thing{}) },
		"page": func() error { _, err := tb.Page(t.Context(), table.Query{PK: "a"}, &[]thing{}); return err },
		"change": func() error {
			return tb.Change(t.Context(), k, "1", func(u *dynamo.Update) { u.Set("word", "x") }, &thing{})
		},
		"count": func() error {
			tx := tb.Begin("2")
			tx.Insert(newThing("b", "x"))
			tx.Count(k, map[string]int64{"n": 1})
			return tx.Commit(t.Context())
		},
		"insert": func() error {
			tx := tb.Begin("3")
			tx.Insert(newThing(k.PK, k.SK))
			return tx.Commit(t.Context())
		},
	} {
		err := f()
		if name == "count" { // the error names the row whose condition failed
			if !fault.Is(err, fault.Stale) {
				t.Errorf("count: got %v", err)
			}
		} else if !fault.Is(err, fault.Unavailable) || !strings.Contains(err.Error(),
			"a/new was written by a newer release") {
			t.Errorf("%s: got %v", name, err)
		}
	}
	if after := raw(t, tb, k); !reflect.DeepEqual(after, before) {
		t.Errorf("the row was %v, is %v", before, after)
	}
	var rows []thing // an index shows where it is, and has no versions
	if _, err := tb.Page(t.Context(), table.Query{Index: "work", PK: "gate"}, &rows); err != nil || len(rows) != 1 ||
		rows[0].SK != "new" {
		t.Errorf("the index shows %+v, %v", rows, err)
	}
}
