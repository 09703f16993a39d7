package collection_test

import (
	"context"
	"fmt"

	"archivist/pkg/ingest/collection"
	"archivist/pkg/kernel/table/tabletest"
)

// A collection has the defaults until it gets a profile.
func Example() {
	ctx := context.Background()
	profiles := collection.Store{Table: tabletest.Table(tabletest.New()), NewID: func() string { return "tx1" }}
	_, known, err := profiles.Profile(ctx, "maps")
	fmt.Println(known, err)

	p := collection.Profile{Title: "Maps", Notify: []string{"maps@example.org"}}
	fmt.Println(profiles.Put(ctx, "maps", p, collection.By{Actor: "me"}, 0))

	p, known, err = profiles.Profile(ctx, "maps")
	fmt.Println(known, p.Title, p.Recipients([]string{"depositor@example.org"}), err)
	// Output:
	// false <nil>
	// <nil>
	// true Maps [depositor@example.org maps@example.org] <nil>
}
