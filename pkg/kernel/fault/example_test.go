package fault_test

import (
	"errors"
	"fmt"
	"io/fs"

	"archivist/pkg/kernel/fault"
)

// An error gets its kind where it arises. Each edge of the system reports it in its own
// way, and the cause stays reachable.
func Example() {
	err := fault.New(fault.NotFound, "no object %s: %w", "ark:/99999/fk4tq65d6k", fs.ErrNotExist)
	err = fmt.Errorf("receipt: %w", err)

	edge := fault.At(err)
	fmt.Println(fault.Of(err), edge.Status, edge.Exit, edge.Name)
	fmt.Println(fault.Is(err, fault.NotFound), errors.Is(err, fs.ErrNotExist))
	fmt.Println(fault.At(errors.New("a defect")).Status)
	// Output:
	// NotFound 404 3 NotFound
	// true true
	// 500
}
