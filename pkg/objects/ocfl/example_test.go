package ocfl_test

import (
	"fmt"

	"archivist/pkg/objects/ocfl"
)

// An object's place in the storage root follows from its id.
func ExamplePrefix() {
	fmt.Println(ocfl.Prefix("ark:/99999/fk4tq65d6k"))
	// Output: d01/7b5/0d2/ark%3a%2f99999%2ffk4tq65d6k/
}
