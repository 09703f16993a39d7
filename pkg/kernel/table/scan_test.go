package table_test

import (
	"fmt"
	"testing"

	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/table"
	"archivist/pkg/kernel/table/tabletest"
)

// TestScan: pages of a scan give every row of the table once, and those of an index every
// row that is in it.
func TestScan(t *testing.T) {
	tb := tabletest.Open(t)
	const partitions, rows = 7, 5
	for p := range partitions {
		commit(t, tb, fmt.Sprint(p), func(tx *table.Tx) {
			for r := range rows {
				one := newThing(fmt.Sprint("p", p), fmt.Sprint("r", r))
				one.Name = "odd"
				if r%2 == 0 {
					one.Name, one.WorkPK, one.WorkSK = "even", fmt.Sprint("place", p%2), fmt.Sprint(p, r)
				}
				tx.Insert(one)
			}
		})
	}
	for index, want := range map[string]int{"": partitions * rows, "work": partitions * 3} {
		for _, limit := range []int{1, 3, 1000} {
			seen, cursor := map[table.Key]bool{}, ""
			for pages := 0; pages == 0 || cursor != ""; pages++ {
				page, next, err := tb.Scan(t.Context(), index, limit, cursor)
				if err != nil || len(page) > limit || pages > partitions*rows {
					t.Fatalf("page %d of %d rows: %v", pages, len(page), err)
				}
				for _, r := range page {
					var row thing
					if err := r.Decode(&row); err != nil || row.Key() != r.Key || seen[r.Key] {
						t.Fatalf("%s: %+v, %v, seen before: %v", r.Key, row, err, seen[r.Key])
					}
					seen[r.Key] = true
				}
				cursor = next
			}
			if len(seen) != want {
				t.Errorf("%q in pages of %d: %d rows, want %d", index, limit, len(seen), want)
			}
		}
	}
}

// TestRaw: a row of any kind can be read, and a missing one is a NotFound.
func TestRaw(t *testing.T) {
	tb := tabletest.Open(t)
	one := newThing("a", "x")
	one.Name = "one"
	commit(t, tb, "1", func(tx *table.Tx) { tx.Insert(one) })
	r, err := tb.Raw(t.Context(), one.Key())
	var row thing
	if err != nil || r.Decode(&row) != nil || row.Name != "one" || row.Rev != 1 {
		t.Errorf("%+v, %v", row, err)
	}
	if _, err := tb.Raw(t.Context(), table.Key{PK: "a", SK: "y"}); !fault.Is(err, fault.NotFound) {
		t.Errorf("a missing row gave %v", err)
	}
}
