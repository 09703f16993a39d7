package queue

import (
	"context"
	"errors"
	"time"

	"archivist/pkg/ingest"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/table"
)

// Sweep repairs the items that are past due, oldest first in each shard, and lets continue what was held until now.
// Then, each within a time of its own, it removes the rows and work files that are due for removal, and looks at the
// uploads that are due. It starts no repair after until. Each minute another shard is the first.
//
// A place that cannot be read, e.g. because its partition is throttled, does not stop the
// others.
func (q *Queue) Sweep(ctx context.Context, until time.Time) error {
	var errs []error
	for i := range ingest.DueShards {
		shard := (int(q.Now().Unix()/60) + i) % ingest.DueShards
		errs = append(errs, q.sweepPlace(ctx, ingest.DuePK(shard), 1, until))
	}

	const heldPages = 20 // thousands may be held until one time
	errs = append(errs, q.sweepHolds(ctx), q.sweepPlace(ctx, ingest.WorkHeld, heldPages, until),
		q.sweepPlace(ctx, ingest.WorkCleanUp, 1, q.Now().Add(q.itemTime())))
	if q.Uploads != nil {
		errs = append(errs, q.Uploads(ctx, q.Now().Add(q.itemTime())))
	}
	return errors.Join(errs...)
}

// sweepPlace repairs what is past due in one place of the index "work", so many pages of it.
// A failed repair is postponed, so that it does not delay the others.
func (q *Queue) sweepPlace(ctx context.Context, place string, pages int, until time.Time) error {
	query := table.Query{
		Index: "work",
		PK:    place,
		From:  "0",
		To:    dueRank(q.Now()),
		Limit: q.Settings.SweepPage,
	}

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
	// Another process has changed or removed the item: it needs no repair.
	if err == nil || fault.Is(err, fault.Stale) || fault.Is(err, fault.NotFound) {
		return
	}
	q.Log.Error("a repair failed; it is tried again later", "id", d.ID, "error", err)
	q.Metric(RepairErrors, 1)
	if err := q.postpone(ctx, d); err != nil {
		q.Log.Error("a failed repair could not be postponed", "id", d.ID, "error", err)
	}
}

// repair repairs one item within a time limit, so that a dependency that does not answer
// cannot use up the time of the others: a repair and its postponement end within three
// quarters of a sweep's time. A clean-up may take twice as long. The index only found the item: its
// row decides what is due.
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
	if err != nil || !q.isDue(it) {
		return err
	}
	return it.repair(ctx, q)
}

// isDue reports whether an item is past due. The index may show one that is not any more, or
// that has no due time by now.
func (q *Queue) isDue(it item) bool {
	due := it.common().Due
	return due > 0 && q.Now().UnixMilli() >= due
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
	if err != nil || !q.isDue(it) {
		return err
	}

	stage, _ := it.stage()
	return q.rewrite(ctx, it,
		func(row common) { *row.Work = q.Rules.Postpone(*row.Work, stage, q.Now()) })
}
