package inventory_test

import (
	"context"
	"fmt"

	"archivist/pkg/kernel/table/tabletest"
	"archivist/pkg/objects/inventory"
)

// A stored object is recorded, and found by a local id.
func Example() {
	ctx := context.Background()
	store := inventory.Store{Table: tabletest.Table(tabletest.New())}
	put, err := store.Prepare(ctx, inventory.Record{
		Actor: "ada", First: "job-1", Job: "job-1",
		Object: inventory.Object{
			ARK: "ark:/99999/fk4a", Collection: "maps", Title: "Notes", LocalIDs: []string{"notebook 7"}, HeadOf: 1,
		},
		Versions: []inventory.Version{{Number: 1, Job: "job-1", Files: 2, Bytes: 12}},
	}, 1_800_000_000_000)
	if err != nil {
		fmt.Println(err)
	}
	tx := store.Table.Begin("the id of the transaction")
	if err := put(tx); err != nil {
		fmt.Println(err)
	}
	if err := tx.Commit(ctx); err != nil {
		fmt.Println(err)
	}

	ark, err := store.ByLocalID(ctx, "maps", "notebook 7")
	fmt.Println(ark, err)
	object, err := store.Object(ctx, ark)
	fmt.Println(object.Title, object.HeadOf, err)
	// Output:
	// ark:/99999/fk4a <nil>
	// Notes 1 <nil>
}
