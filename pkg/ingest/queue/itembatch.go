package queue

import (
	"cmp"
	"context"
	"fmt"

	"archivist/pkg/ingest"
	"archivist/pkg/kernel/fetch"
	"archivist/pkg/kernel/table"
)

func (row *Batch) common() common { return common{&row.Work, &row.On, &row.Message} }

// rewrite writes a copy, so that a commit that fails leaves the row as it was read.
func (row *Batch) rewrite(q *Queue, tx *table.Tx, change func(row common)) {
	next := *row
	change(next.common())
	q.writeBatch(tx, row, next)
}

func (row *Batch) stage() (ingest.Stage, bool) { return ingest.StageOfBatch(row.State) }

func (row *Batch) judge(m Message, s ingest.Stage) ingest.Answer { return row.Answer(s, m.Exec) }

// stopAtHold makes a batch without jobs Held if its collection or it is on hold, and returns
// whether it did.
func (row *Batch) stopAtHold(ctx context.Context, q *Queue) (held bool, err error) {
	if !unstarted(&row.Batch) {
		return false, nil
	}
	h, err := q.holdOn(ctx, row.Collection, row.Batch.ID)
	if h == nil || err != nil {
		return false, err
	}
	next := q.Rules.HeldBatch(row.Batch, h.Hold, q.Now())
	by := origin{event: "batch.held", component: "unpack", reason: h.Description()}
	return true, q.changeBatch(ctx, row, next, by, h.require)
}

func (row *Batch) claim() *Claim {
	batch := row.Batch
	return &Claim{Batch: &batch}
}

// exhaust fails a batch. If it has jobs already, it waits for them and reports instead.
func (row *Batch) exhaust(ctx context.Context, q *Queue, s ingest.Stage) (ingest.Answer, error) {
	then := "Correct that, then submit again what is missing"
	switch row.State {
	case ingest.BatchReporting:
		then = "Its jobs have ended, and can be listed with their receipts. Correct that, then use the action " +
			"update-report"
	case ingest.BatchUpdateReporting:
		then = "Correct that, then repeat the action update-report"
	}

	next := q.giveUp(row.Batch, triedTooOften(s, row.Tries, row.Message, then))
	err := q.changeBatch(ctx, row, next, origin{
		event:     "batch.state",
		component: s.Name,
		reason:    next.Message,
	})
	return ingest.StageFail, err // failed executions of batches are an alarm
}

// finish saves the batch if its step continues, or ends it. Unpack itself has moved it to
// Processing.
func (row *Batch) finish(ctx context.Context, c *Claim, s ingest.Stage,
	res ingest.Result) (verdict, error) {
	var err error
	switch {
	case res.Outcome == ingest.StepContinue:
		err = row.proceed(ctx, c)
	case c.Batch.State == ingest.BatchProcessing: // Unpack sealed it, in its last chunk
	default:
		err = row.end(ctx, c, res)
	}

	if err != nil {
		return verdict{}, err
	}
	return verdict{answer: c.Batch.Answer(s, c.Batch.Exec), cause: res.Reason}, nil
}

// proceed saves a batch whose step made progress and continues in another message. It has no event:
// nothing has changed for others.
func (row *Batch) proceed(ctx context.Context, c *Claim) error {
	next := *row
	next.Batch = c.q.Rules.ContinueBatch(*c.Batch, c.q.Now())
	next.Release()
	tx := c.q.Table.Begin(c.q.NewID())
	c.q.writeBatch(tx, row, next)
	return tx.Commit(ctx)
}

// end ends a batch whose report is saved, or whose manifest cannot be used. It becomes
// Completed only if no job has failed, which the same transaction checks. After a Stale, the
// message is handled again, with the counts as they are then.
func (row *Batch) end(ctx context.Context, c *Claim, res ingest.Result) error {
	next, by, more := c.q.giveUp(*c.Batch, res.Reason), origin{
		event:     "batch.state",
		component: "unpack",
		reason:    res.Reason,
	}, c.added(ctx)

	if res.Outcome != ingest.StepFail {
		var err error
		if next, more, err = c.q.reported(ctx, c); err != nil {
			return err
		}
		by.component, by.reason = "report", cmp.Or(next.Message, c.remark)
	}

	err := c.q.changeBatch(ctx, row, next, by, more...)
	if err == nil {
		*c.Batch = next
	}
	return err
}

// reported is a batch whose report is saved, with the other parts of its transaction.
func (q *Queue) reported(ctx context.Context,
	c *Claim) (next ingest.Batch, more []func(*table.Tx) error, err error) {
	next, more = *c.Batch, c.added(ctx)
	counts, err := q.Counts(ctx, next.ID)
	if err != nil {
		return next, more, err
	}

	to := ingest.BatchFailed
	if !c.uncompleted && next.Incomplete == "" && counts.Failed == 0 && counts.Open() == 0 &&
		!cutShort(&next, counts) {
		to = ingest.BatchCompleted
		next.Callback = fetch.Redact(next.Callback) // no job is notified any more
		// A job that is requeued, or fails, since the counts were read makes the commit a Stale.
		more = append(more, func(tx *table.Tx) error {
			tx.Require(countKey(next.ID), "n_failed = ? AND n_processing = ? AND n_held = ?", 0, 0, 0)
			return nil
		})
	}

	next.Message = next.CutShort()
	if next.Message == "" && counts.Deleted > 0 {
		next.Message = fmt.Sprintf("a person has deleted %s of %s; this batch has stored nothing of what was deleted",
			ingest.Number(counts.Deleted), ingest.Counted(counts.Sum(), "job"))
	}
	return q.Rules.EnterBatch(next, to, q.Now()), more, nil
}

// cutShort reports whether jobs of a batch were deleted because it was cancelled.
func cutShort(b *ingest.Batch, c ingest.Counts) bool { return b.Cancelled != nil && c.Deleted > 0 }

// recordLost does nothing: a batch's row has all that its steps did.
func (row *Batch) recordLost(context.Context, *Claim) error { return nil }

func (row *Batch) logged() []any { return []any{"batch", row.Batch.ID, "exec", row.Exec} }
