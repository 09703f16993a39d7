package queue

import (
	"context"
	"errors"
	"time"

	"archivist/pkg/fault"
	"archivist/pkg/ingest"
	"archivist/pkg/lease"
	"archivist/pkg/table"
)

// due is an item past its due time as the index shows it.
type due struct {
	table.Head
	ID string `dynamo:"id"`
}

// Sweep repairs the items that are past due, oldest first in each shard, and lets continue
// what was held until now. Then, within a time of its own, it removes the rows and work files
// that are due for removal. It starts no repair after until. Each minute another shard is the
// first.
func (q *Queue) Sweep(ctx context.Context, until time.Time) error {
	for i := range ingest.DueShards {
		shard := (int(q.Now().Unix()/60) + i) % ingest.DueShards
		if err := q.sweepPlace(ctx, ingest.DuePK(shard), 1, until); err != nil {
			return err
		}
	}
	const heldPages = 20 // thousands may be held until one time
	if err := errors.Join(q.sweepHolds(ctx), q.sweepPlace(ctx, ingest.WorkHeld, heldPages, until)); err != nil {
		return err
	}
	return q.sweepPlace(ctx, ingest.WorkCleanUp, 1, q.Now().Add(q.itemTime()))
}

// itemTime is the time for one repair or clean-up; after twice that it is cancelled.
func (q *Queue) itemTime() time.Duration { return q.Rules.Timing.Scheduler / 8 }

// sweepPlace repairs what is past due in one place of the index "work", so many pages of it.
// A failed repair is postponed, so that it does not delay the others.
func (q *Queue) sweepPlace(ctx context.Context, place string, pages int, until time.Time) error {
	query := table.Query{Index: "work", PK: place, From: "0", To: dueRank(q.Now()), Limit: q.Settings.SweepPage}
	for range pages {
		var page []due
		next, err := q.Table.Page(ctx, query, &page)
		if err != nil {
			return err
		}
		for _, d := range page {
			if !q.Now().Before(until) {
				return nil
			}
			q.sweepItem(ctx, d)
		}
		if next == "" {
			return nil
		}
		query.Cursor = next
	}
	return nil
}

// sweepItem repairs one item.
func (q *Queue) sweepItem(ctx context.Context, d due) {
	err := q.repair(ctx, d)
	if err == nil || fault.Is(err, fault.Stale) || fault.Is(err, fault.NotFound) {
		return
	}
	q.Log.Error("a repair failed; it is tried again later", "id", d.ID, "error", err)
	q.Metric(RepairErrors, 1)
	if err := q.postpone(ctx, d); err != nil {
		q.Log.Error("a failed repair could not be postponed", "id", d.ID, "error", err)
	}
}

// isBatch reports whether it is a batch, not a job.
func (d due) isBatch() bool { return d.PK == batchKey(d.ID).PK }

// isOperation reports whether it is an operation.
func (d due) isOperation() bool { return d.PK == operationKey(d.ID).PK }

// repair repairs one item within a time limit, so that a dependency that does not answer
// cannot use up the time of the others: a repair and its postponement end within three
// quarters of a sweep's time. A clean-up may take twice as long.
func (q *Queue) repair(ctx context.Context, d due) error {
	limit := q.itemTime()
	if d.WorkPK == ingest.WorkCleanUp {
		limit *= 2
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	if d.isOperation() {
		return q.repairOperation(ctx, d.ID)
	}
	it, err := q.dueItem(ctx, d)
	if err != nil || q.Now().UnixMilli() < it.common().Due {
		return err
	}
	return it.repair(ctx, q)
}

// dueItem reads the job or batch that the index shows.
func (q *Queue) dueItem(ctx context.Context, d due) (item, error) {
	if d.isBatch() {
		return q.item(ctx, "", d.ID)
	}
	return q.item(ctx, d.ID, "")
}

// postpone moves the due time of an item whose repair failed, each time by more, unless the
// repair itself has moved it.
func (q *Queue) postpone(ctx context.Context, d due) error {
	ctx, cancel := context.WithTimeout(ctx, q.itemTime()/2)
	defer cancel()
	if d.isOperation() {
		return q.postponeOperation(ctx, d.ID)
	}
	it, err := q.dueItem(ctx, d)
	if err != nil || q.Now().UnixMilli() < it.common().Due {
		return err
	}
	stage, _ := it.stage()
	return q.rewrite(ctx, it, func(row common) { *row.Work = q.Rules.Postpone(*row.Work, stage, q.Now()) })
}

// dueRank is the upper limit, in the index, of the ranks that are due at now.
func dueRank(now time.Time) string { return ingest.DueSK(now.UnixMilli()) + "~" }

// sweepEvery is the age of the last sweep from which any tick sweeps. The tick of each
// minute is dropped if another tick is running.
const sweepEvery = time.Minute

// swept is the row with the start of the last sweep.
type swept struct {
	table.Head
	At int64 `dynamo:"at_ms"`
}

var sweptKey = table.Key{PK: "LEASE#" + leaseName, SK: "SWEEP"} // next to the lease under which it is written

// sweeps reports whether this tick sweeps, and if so records its time.
func (c *Scheduler) sweeps(ctx context.Context, l lease.Lease, asked bool) (bool, error) {
	row, err := c.Queue.swept(ctx)
	if err != nil {
		return false, err
	}
	now := c.Queue.Now()
	if !asked && now.Sub(time.UnixMilli(row.At)) < sweepEvery {
		return false, nil
	}
	row.At = now.UnixMilli()
	tx := c.Queue.Table.Begin(c.Queue.NewID())
	put(tx, &row, row.Rev)
	l.Guard(tx)
	return true, tx.Commit(ctx)
}

// swept reads the row of the last sweep; zero if there was none.
func (q *Queue) swept(ctx context.Context) (swept, error) {
	row := swept{Head: head(sweptKey)}
	err := q.Table.Get(ctx, sweptKey, &row)
	if fault.Is(err, fault.NotFound) {
		err = nil
	}
	return row, err
}

// lastSweep is when the last sweep began; zero if there was none.
func (q *Queue) lastSweep(ctx context.Context) (time.Time, error) {
	row, err := q.swept(ctx)
	if err != nil || row.At == 0 {
		return time.Time{}, err
	}
	return time.UnixMilli(row.At), nil
}
