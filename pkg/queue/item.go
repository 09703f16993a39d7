package queue

import (
	"context"
	"errors"
	"slices"

	"archivist/pkg/ingest"
	"archivist/pkg/lease"
	"archivist/pkg/table"
)

// item is the row of a job or a batch, which an execution drives. Workers, the sweep and
// the records of refused calls treat both alike; the differences are here.
type item interface {
	// common is what both have. Only rewrite changes the row.
	common() common
	// rewrite puts the row into tx after change, on the condition that it was not written
	// since it was read.
	rewrite(q *Queue, tx *table.Tx, change func(row common))
	// stage is the stage that works on the item now, if any.
	stage() (ingest.Stage, bool)
	// judge returns the answer to the token of a message to a stage. Continue means that
	// the item waits for that stage, by that execution.
	judge(m Message, s ingest.Stage) ingest.Answer
	// stopAtHold holds an item that is about to start if a hold is active for it.
	stopAtHold(ctx context.Context, q *Queue) (held bool, err error)
	// claim makes the copy that a step may change.
	claim() *Claim
	// exhaust fails the item because its stage was tried too often.
	exhaust(ctx context.Context, q *Queue, s ingest.Stage) (ingest.Answer, error)
	// finish commits how a step ended.
	finish(ctx context.Context, c *Claim, s ingest.Stage, res ingest.Result) (verdict, error)
	// recordLost records what a worker did before it lost the item.
	recordLost(ctx context.Context, c *Claim) error
	// repair does what is due for an item that is past its due time.
	repair(ctx context.Context, q *Queue) error
	// logged are the item's ids, as log lines have them.
	logged() []any
}

// common is what the rows of jobs and batches have in common.
type common struct {
	*ingest.Work
	*lease.On
	Message *string
}

var _, _ item = (*Job)(nil), (*Batch)(nil)

// item reads a job, or else a batch.
func (q *Queue) item(ctx context.Context, job, batch string) (item, error) {
	if batch != "" {
		return q.Batch(ctx, batch)
	}
	return q.Job(ctx, job)
}

func (row *Job) common() common { return common{&row.Work, &row.On, &row.Message} }

func (row *Job) rewrite(q *Queue, tx *table.Tx, change func(row common)) {
	next := *row
	change(next.common())
	q.writeJob(tx, row, next)
}

func (row *Job) stage() (ingest.Stage, bool) {
	s, ok := ingest.StageOf(row.State)
	return s, ok && !row.Parked
}

// judge uses the state that the message names: the stage of a job has only one.
func (row *Job) judge(m Message, s ingest.Stage) ingest.Answer {
	return row.Answer(ingest.State(m.State), m.Exec)
}

func (row *Job) claim() *Claim {
	job := row.Job
	return &Claim{Job: &job}
}

// exhaust makes a job Failed, so that a person can requeue it.
func (row *Job) exhaust(ctx context.Context, q *Queue, s ingest.Stage) (ingest.Answer, error) {
	reason := triedTooOften(s, row.Tries, row.Message, "Correct that, then requeue the job")
	next := q.Rules.Failed(row.Job, reason, true, q.Now())
	err := q.changeJob(ctx, row, next, origin{event: "job.state", component: s.Name, reason: next.Message})
	return next.Answer(s.Job, next.Exec), err
}

// finish commits the change that follows from the result by the rules, with what the step
// added to its transaction. If the size turns out too large, the job fails at once, so that
// it does not block other jobs.
func (row *Job) finish(ctx context.Context, c *Claim, s ingest.Stage, res ingest.Result) (verdict, error) {
	q := c.q
	next := q.Rules.Next(*c.Job, res, q.Now())
	if why := next.TooLarge(q.Settings.Space); next.State == ingest.Provisioning && why != "" {
		res = ingest.Fail(true, why)
		next = q.Rules.Next(*c.Job, res, q.Now())
	}
	by := origin{event: "job.state", component: s.Name, reason: c.remark}
	var more []func(*table.Tx) error
	var v verdict
	switch res.Outcome {
	case ingest.StepNext:
		more = c.onCommit
	case ingest.StepContinue:
		by.event = "job.continued"
	case ingest.StepDefer:
		by.reason = next.Message
	case ingest.StepFail:
		by.reason, v.cause = next.Message, next.Message
	}
	next, err := row.enter(ctx, q, next, by, more)
	if err != nil {
		return verdict{}, err
	}
	v.answer = next.Answer(s.Job, next.Exec)
	return v, nil
}

