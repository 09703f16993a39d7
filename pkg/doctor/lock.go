package doctor

import (
	"context"
	"time"

	"archivist/pkg/fault"
	"archivist/pkg/queue"
	"archivist/pkg/table"
)

// reservation is a row that a job owns, or a lock that a repair holds.
type reservation struct {
	table.Head
	Owner string `dynamo:"owned_by"`
	Until int64  `dynamo:"until_ms,omitempty"` // of a repair: milliseconds since 1970
}

// lockTime is longer than any function runs: after it, no repair under the lock goes on.
const lockTime = 20 * time.Minute

// locked calls f while it holds the lock of an object, so that no job works on the object.
// fence fails once another repair has taken the lock over. It is a Held if a job has the
// lock.
func (d Doctor) locked(ctx context.Context, ark string, f func(fence func(context.Context) error) error) error {
	k := queue.LockKey("ark#" + ark)
	row := &reservation{Head: table.Head{PK: k.PK, SK: k.SK}}
	err := d.Queue.Table.Get(ctx, k, row)
	switch {
	case err != nil && !fault.Is(err, fault.NotFound):
		return err
	case err == nil && row.Owner != actor:
		return fault.New(fault.Held, "job %s works on the object; run the repair again later", row.Owner)
	}
	row.Owner, row.Until = actor, d.Queue.Now().Add(lockTime).UnixMilli()
	err = d.commit(ctx, func(tx *table.Tx) {
		if row.Rev == 0 {
			tx.Insert(row)
		} else {
			tx.Save(row) // of a repair that was interrupted
		}
	})
	if err != nil {
		return err
	}
	fence := func(ctx context.Context) error {
		var now reservation
		err := d.Queue.Table.Get(ctx, k, &now)
		if err == nil && now.TxID != row.TxID || fault.Is(err, fault.NotFound) {
			return fault.New(fault.Stale, "another repair has taken over the lock of %s", ark)
		}
		return err
	}
	err = f(fence)
	if free := d.commit(ctx, func(tx *table.Tx) { tx.Remove(row) }); err == nil {
		err = free
	}
	return err
}

// lockedBy returns the owner of an object's lock, "" if it is free.
func (d Doctor) lockedBy(ctx context.Context, ark string) (string, error) {
	var row reservation
	err := d.Queue.Table.Get(ctx, queue.LockKey("ark#"+ark), &row)
	if fault.Is(err, fault.NotFound) {
		return "", nil
	}
	return row.Owner, err
}
