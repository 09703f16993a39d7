package queue

import (
	"context"
	"fmt"

	"archivist/pkg/ingest"
	"archivist/pkg/kernel/table"
)

// decideHoldBatch holds a batch: one without jobs becomes Held, and of another one the
// jobs that have not started become Held at gate 1.
func decideHoldBatch(ctx context.Context, q *Queue, row *Batch,
	a ingest.Action) (d batchDecision, err error) {
	d.next = row.Batch
	if !row.State.Holdable() {
		return d, cannot(a, string(row.State), "Pending, Held or Processing", row.State.Becomes(),
			noHold(false))
	}

	hold, err := q.holdRow(ctx, a.Target)
	if err != nil {
		return d, err
	}

	now := q.Now()
	d.plan = planHold(hold.active(now), a)
	h := hold.changed(a, now).Hold
	switch {
	case row.State == ingest.BatchHeld:
		d.next = q.Rules.BatchHeldBy(d.next, h)
	case unstarted(&row.Batch):
		d.next = q.Rules.HeldBatch(d.next, h, now)
	}

	d.by = origin{
		event:     "batch.held",
		actor:     a.Actor,
		component: "admin",
		reason:    reasonUntil(a.Reason, a.Until),
	}

	// The row of the hold and the batch change in one transaction, which also revokes the
	// scheduler's lease.
	d.also = append(d.also, func(tx *table.Tx) error { return q.putHold(ctx, tx, hold, a) })
	d.then = q.wakeGates
	return d, nil
}

// unstarted reports whether no job of a batch was made yet.
func unstarted(b *ingest.Batch) bool { return b.State == ingest.BatchPending && b.Unpacked == 0 }

// decideReleaseBatch lifts the hold of a batch, and lets a Held batch continue. It is refused
// while the collection is on hold.
func decideReleaseBatch(ctx context.Context, q *Queue, row *Batch,
	a ingest.Action) (d batchDecision, err error) {
	d.next = row.Batch
	hold, err := q.holdRow(ctx, a.Target)
	if err != nil {
		return d, err
	}

	if row.State != ingest.BatchHeld && hold.active(q.Now()) == nil {
		return d, d.notHeld(row, a)
	}

	above, err := q.hold(ctx, collectionTarget(row.Collection))
	if above != nil {
		err = stopped("batch "+row.Batch.ID, above)
	}

	if err != nil {
		return d, err
	}

	d.also = append(d.also, q.unheld(collectionTarget(row.Collection)))
	// A row whose hold has ended is removed, too. Without a row, none may be placed meanwhile.
	if hold.Rev > 0 {
		d.also = append(d.also, func(tx *table.Tx) error { return q.putHold(ctx, tx, hold, a) })
	} else {
		d.also = append(d.also, q.unheld(a.Target))
	}

	d.summary = fmt.Sprintf("batch %s is no longer on hold", row.Batch.ID)
	if row.State == ingest.BatchHeld {
		d.next = q.Rules.EnterBatch(d.next, ingest.BatchPending, q.Now())
		d.summary = fmt.Sprintf("batch %s continues", row.Batch.ID)
	}

	d.by = origin{event: "batch.released", actor: a.Actor, component: "admin", reason: a.Reason}
	d.then = q.wakeGates
	d.offers, err = q.offerRelease(ctx, a.Target)
	return d, err
}

// notHeld is the end of a release of a batch that is not on hold.
func (d *batchDecision) notHeld(row *Batch, a ingest.Action) error {
	if !row.State.Holdable() {
		return cannot(a, string(row.State), "Held", row.State.Becomes(), "It is not on hold")
	}
	d.unchanged, d.summary = true, fmt.Sprintf("batch %s is not on hold", row.Batch.ID)
	return nil
}

// wakeGates wakes the scheduler: its tick has lost the lease.
func (q *Queue) wakeGates(ctx context.Context) {
	q.wake(ctx,
		[]ingest.Wake{{Kind: ingest.LookGates}})
}

// holdEnds is done when the hold of a batch has ended by itself: the batch continues, unless
// another hold is active. Each of the two changes has the hold that was read, or that there is
// none, as a condition.
func (row *Batch) holdEnds(ctx context.Context, q *Queue) error {
	h, err := q.holdOn(ctx, row.Collection, row.Batch.ID)
	if err != nil {
		return err
	}

	if h != nil {
		by := origin{event: "batch.held", component: "sweep", reason: h.Description()}
		return q.changeBatch(ctx, row, q.Rules.BatchHeldBy(row.Batch, h.Hold), by, h.require)
	}

	next := q.Rules.EnterBatch(row.Batch, ingest.BatchPending, q.Now())
	by := origin{event: "batch.released", component: "sweep", reason: holdEnded}
	return q.changeBatch(ctx, row, next, by,
		q.unheld(collectionTarget(row.Collection), batchTarget(row.Batch.ID)))
}