// enter commits the end of a step. A job that would enter Storing while the storage is paused
// is parked instead, as it was before its step: the step is done again later.
func (row *Job) enter(ctx context.Context, q *Queue, next ingest.Job, by origin, more []func(*table.Tx) error) (
	ingest.Job, error) {
	if row.State == next.State || next.State != ingest.Storing {
		return next, q.changeJob(ctx, row, next, by, more...)
	}
	more = append(slices.Clip(more), q.unheld(theStorage))
	for range actTries {
		err := q.changeJob(ctx, row, next, by, more...)
		if !failedOn(err, holdKey(theStorage)) {
			return next, err
		}
		pause, err := q.hold(ctx, theStorage)
		if err != nil {
			return next, err
		}
		if pause != nil {
			next = q.Rules.Park(row.Job, ingest.WaitsForStorage, "", q.Now())
			by.reason = pause.Description()
			return next, q.changeJob(ctx, row, next, by)
		}
	}
	return next, busy(ingest.Target{Kind: ingest.TargetStorage})
}

// failedOn reports whether a commit failed because of the condition on a row.
func failedOn(err error, k table.Key) bool {
	var ce *table.ConditionError
	return errors.As(err, &ce) && ce.Failed(k)
}

// recordLost records on the job that its version is committed, if this worker did that.
func (row *Job) recordLost(ctx context.Context, c *Claim) error {
	if c.Job.ObjectVersion == 0 || c.Job.NoChange {
		return nil
	}
	return c.q.Preserved(ctx, c.Job.ID, c.Job.Primary, c.Job.ObjectVersion)
}

func (row *Job) logged() []any {
	return []any{"batch", row.Job.Batch, "job", row.Job.ID, "exec", row.Exec}
}

func (row *Batch) common() common { return common{&row.Work, &row.On, &row.Message} }

func (row *Batch) rewrite(q *Queue, tx *table.Tx, change func(row common)) {
	next := *row
	change(next.common())
	q.writeBatch(tx, row, next)
}

func (row *Batch) stage() (ingest.Stage, bool) { return ingest.StageOfBatch(row.State) }

func (row *Batch) judge(m Message, s ingest.Stage) ingest.Answer { return row.Answer(s, m.Exec) }

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
	err := q.changeBatch(ctx, row, next, origin{event: "batch.state", component: s.Name, reason: next.Message})
	return ingest.StageFail, err // failed executions of batches are an alarm
}

// finish saves the batch if its step continues, or ends it. Unpack itself has moved it to
// Processing.
func (row *Batch) finish(ctx context.Context, c *Claim, s ingest.Stage, res ingest.Result) (verdict, error) {
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

// proceed saves a batch whose step made progress and continues in another message.
func (row *Batch) proceed(ctx context.Context, c *Claim) error {
	next := *row
	next.Batch = c.q.Rules.ContinueBatch(*c.Batch, c.q.Now())
	next.Release()
	tx := c.q.Table.Begin(c.q.NewID())
	c.q.writeBatch(tx, row, next)
	return tx.Commit(ctx)
}

// recordLost does nothing: a batch's row has all that its steps did.
func (row *Batch) recordLost(context.Context, *Claim) error { return nil }

func (row *Batch) logged() []any { return []any{"batch", row.Batch.ID, "exec", row.Exec} }
