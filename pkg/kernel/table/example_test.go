package table_test

import (
	"context"
	"fmt"

	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/table"
	"archivist/pkg/kernel/table/tabletest"
)

// Shelf is a row.
type Shelf struct {
	table.Head
	Books int `dynamo:"books"`
}

// One struct and five calls: Begin a transaction, Insert or Save rows, Commit, Get a row.
// The revision that was read is the condition of each write.
func Example() {
	ctx, t := context.Background(), tabletest.Table(tabletest.New())
	key := table.Key{PK: "SHELF#maps", SK: "ROW"}

	shelf := &Shelf{Head: table.Head{PK: key.PK, SK: key.SK}, Books: 1}
	tx := t.Begin("first change")
	tx.Insert(shelf)
	fmt.Println(tx.Commit(ctx), "revision", shelf.Rev)

	var mine, theirs Shelf
	fmt.Println(t.Get(ctx, key, &mine), t.Get(ctx, key, &theirs))

	mine.Books++
	tx = t.Begin("second change")
	tx.Save(&mine)
	fmt.Println(tx.Commit(ctx), "revision", mine.Rev)

	theirs.Books-- // read before the second change
	tx = t.Begin("third change")
	tx.Save(&theirs)
	err := tx.Commit(ctx)
	fmt.Println(fault.Is(err, fault.Stale), err)
	// Output:
	// <nil> revision 1
	// <nil> <nil>
	// <nil> revision 2
	// true table: changed meanwhile: SHELF#maps/ROW
}
