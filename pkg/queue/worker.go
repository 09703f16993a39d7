package queue

import (
	"context"
	"errors"
	"time"

	"archivist/pkg/fault"
	"archivist/pkg/ingest"
	"archivist/pkg/table"
)

// Answers tells a token's execution how its stage ended. Tokens that are
// unknown, answered or timed out count as answered: whether an answer is stale
// is decided by the row, never by the refusal of a token.
type Answers interface {
	Answer(ctx context.Context, token string, a ingest.Answer, cause string) error
}

// Step does one state's work on a taken item, from whatever point an earlier
// try got to. An error is a try that may succeed later (a store that does not
// answer); what can never succeed is an ingest.Fail.
type Step func(ctx context.Context, h *Claim) (ingest.Result, error)

// Worker is a stage's worker: it takes an item, does the step, commits, and
// answers the token (architecture: the five steps of a stage).
type Worker struct {
	Queue   *Queue
	Stage   ingest.Stage
	Step    Step
	Answers Answers
}

// Handle works on one message. It returns how long the message is to be kept
// hidden before it comes again; 0 means that it is done and can be deleted.
func (w *Worker) Handle(ctx context.Context, m Message) (keep time.Duration, err error) {
	h, answer, keep, err := w.take(ctx, m)
	if err != nil || keep > 0 {
		return keep, err
	}
	cause := ""
	if h != nil {
		if answer, cause, keep, err = w.work(ctx, h, m); err != nil || keep > 0 {
			return keep, err
		}
	}
	if m.Token == "" {
		return 0, nil
	}
	if err = w.Answers.Answer(ctx, m.Token, answer, cause); err != nil {
		w.Queue.block(ctx, m.Job, m.Batch, m.Exec, "the state machine was not told that "+w.Stage.Name+" is done", err)
	}
	return 0, err
}

// take reads the item and takes its lease. Without a Held, the message is
// stale (tell the answer) or early (keep it).
func (w *Worker) take(ctx context.Context, m Message) (h *Claim, a ingest.Answer, keep time.Duration, err error) {
	for range 3 {
		if m.Batch != "" {
			h, a, keep, err = w.takeBatch(ctx, m)
		} else {
			h, a, keep, err = w.takeJob(ctx, m)
		}
		if !fault.Is(err, fault.Stale) {
			break
		}
	}
	if fault.Is(err, fault.NotFound) {
		return nil, ingest.Superseded, 0, nil // cleaned away: nothing is left to do
	}
	return h, a, keep, err
}

func (w *Worker) takeJob(ctx context.Context, m Message) (*Claim, ingest.Answer, time.Duration, error) {
	q, now := w.Queue, w.Queue.Now()
	row, err := q.Job(ctx, m.Job)
	if err != nil {
		return nil, "", 0, err
	}
	at := ingest.State(m.State)
	if a := row.Answer(at, m.Exec); a != ingest.Continue || at != w.Stage.Job {
		return nil, a, 0, nil
	}
	if row.Live(now) {
		return nil, "", w.comeBack(row.Until, now), nil
	}
	times := q.Rules.Timing.Times(w.Stage)
	is := row.Job
	if is.Claimed(); is.Tries > w.Stage.Tries {
		is = q.Rules.Failed(row.Job, gaveUp(w.Stage, row.Tries, row.Message, "Correct that, then requeue the job"), true, now)
		err := q.changeJob(ctx, row, is, why{event: "job.state", component: w.Stage.Name, reason: is.Message})
		return nil, is.Answer(at, m.Exec), 0, err
	}
	is.Due = now.Add(times.Grace).UnixMilli()
	tx := q.Table.Begin(q.NewID())
	next := *row
	next.Job = is
	next.Take(tx.ID(), now, times.Lease)
	q.crashed(tx, row.Holder)
	q.writeJob(tx, row, next)
	if err := tx.Commit(ctx); err != nil {
		return nil, "", 0, err
	}
	return &Claim{Job: &is, Until: now.Add(times.Budget), q: q, job: row}, "", 0, nil
}

func (w *Worker) takeBatch(ctx context.Context, m Message) (*Claim, ingest.Answer, time.Duration, error) {
	q, now := w.Queue, w.Queue.Now()
	row, err := q.Batch(ctx, m.Batch)
	if err != nil {
		return nil, "", 0, err
	}
	if a := row.Answer(w.Stage, m.Exec); a != ingest.Continue {
		return nil, a, 0, nil
	}
	if row.Live(now) {
		return nil, "", w.comeBack(row.Until, now), nil
	}
	times := q.Rules.Timing.Times(w.Stage)
	is := row.Batch
	if is.Claimed(); is.Tries > w.Stage.Tries {
		then := "Correct that, then submit again what is missing"
		if is.State != ingest.BatchPending {
			then = "Its jobs have ended, and can be listed with their receipts"
		}
		is = q.giveUp(row.Batch, gaveUp(w.Stage, row.Tries, row.Message, then))
		err := q.changeBatch(ctx, row, is, why{event: "batch.state", component: w.Stage.Name, reason: is.Message})
		return nil, ingest.StageFail, 0, err // failed executions of batches are an alarm
	}
	is.Due = now.Add(times.Grace).UnixMilli()
	tx := q.Table.Begin(q.NewID())
	next := *row
	next.Batch = is
	next.Take(tx.ID(), now, times.Lease)
	q.crashed(tx, row.Holder)
	q.writeBatch(tx, row, next)
	if err := tx.Commit(ctx); err != nil {
		return nil, "", 0, err
	}
	return &Claim{Batch: &is, Until: now.Add(times.Budget), q: q, batch: row}, "", 0, nil
}

