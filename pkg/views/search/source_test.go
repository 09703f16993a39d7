package search_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"archivist/pkg/kernel/table/tabletest"
	"archivist/pkg/objects/aip/aiptest"
	"archivist/pkg/objects/inventory"
	"archivist/pkg/views/search"
)

const ark = "ark:/99999/fk4tq65d6k"

// TestSource: what of an object is indexed: its whole description as it is stored, the first 1,000 paths and the first
// 100 local ids. An object that is not recorded has no document.
func TestSource(t *testing.T) {
	root := aiptest.New(t)
	files := map[string]string{}
	for n := range 1010 {
		files[fmt.Sprintf("sheet %04d.tif", n)] = "x"
	}
	stored := root.Store(ark, files, aiptest.System("maps", "a", "erc:\nwho: Blunt, John\nwhat: Map\nwhen: 1851\n"+
		"where: "+ark+"\nrights: free to all\n", ""))
	var ids []string
	for n := range 130 {
		ids = append(ids, fmt.Sprint("id", n))
	}
	tb := tabletest.Open(t)
	rows := inventory.Store{Table: tb}
	for _, n := range []int{70, len(ids)} { // a transaction has room for so many new ones
		o := inventory.Object{ARK: ark, Collection: "maps", LocalIDs: ids[:n], HeadOf: stored.Head, Title: "M"}
		put, err := rows.Prepare(t.Context(), inventory.Record{Actor: "ada", Job: "J-1", Object: o}, 1000)
		if err != nil {
			t.Fatal(err)
		}
		tx := tb.Begin(fmt.Sprint("tx", n))
		if err := errors.Join(put(tx), tx.Commit(t.Context())); err != nil {
			t.Fatal(err)
		}
	}
	source := search.Source{Inventory: rows, Root: root.Root}
	d, err := source.Read(t.Context(), ark)
	if err != nil {
		t.Fatal(err)
	}
	if d.Collection != "maps" || len(d.LocalIDs) != 100 || len(d.Files) != 1000 || d.Version != 2 ||
		!slices.Contains(d.Files, "producer/sheet 0900.tif") {
		t.Errorf("%s, %d ids, version %d, %d files, the last %q", d.Collection, len(d.LocalIDs), d.Version,
			len(d.Files), d.Files[len(d.Files)-1])
	}
	if !slices.Equal(d.Titles, []string{"Map"}) || !slices.Equal(d.Creators, []string{"Blunt, John"}) ||
		!slices.Equal(d.Dates, []string{"1851"}) || !slices.Contains(d.More, "free to all") {
		t.Errorf("the description is %q, %q, %q, %q", d.Titles, d.Creators, d.Dates, d.More)
	}
	if none, err := source.Read(t.Context(), ark+"x"); none != nil || err != nil {
		t.Errorf("%+v, %v", none, err)
	}
}
