package browse_test

import (
	"math/rand/v2"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

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
