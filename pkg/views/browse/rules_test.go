package browse_test

import (
	"math/rand/v2"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/table"
	"archivist/pkg/kernel/table/tabletest"
	"archivist/pkg/objects/inventory"
	"archivist/pkg/views/browse"
)

// TestRepair: whatever rows of an object are lost or changed, Wrong finds it, and one Repair makes each list what it
// was. Entries of others stay.
func TestRepair(t *testing.T) {
	w := newWorld(t)
	o := func() *inventory.Object {
		return &inventory.Object{Title: "Map", Who: "Blunt; Admiralty", When: "1851", Collection: "maps"}
	}
	w.put("a", o())
	w.put("b", &inventory.Object{Title: "Other", Collection: "maps"})
	w.handle("a", "b")
	before := w.rows.All()
	lists := w.store()
	is := &inventory.Object{}
	wrong := func() string {
		what, err := lists.Wrong(t.Context(), is)
		if err != nil {
			t.Fatal(err)
		}
		return what
	}
	if err := lists.Table.Get(t.Context(), table.Key{PK: "OBJECT#ark:/99999/a", SK: "OBJECT"}, is); err != nil {
		t.Fatal(err)
	}
	if what := wrong(); what != "" {
		t.Fatal(what)
	}

	for seed := range uint64(200) {
		rng, damaged := rand.New(rand.NewPCG(seed, 0)), false
		for _, row := range before {
			k := keyOf(row)
			if k.SK == "OBJECT" || !ofA(row, k) || rng.IntN(3) > 0 {
				continue
			}
			damaged = true
			if rng.IntN(2) == 0 {
				w.drop(row)
				continue
			}
			if k.SK == "BROWSE" {
				row["entries"] = &types.AttributeValueMemberL{}
			} else {
				row["listed_by"] = &types.AttributeValueMemberS{Value: "Another"}
			}
			w.write(row)
		}
		if what := wrong(); (what != "") != damaged {
			t.Fatalf("seed %d: damaged %v, and %q is wrong", seed, damaged, what)
		}
		if err := lists.Repair(t.Context(), "ark:/99999/a"); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if what := wrong(); what != "" {
			t.Fatalf("seed %d: after the repair: %s", seed, what)
		}
		w.want(browse.Page{By: browse.ByTitle}, "a=Map", "b=Other")
		w.want(browse.Page{By: browse.ByCreator}, "a=Admiralty", "a=Blunt", "b=")
		if len(w.rows.All()) != len(before) {
			t.Fatalf("seed %d: %d rows, %d before", seed, len(w.rows.All()), len(before))
		}
	}
}

// TestLostRows: an object whose rows were lost in part is listed as it is with its next event: else that event, and all
// behind it, would wait for ever. Entries of which nobody knows any more are for the doctor.
func TestLostRows(t *testing.T) {
	for lost, title := range map[string]string{"OBJECT#ark:/99999/a": "Map", "BROWSE#title": "Chart",
		"BROWSE#creator": "Chart"} {
		w := newWorld(t)
		w.put("a", &inventory.Object{Title: "Map", Who: "Blunt", Collection: "maps"})
		w.handle("a")
		for _, row := range w.rows.All() {
			if k := keyOf(row); k.PK == lost && k.SK != "OBJECT" {
				w.drop(row)
			}
		}
		w.put("a", &inventory.Object{Title: title, Who: "Blunt", When: "1851", Collection: "maps"})
		w.handle("a")
		w.want(browse.Page{By: browse.ByTitle}, "a="+title)
		w.want(browse.Page{By: browse.ByCreator}, "a=Blunt")
		if lost == "OBJECT#ark:/99999/a" {
			continue
		}
		w.put("a", nil)
		w.handle("a")
		w.want(browse.Page{By: browse.ByTitle})
	}
}

func keyOf(row tabletest.Item) table.Key {
	text := func(name string) string { return row[name].(*types.AttributeValueMemberS).Value }
	return table.Key{PK: text("pk"), SK: text("sk")}
}

// ofA reports whether a row is of the object a.
func ofA(row tabletest.Item, k table.Key) bool {
	owner, entry := row["owned_by"].(*types.AttributeValueMemberS)
	return k.PK == "OBJECT#ark:/99999/a" || entry && owner.Value == "ark:/99999/a"
}

func (w *world) drop(row tabletest.Item) {
	w.Helper()
	if err := w.store().Table.Rows.Delete("pk", row["pk"]).Range("sk", row["sk"]).Run(w.Context()); err != nil {
		w.Fatal(err)
	}
}

func (w *world) write(row tabletest.Item) {
	w.Helper()
	if err := w.store().Table.Rows.Put(row).Run(w.Context()); err != nil {
		w.Fatal(err)
	}
}

// TestRepairAtOnce: wherever another run lists a newer state during a repair, the newer one stays.
func TestRepairAtOnce(t *testing.T) {
	for at := 1; at <= 4; at++ {
		w, calls := newWorld(t), 0
		w.put("a", &inventory.Object{Title: "Map", Who: "Blunt", Collection: "maps"})
		w.handle("a")
		for _, row := range w.rows.All() {
			if k := keyOf(row); k.PK == "BROWSE#title" {
				w.drop(row)
			}
		}
		lists := browse.Store{NewID: w.newID, Table: tabletest.Through(w.rows, func(_ string, call func() error) error {
			calls++
			if calls == at {
				w.put("a", &inventory.Object{Title: "Chart", Who: "Admiralty", Collection: "maps"})
				w.handle("a")
			}
			return call()
		})}
		err := lists.Repair(t.Context(), "ark:/99999/a")
		if err != nil && !fault.Is(err, fault.Stale) || calls < at {
			t.Fatalf("at call %d of %d: %v", at, calls, err)
		}
		w.want(browse.Page{By: browse.ByTitle}, "a=Chart")
		w.want(browse.Page{By: browse.ByCreator}, "a=Admiralty")
	}
}
