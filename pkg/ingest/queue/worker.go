package queue

import (
	"context"
	"errors"
	"time"

	"archivist/pkg/events/envelope"
	"archivist/pkg/events/event"
	"archivist/pkg/ingest"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/fetch"
)

// Answers reports to a token's execution how its stage ended. A token that is unknown,
// answered or timed out counts as answered: whether an answer is stale is decided by the
// row, never by the refusal of a token.
type Answers interface {
	Answer(ctx context.Context, token string, a ingest.Answer, cause string) error
}

// Step does the work of one state on a claimed item, and continues from where an earlier
// try ended. An error means that a later try may succeed (a store does not answer). What
// can never succeed is an ingest.Fail.
type Step func(ctx context.Context, c *Claim) (ingest.Result, error)

// Worker is a stage's worker. It handles a message in five steps:
//
//  1. read the item; a stale message is answered at once
//  2. take the item's lease; if another worker has it, the message is kept
//  3. do the step
//  4. commit what the step found, and release the lease
//  5. answer the token
//
// If a worker dies at any point, the message comes back after the lease, and is handled by
// the same steps.
type Worker struct {
	Queue   *Queue
	Stage   ingest.Stage
	Step    Step
	Answers Answers
}

// Handle handles one message. It returns how long to hide the message before it is
// delivered again; 0 means that it is done and can be deleted.
//
// An error means that the message was not handled. It comes back after its visibility time-out.
func (w *Worker) Handle(ctx context.Context, m Message) (keep time.Duration, err error) {
	c, v, err := w.take(ctx, m) // steps 1 and 2
	if err == nil && c != nil {
		ctx := because(ctx, c)
		res, failure := w.step(ctx, c)          // step 3
		v, err = w.commit(ctx, c, res, failure) // step 4
	}
	if err != nil || v.keep > 0 {
		return v.keep, err
	}
	return 0, w.answer(ctx, m, v) // step 5
}

// because returns a context in which changes have the cause of the claimed item. Events that the
// step appends name it.
func because(ctx context.Context, c *Claim) context.Context {
	var cause *envelope.Cause
	switch {
	case c.Job != nil:
		cause = c.Job.Cause
	case c.Batch != nil:
		cause = c.Batch.Cause
	}

	if cause == nil {
		return ctx
	}

	o := event.OriginOf(ctx)
	o.Cause = *cause
	return event.From(ctx, o)
}

// take reads the item and takes its lease. If it returns no claim, the verdict states what
// to do with the message.
func (w *Worker) take(ctx context.Context, m Message) (c *Claim, v verdict, err error) {
	for range 3 {
		c, v, err = w.tryTake(ctx, m)
		if !fault.Is(err, fault.Stale) {
			break
		}
	}
	if fault.Is(err, fault.NotFound) {
		return nil, verdict{answer: ingest.Superseded}, nil // its rows were removed: nothing is left to do
	}
	return c, v, err
}

// tryTake is one try of take. A Stale means that the item was changed after it was read.
func (w *Worker) tryTake(ctx context.Context, m Message) (*Claim, verdict, error) {
	q, now := w.Queue, w.Queue.Now()
	it, err := q.item(ctx, m.Job, m.Batch)
	if err != nil {
		return nil, verdict{}, err
	}

	a := it.judge(m, w.Stage)
	if s, _ := it.stage(); a != ingest.Continue || s.Name != w.Stage.Name {
		return nil, verdict{answer: a}, nil
	}

	row := it.common()
	if row.Live(now) {
		return nil, verdict{keep: w.hideUntil(row.Until, now)}, nil
	}

	// The tries are counted before the step: one that kills its worker each time must end, too.
	if row.Tries >= w.Stage.Tries {
		a, err := it.exhaust(ctx, q, w.Stage)
		return nil, verdict{answer: a}, err
	}

	if held, err := it.stopAtHold(ctx, q); held || err != nil {
		return nil, verdict{answer: it.judge(m, w.Stage)}, err
	}

	times := q.Rules.Timing.Times(w.Stage)
	tx := q.Table.Begin(q.NewID())
	if row.Holder != "" { // the worker crashed: one that succeeds or fails releases its lease
		tx.OnCommit(func() { q.Metric(Crashes, 1) })
	}

	it.rewrite(q, tx, func(row common) {
		row.Claimed()
		row.Due = now.Add(times.Grace).UnixMilli()
		row.Take(tx.ID(), now, times.Lease)
	})

	if err := tx.Commit(ctx); err != nil {
		return nil, verdict{}, err
	}

	c := it.claim()
	c.q, c.item, c.Until = q, it, now.Add(times.Budget)
	return c, verdict{}, nil
}

