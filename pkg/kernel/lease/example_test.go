package lease_test

import (
	"context"
	"fmt"
	"time"

	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/lease"
	"archivist/pkg/kernel/table"
	"archivist/pkg/kernel/table/tabletest"
)

// A worker is slow; another worker takes over its lease, and the slow one cannot write.
func Example() {
	ctx, now, ids := context.Background(), time.UnixMilli(0), 0
	rows := tabletest.Table(tabletest.New())
	leases := &lease.Store{Table: rows, Now: func() time.Time { return now },
		NewID: func() string { ids++; return fmt.Sprint("worker", ids) }}

	slow, err := leases.Acquire(ctx, "inventory", time.Minute)
	fmt.Println(slow.Fence, err)
	_, err = leases.Acquire(ctx, "inventory", time.Minute)
	fmt.Println(err)

	now = now.Add(2 * time.Minute)
	next, err := leases.Acquire(ctx, "inventory", time.Minute)
	fmt.Println(next.Fence, err)

	tx := rows.Begin("late")
	tx.Insert(&table.Head{PK: "COUNT#inventory", SK: "COUNT"})
	slow.Guard(tx)
	fmt.Println(fault.Is(tx.Commit(ctx), fault.Stale))
	// Output:
	// 1 <nil>
	// lease inventory is held by worker1 until 1970-01-01T00:01:00Z
	// 2 <nil>
	// true
}