// crashed counts, with a take, that the worker before ended without a word: whoever ends
// well, or fails, gives its lease back.
func (q *Queue) crashed(tx *table.Tx, holder string) {
	if holder != "" {
		tx.OnCommit(func() { q.Metric(Crashes, 1) })
	}
}

// comeBack is how long a message waits for the lease that another holds.
func (w *Worker) comeBack(until int64, now time.Time) time.Duration {
	left := time.UnixMilli(until).Sub(now)
	return left + time.Duration(w.Queue.Table.Jitter()*float64(time.Second)) + time.Second
}

// work does the step and commits what it says.
func (w *Worker) work(ctx context.Context, h *Claim, m Message) (ingest.Answer, string, time.Duration, error) {
	if h.Batch != nil {
		return w.workBatch(ctx, h, m)
	}
	q := w.Queue
	res, err := w.step(ctx, h)
	if fault.Is(err, fault.Stale) {
		return "", "", time.Second, q.tooLate(ctx, h) // the item is another's now: the message is judged again
	}
	if err != nil {
		return "", "", w.again(ctx, h, err), nil
	}
	is := q.Rules.Next(*h.Job, res, q.Now())
	if why := is.TooLarge(q.Settings.Space); is.State == ingest.Provisioning && why != "" {
		res = ingest.Fail(true, why)
		is = q.Rules.Next(*h.Job, res, q.Now())
	}
	e := why{event: "job.state", component: w.Stage.Name, reason: res.Reason}
	if e.reason == "" {
		e.reason = h.remark
	}
	if res.Outcome == ingest.StepContinue {
		e.event = "job.continued"
	}
	also := h.also
	if res.Outcome != ingest.StepNext {
		also = nil
	}
	err = q.changeJob(ctx, h.job, is, e, also...)
	if fault.Is(err, fault.Stale) {
		return "", "", time.Second, q.tooLate(ctx, h)
	}
	if err != nil {
		return "", "", w.again(ctx, h, err), nil
	}
	return is.Answer(w.Stage.Job, m.Exec), res.Reason, 0, nil
}

func (w *Worker) workBatch(ctx context.Context, h *Claim, m Message) (ingest.Answer, string, time.Duration, error) {
	q := w.Queue
	res, err := w.step(ctx, h)
	if fault.Is(err, fault.Stale) {
		return "", "", time.Second, nil
	}
	if err != nil && errors.Is(err, h.invalid) {
		res, err = ingest.Fail(false, err.Error()), nil // what was submitted does not get better by another try
	}
	if err != nil {
		return "", "", w.again(ctx, h, err), nil
	}
	switch {
	case res.Outcome == ingest.StepContinue:
		err = q.continueBatch(ctx, h)
	case h.Batch.State == ingest.BatchProcessing: // unpack sealed it, in its last chunk
		return h.Batch.Answer(w.Stage, m.Exec), "", 0, nil
	default:
		err = q.endBatch(ctx, h, res)
	}
	if fault.Is(err, fault.Stale) {
		return "", "", time.Second, nil
	}
	if err != nil {
		return "", "", w.again(ctx, h, err), nil
	}
	return h.Batch.Answer(w.Stage, m.Exec), res.Reason, 0, nil
}

// continueBatch saves a batch whose step made progress and goes on in another
// message, and gives its lease back.
func (q *Queue) continueBatch(ctx context.Context, h *Claim) error {
	next := *h.batch
	next.Batch = q.Rules.ContinueBatch(*h.Batch, q.Now())
	next.Release()
	tx := q.Table.Begin(q.NewID())
	q.writeBatch(tx, h.batch, next)
	return tx.Commit(ctx)
}

// again writes down why a try failed, gives the lease back, and says when to
// try again. When even that fails the lease simply runs out.
func (w *Worker) again(ctx context.Context, h *Claim, cause error) time.Duration {
	q := w.Queue
	log := q.Log.With("stage", w.Stage.Name)
	if h.Job != nil {
		log = log.With("batch", h.Job.Batch, "job", h.Job.ID, "exec", h.Job.Exec)
	} else {
		log = log.With("batch", h.Batch.ID, "exec", h.Batch.Exec)
	}
	log.Warn("a try failed", "error", cause)
	tx := q.Table.Begin(q.NewID())
	tries := 0
	if h.Batch != nil {
		next := *h.batch
		next.Message, tries = causeOf(cause), next.Tries
		next.Release()
		q.writeBatch(tx, h.batch, next)
	} else {
		next := *h.job
		next.Message, tries = causeOf(cause), next.Tries
		next.Release()
		q.writeJob(tx, h.job, next)
	}
	if err := tx.Commit(ctx); err != nil {
		log.Warn("the failed try could not be written down", "error", err)
	}
	bound := min(time.Second<<min(tries, 6), q.Rules.Timing.Short)
	return time.Second + time.Duration(q.Table.Jitter()*float64(bound))
}

// step does the worker's step within its function's time, less a twelfth to write
// down how it ended.
func (w *Worker) step(ctx context.Context, h *Claim) (ingest.Result, error) {
	limit := w.Queue.Rules.Timing.Times(w.Stage).Timeout
	inTime, cancel := context.WithTimeoutCause(ctx, limit-limit/12, errTimeUp)
	defer cancel()
	res, err := w.Step(inTime, h)
	if err != nil && errors.Is(context.Cause(inTime), errTimeUp) && !fault.Is(err, fault.Stale) {
		err = &timeUpError{err}
	}
	return res, err
}