// hideUntil is how long a message waits for the lease of another worker.
func (w *Worker) hideUntil(until int64, now time.Time) time.Duration {
	left := time.UnixMilli(until).Sub(now)
	return left + w.Queue.jitter(time.Second) + time.Second
}

// jitter is a random part of a time, so that messages that wait for the same thing do not
// all come back at once.
func (q *Queue) jitter(most time.Duration) time.Duration {
	return time.Duration(q.Table.Jitter() * float64(most))
}

// step runs the step within its function's time, less a twelfth to record how it ended.
func (w *Worker) step(ctx context.Context, c *Claim) (ingest.Result, error) {
	limit := w.Queue.Rules.Timing.Times(w.Stage).Timeout
	inTime, cancel := context.WithTimeoutCause(ctx, limit-limit/12, errTimeUp)
	defer cancel()
	res, err := w.Step(inTime, c)
	if err != nil && errors.Is(context.Cause(inTime), errTimeUp) && !fault.Is(err, fault.Stale) {
		err = &timeUpError{err}
	}
	return res, err
}

// commit writes the step's result to the item: its next state, or why the try failed.
func (w *Worker) commit(ctx context.Context, c *Claim, res ingest.Result,
	failure error) (v verdict, err error) {
	if failure != nil && errors.Is(failure, c.refused) {
		res, failure = ingest.Fail(false, failure.Error()), nil // another try would be refused as well
	}

	err = failure
	if err == nil {
		v, err = c.item.finish(ctx, c, w.Stage, res)
	}

	switch {
	case fault.Is(err, fault.Stale): // another worker has the item: the message is handled again
		return verdict{keep: time.Second}, c.item.recordLost(ctx, c)
	case err != nil:
		return verdict{keep: w.retry(ctx, c, err)}, nil
	}
	return v, nil
}

// retry records on the item why a try failed, releases the lease, and returns when to try
// again. If that fails too, the lease ends by itself. Without the lease on the row, the next try
// does not wait for its end, and does not count as a crash.
func (w *Worker) retry(ctx context.Context, c *Claim, cause error) time.Duration {
	q := w.Queue
	log := q.Log.With("stage", w.Stage.Name).With(c.item.logged()...)
	log.Warn("a try failed", "error", cause)
	err := q.rewrite(ctx, c.item, func(row common) {
		*row.Message = CauseOf(cause)
		if c.Job != nil {
			row.Checkpoint = c.Job.Checkpoint
		}
		row.Release()
	})
	if fault.Is(err, fault.Stale) { // a person has taken the item from this worker, perhaps after it had committed
		err = c.item.recordLost(ctx, c)
	}
	if err != nil {
		log.Warn("the failed try could not be recorded on its row", "error", err)
	}

	// A source may ask for a longer wait, up to the visibility time-out: after that, the
	// sweep would repair the item.
	asked := min(fetch.AskedToWait(cause), q.Rules.Timing.Times(w.Stage).Visibility)
	return time.Second + max(asked, q.jitter(q.Rules.Timing.RetryWait(c.item.common().Tries)))
}

// answer reports to the execution how its stage ended. If AWS refuses that, it is recorded
// on the row.
func (w *Worker) answer(ctx context.Context, m Message, v verdict) error {
	if m.Token == "" {
		return nil
	}
	err := w.Answers.Answer(ctx, m.Token, v.answer, v.cause)
	if err != nil {
		what := "the state machine was not informed that " + w.Stage.Name + " is done"
		w.Queue.block(ctx, m.Job, m.Batch, m.Exec, what, err)
	}
	return err
}
