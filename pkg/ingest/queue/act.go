package queue

import (
	"context"
	"slices"

	"archivist/pkg/ingest"
)

// Act does one action. An Invalid means that the request is wrong, a Denied that the role
// of the actor does not allow it, a Conflict that the state of the target does not allow
// it or that it needs confirmation, a Held that a hold prevents it.
//
// The receipt is read before anything that depends on time or on other rows, so that a repeat of a
// request that was done is never refused.
func (d Admin) Act(ctx context.Context, a ingest.Action) (ingest.ActionResult, error) {
	if err := a.Check(); err != nil {
		return ingest.ActionResult{}, err
	}

	r, err := d.Queue.receipt(ctx, a)
	if err != nil || r.done() {
		return r.result(a), err
	}

	// Only now: the end that a repeated request names may have passed.
	if err := ingest.CheckUntil(a.Until, d.Queue.Now()); err != nil {
		return ingest.ActionResult{}, err
	}

	switch a.Target.Kind {
	case ingest.TargetJob:
		return d.actOnJob(ctx, a, r)
	case ingest.TargetBatch:
		return d.actOnBatch(ctx, a, r)
	}
	return d.actOnHold(ctx, a, r)
}

// jobActions are the deciders of the actions on jobs: of all in ingest.Actions and
// ingest.BulkActions, which a test compares.
var jobActions = map[ingest.ActionName]decider{
	ingest.ActRequeue:    decideRequeue,
	ingest.ActFail:       decideFail,
	ingest.ActHold:       decideHold,
	ingest.ActRelease:    decideRelease,
	ingest.ActDelete:     decideDelete,
	ingest.ActPrioritize: decidePrioritize,
	ingest.ActCleanUp:    decideCleanUp,
	ingest.ActCancel:     decideCancel, // in the bulk operation that cancels a batch
}

// actOnJob does an action on a job, with its receipt in the same transaction.
func (d Admin) actOnJob(ctx context.Context, a ingest.Action,
	r *receipt) (out ingest.ActionResult, err error) {
	q, decide := d.Queue, jobActions[a.Name]
	return d.attempt(ctx, a, r, func() (attempt, error) {
		row, err := q.Job(ctx, a.Target.ID)
		if err != nil {
			return attempt{}, err
		}
		to, err := decide(ctx, q, row, a)
		to.by.request = a.Request
		commit := func(remember part) error {
			return q.changeJob(ctx, row, to.next, to.by, append(slices.Clip(to.also), remember)...)
		}
		return attempt{to.plan, string(row.State), string(to.next.State), commit}, err
	})
}

// batchActions are the deciders of the actions on batches: of all in ingest.Actions.
var batchActions = map[ingest.ActionName]batchDecider{
	ingest.ActUpdateReport: decideUpdateReport,
	ingest.ActDelete:       decideDeleteBatch,
	ingest.ActCleanUp:      decideCleanUpBatch,
	ingest.ActHold:         decideHoldBatch,
	ingest.ActRelease:      decideReleaseBatch,
	ingest.ActCancel:       decideCancelBatch,
}

// actOnBatch is actOnJob for a batch.
func (d Admin) actOnBatch(ctx context.Context, a ingest.Action,
	r *receipt) (out ingest.ActionResult, err error) {
	q, decide := d.Queue, batchActions[a.Name]
	return d.attempt(ctx, a, r, func() (attempt, error) {
		row, err := q.Batch(ctx, a.Target.ID)
		if err != nil {
			return attempt{}, err
		}

		to, err := decide(ctx, q, row, a)
		to.by.request = a.Request
		commit := func(remember part) error {
			return q.changeBatch(ctx, row, to.next, to.by,
				append(slices.Clip(to.also), remember)...)
		}
		return attempt{to.plan, string(row.State), string(to.next.State), commit}, err
	})
}
