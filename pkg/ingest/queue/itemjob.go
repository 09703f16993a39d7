package queue

import (
	"context"
	"errors"
	"slices"

	"archivist/pkg/ingest"
	"archivist/pkg/kernel/table"
)

func (row *Job) common() common { return common{&row.Work, &row.On, &row.Message} }

func (row *Job) rewrite(q *Queue, tx *table.Tx, change func(row common)) {
	next := *row
	change(next.common())
	q.writeJob(tx, row, next)
}

// stage has none of a parked job: it waits at a gate, in the state at which it continues.
func (row *Job) stage() (ingest.Stage, bool) {
	s, ok := ingest.StageOf(row.State)
	return s, ok && !row.Parked
}

// judge uses the state that the message names: the stage of a job has only one.
func (row *Job) judge(m Message, s ingest.Stage) ingest.Answer {
	return row.Answer(ingest.State(m.State), m.Exec)
}

// stopAtHold does nothing: the gates stop jobs.
func (row *Job) stopAtHold(context.Context, *Queue) (held bool, err error) { return false, nil }

func (row *Job) claim() *Claim {
	job := row.Job
	return &Claim{Job: &job}
}

// exhaust makes a job Failed, so that a person can requeue it.
func (row *Job) exhaust(ctx context.Context, q *Queue, s ingest.Stage) (ingest.Answer, error) {
	reason := triedTooOften(s, row.Tries, row.Message, "Correct that, then requeue the job")
	next := q.Rules.Failed(row.Job, reason, true, q.Now())
	err := q.changeJob(ctx, row, next, origin{
		event:     "job.state",
		component: s.Name,
		reason:    next.Message,
	})
	return next.Answer(s.Job, next.Exec), err
}

// finish commits the change that follows from the result by the rules, with what the step
// added to its transaction. If the size turns out too large, the job fails at once, so that
// it does not block other jobs.
func (row *Job) finish(ctx context.Context, c *Claim, s ingest.Stage,
	res ingest.Result) (verdict, error) {
	q := c.q
	next := q.Rules.Next(*c.Job, res, q.Now())
	// It would wait at gate 2 for more space than the whole space has.
	if why := next.TooLarge(q.Settings.Space); next.State == ingest.Provisioning && why != "" {
		res = ingest.Fail(true, why)
		next = q.Rules.Next(*c.Job, res, q.Now())
	}

	by := origin{event: "job.state", component: s.Name, reason: c.remark}
	var more []func(*table.Tx) error
	var v verdict
	switch res.Outcome {
	case ingest.StepNext:
		more = c.added(ctx)
	case ingest.StepContinue:
		by.event = "job.continued"
	case ingest.StepDefer, ingest.StepFail:
		by.reason = next.Message
	}

	if next.State == ingest.Failed {
		v.cause = next.Message
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
func (row *Job) enter(ctx context.Context, q *Queue, next ingest.Job, by origin,
	more []func(*table.Tx) error) (
	ingest.Job, error) {
	if row.State == next.State || next.State != ingest.Storing {
		return next, q.changeJob(ctx, row, next, by, more...)
	}

	// Only this transition: what is at Storing already has begun to write, and goes on.
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

// recordLost records on the job that its version is committed, if this worker did that. Whoever has
// failed the job meanwhile did not know of the version.
func (row *Job) recordLost(ctx context.Context, c *Claim) error {
	if c.Job.ObjectVersion == 0 || c.Job.NoChange {
		return nil
	}
	return c.q.Preserved(ctx, c.Job.ID, c.Job.Primary, c.Job.ObjectVersion)
}

func (row *Job) logged() []any {
	return []any{"batch", row.Job.Batch, "job", row.Job.ID, "exec", row.Exec}
}
