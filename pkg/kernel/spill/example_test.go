package spill_test

import (
	"context"
	"fmt"

	"archivist/pkg/kernel/spill"
)

func Example() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel() // removes what was spilled

	sizes := spill.New[int](ctx)
	for name, size := range map[string]int{"b.tif": 2, "c.tif": 3, "a.tif": 1} {
		if err := sizes.Add(name, size); err != nil {
			fmt.Println(err)
			return
		}
	}
	for r, err := range sizes.Sorted() {
		fmt.Println(r.Key, r.Value, err)
	}
	// Output:
	// a.tif 1 <nil>
	// b.tif 2 <nil>
	// c.tif 3 <nil>
}
