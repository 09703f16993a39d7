package table_test

import (
	"strings"
	"testing"

	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/table"
	"archivist/pkg/kernel/table/tabletest"
)

// place is an owned row that says more.
type place struct {
	table.Owned
	Size  int64    `dynamo:"size_n,omitempty"`
	Names []string `dynamo:"names_of,omitempty"`
}

// TestDerive: the rows of an owner become those that it has now: places that it has left are given back, new ones are
// taken, and what a place says follows. Nothing is written that is the same, nor a row of another.
func TestDerive(t *testing.T) {
	all := tabletest.Table(tabletest.New())
	at := func(sk string, size int64, names ...string) *place {
		return &place{Owned: table.Owned{Head: table.Head{PK: "LINE", SK: sk}, Owner: "a"}, Size: size, Names: names}
	}
	derive := func(id, owner string, was, is []table.Row) error {
		tx := all.Begin(id)
		tx.Insert(&table.Head{PK: "OWNER", SK: id}) // the proof
		tx.Derive(owner, was, is)
		return tx.Commit(t.Context())
	}
	want := func(what string, rows ...*place) {
		t.Helper()
		var have []place
		if _, err := all.Page(t.Context(), table.Query{PK: "LINE"}, &have); err != nil {
			t.Fatal(err)
		}
		same := len(have) == len(rows)
		for i := range have {
			same = same && table.SameRow(&have[i], rows[i]) && have[i].Rev == max(rows[i].Rev, 1)
		}
		if !same {
			t.Errorf("%s: %+v", what, have)
		}
	}

	first := []table.Row{at("1", 5, "x"), at("2", 0)}
	if err := derive("tx1", "a", nil, first); err != nil {
		t.Fatal(err)
	}
	want("new", at("1", 5, "x"), at("2", 0))

	second := []table.Row{at("1", 7), at("2", 0), at("3", 1)}
	if err := derive("tx2", "a", first, second); err != nil {
		t.Fatal(err)
	}
	changed := at("1", 7)
	changed.Rev = 2
	want("changed", changed, at("2", 0), at("3", 1))

	for what, err := range map[string]error{
		"a place that is taken":            derive("tx3", "b", nil, []table.Row{at("2", 0)}),
		"a place that was not its own":     derive("tx4", "b", []table.Row{at("2", 0)}, nil),
		"a row that is not there":          derive("tx6", "a", []table.Row{at("9", 1)}, []table.Row{at("9", 2)}),
		"a row of another":                 derive("tx5", "b", []table.Row{at("3", 1)}, []table.Row{at("3", 9)}),
		"a place that was given back once": derive("tx7", "a", []table.Row{at("9", 1)}, nil),
	} {
		if !fault.Is(err, fault.Stale) {
			t.Errorf("%s: %v", what, err)
		}
	}
	want("refused", changed, at("2", 0), at("3", 1))

	if err := derive("tx8", "a", second, nil); err != nil {
		t.Fatal(err)
	}
	want("left")
}

// TestFollow: rows that list an owner follow it, whether they are there or not. None of another owner is written or
// removed, and nothing is written that is the same.
func TestFollow(t *testing.T) {
	all := tabletest.Table(tabletest.New())
	at := func(owner, sk string, size int64) *place {
		return &place{Owned: table.Owned{Head: table.Head{PK: "LIST", SK: sk}, Owner: owner}, Size: size}
	}
	follow := func(id, owner string, was, is []table.Row) error {
		tx := all.Begin(id)
		tx.Insert(&table.Head{PK: "OWNER", SK: id})
		tx.Follow(owner, was, is)
		return tx.Commit(t.Context())
	}
	want := func(what string, rows ...*place) {
		t.Helper()
		var have []place
		if _, err := all.Page(t.Context(), table.Query{PK: "LIST"}, &have); err != nil {
			t.Fatal(err)
		}
		same := len(have) == len(rows)
		for i := range have {
			same = same && table.SameRow(&have[i], rows[i]) && have[i].Rev == rows[i].Rev
		}
		if !same {
			t.Errorf("%s: %+v", what, have)
		}
	}
	with := func(row *place, rev int64) *place { row.Rev = rev; return row }

	for n, c := range []struct {
		what    string
		was, is []table.Row
		want    []*place
	}{
		{"new", nil, []table.Row{at("a", "1", 5), at("a", "2", 0)},
			[]*place{with(at("a", "1", 5), 1), with(at("a", "2", 0), 1)}},
		{"there already", nil, []table.Row{at("a", "1", 5), at("a", "2", 0)},
			[]*place{with(at("a", "1", 5), 2), with(at("a", "2", 0), 2)}},
		{"changed", []table.Row{at("a", "1", 5), at("a", "2", 0)}, []table.Row{at("a", "1", 7), at("a", "2", 0)},
			[]*place{with(at("a", "1", 7), 3), with(at("a", "2", 0), 2)}},
		{"left, or never there", []table.Row{at("a", "1", 7), at("a", "9", 0)}, []table.Row{at("a", "3", 1)},
			[]*place{with(at("a", "2", 0), 2), with(at("a", "3", 1), 1)}},
	} {
		if err := follow("tx"+c.what, "a", c.was, c.is); err != nil {
			t.Fatalf("%d: %s: %v", n, c.what, err)
		}
		want(c.what, c.want...)
	}
	for what, err := range map[string]error{
		"a place of another is taken":  follow("txb1", "b", nil, []table.Row{at("b", "2", 0)}),
		"a place of another is given":  follow("txb2", "b", []table.Row{at("b", "2", 0)}, nil),
		"a place of another says more": follow("txb3", "b", []table.Row{at("b", "3", 1)}, []table.Row{at("b", "3", 2)}),
	} {
		if !fault.Is(err, fault.Stale) {
			t.Errorf("%s: %v", what, err)
		}
	}
	want("refused", with(at("a", "2", 0), 2), with(at("a", "3", 1), 1))
}

// TestDamagedRow: a row that cannot be decoded is read once, also in a list, and the error names it: it is no outage.
func TestDamagedRow(t *testing.T) {
	calls := 0
	all := tabletest.Table(&tabletest.Client{DynamoDBAPI: tabletest.New(), Do: func(_ string, call func() error) error {
		calls++
		return call()
	}})
	tx := all.Begin("tx1")
	tx.Insert(&place{Owned: table.Owned{Head: table.Head{PK: "LINE", SK: "1"}, Owner: "a"}, Size: 5})
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}

	var row struct {
		table.Head
		Size string `dynamo:"size_n"`
	}
	var list []struct {
		table.Head
		Size []string `dynamo:"size_n"`
	}
	for what, read := range map[string]func() error{
		"a row":  func() error { return all.Get(t.Context(), table.Key{PK: "LINE", SK: "1"}, &row) },
		"a page": func() error { _, err := all.Page(t.Context(), table.Query{PK: "LINE"}, &list); return err },
	} {
		calls = 0
		err := read()
		if err == nil || calls != 1 || fault.Is(err, fault.Unavailable) || !strings.Contains(err.Error(), "LINE/1") {
			t.Errorf("%s: %d calls, %v", what, calls, err)
		}
	}
}
