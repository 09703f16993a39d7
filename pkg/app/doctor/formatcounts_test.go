package doctor_test

import (
	"testing"

	"archivist/pkg/views/formatcounts"
)

// TestFormatCounts: the counts of a collection by format that are not those of its objects are
// found and made right, and an object that is not counted is found. What the consumer has not
// passed yet is no finding.
func TestFormatCounts(t *testing.T) {
	w := settled(t)
	q := w.Machine.Queue
	source := formatcounts.Source{Inventory: w.Stages.Inventory, Root: w.Stages.Root}
	store := formatcounts.Store{Table: q.Table, NewID: q.NewID, Read: source.Read}
	w.consumed(formatcounts.Definition(), store)
	w.finds(false)
	right, err := store.Total(t.Context(), "bench")
	if err != nil || right.Files == 0 || len(right.Formats) == 0 {
		t.Fatalf("%+v, %v", right, err)
	}

	total, share := key("FORMATCOUNTS", "bench"), key("OBJECT#"+w.object, "FORMATCOUNTS")
	sum := []string{"format-counts collection:bench"}
	for name, damage := range map[string]func(){
		"wrong": func() { w.set(total, "bytes", num(7)) },
		"lost":  func() { w.drop(total) },
	} {
		damage()
		w.finds(false, sum...)
		w.repairs(sum)
		w.finds(false)
		is, err := store.Total(t.Context(), "bench")
		if err != nil || is.Bytes != right.Bytes || is.Sorted()[0] != right.Sorted()[0] {
			t.Errorf("%s: repaired as %+v, %v", name, is.Counts, err)
		}
	}

	w.set(share, "ocfl_version", num(9))
	w.finds(false, "format-counts "+w.object)
	w.behind(formatcounts.Name)
	w.finds(false)
}
