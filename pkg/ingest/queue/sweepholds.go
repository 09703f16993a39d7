package queue

import (
	"context"
	"fmt"

	"archivist/pkg/ingest"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/table"
)

// sweepHolds removes the rows of holds and pauses whose end has passed, and those of batches
// that have ended. Nothing depends on when: such a row has no effect. An error with
// one is logged, and the others are removed.
func (q *Queue) sweepHolds(ctx context.Context) error {
	rows, err := q.holdRows(ctx)
	if err != nil {
		return err
	}

	for i := range rows {
		err := q.sweepHold(ctx, &rows[i])
		if err != nil && !fault.Is(err, fault.Stale) {
			q.Log.Error("a hold that has ended could not be removed; the next sweep tries again",
				"hold", rows[i].SK,
				"error", err)
			q.Metric(RepairErrors, 1)
		}
	}
	return nil
}

// sweepHold removes the row of one hold, if it has no effect any more, with the event of its end.
func (q *Queue) sweepHold(ctx context.Context, row *Hold) error {
	remove := func(tx *table.Tx) error {
		tx.Remove(row)
		return nil
	}

	if row.Scope == ingest.TargetBatch {
		return q.sweepBatchHold(ctx, row, remove)
	}

	if !row.Ended(q.Now()) {
		return nil
	}

	name := ingest.ActResume
	if row.ID != "" {
		name = ingest.ActRelease
	}

	record := func(tx *table.Tx) error {
		return q.recordHold(ctx, tx, row, ingest.Action{
			Name:   name,
			Target: row.Target(),
			Reason: holdEnded,
		}, "sweep")
	}
	// Jobs that the hold or the pause has kept at a gate can go on.
	return q.commit(ctx, []func(*table.Tx) error{record, remove},
		func() []ingest.Wake { return []ingest.Wake{{Kind: ingest.LookGates}} })
}

// sweepBatchHold removes the hold of a batch if its end has passed or the batch has ended.
func (q *Queue) sweepBatchHold(ctx context.Context, row *Hold, remove func(*table.Tx) error) error {
	b, err := q.Batch(ctx, row.ID)
	if fault.Is(err, fault.NotFound) {
		return q.commit(ctx, []func(*table.Tx) error{remove}, func() []ingest.Wake { return nil })
	}

	if err != nil || b.Live(q.Now()) { // the event would end the lease of its worker
		return err
	}

	by := origin{event: "batch.released", component: "sweep", reason: holdEnded}
	if !row.Ended(q.Now()) {
		if b.State.Holdable() {
			return nil
		}
		by.reason = fmt.Sprintf("the batch is %s", b.State)
	}
	// The batch stays as it is: its row is written for the number of the event.
	return q.changeBatch(ctx, b, b.Batch, by, remove)
}
