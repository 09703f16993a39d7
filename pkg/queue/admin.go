package queue

import (
	"context"
	"fmt"
	"slices"

	"archivist/pkg/fault"
	"archivist/pkg/ingest"
	"archivist/pkg/table"
)

// Admin does what persons ask for. The HTTP API, the command line and the state machine
// admin-action are doors to it: all checks are here and in package ingest.
//
// An action on a job is a decider: a function that reads what it needs and returns the job
// after the action. actOnJob does the rest, so that each action is checked, committed in
// one transaction with its event, safe to repeat, and has a dry run.
type Admin struct {
	Queue *Queue
	// Execution is the name of the execution of admin-action in which this runs, "" elsewhere.
	// It runs the pages of the operations that it starts: no other execution is started.
	Execution string
	// Checker is what the doctor does. Only RunPage needs it.
	Checker Checker
}

// Act does one action. An Invalid means that the request is wrong, a Denied that the role
// of the actor does not allow it, a Conflict that the state of the target does not allow
// it or that it needs confirmation, a Held that a hold prevents it.
func (d Admin) Act(ctx context.Context, a ingest.Action) (ingest.ActionResult, error) {
	if err := a.Check(); err != nil {
		return ingest.ActionResult{}, err
	}
	r, err := d.Queue.receipt(ctx, a)
	if err != nil || r.done() {
		return r.result(a), err
	}
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

// plan is what an action would do to its target, in words, and how it is confirmed.
type plan struct {
	by       origin
	summary  string
	warnings []string
	// unconfirmed is why the action needs confirmation, "" if it needs none.
	unconfirmed string
	// unchanged is set if the target is already as the action wants it.
	unchanged bool
	// first is done before the commit, but not in a dry run. It must be safe to repeat.
	first func(ctx context.Context) error
	// also are other parts of the transaction.
	also []func(*table.Tx) error
	// offers is a bulk operation that usually follows, nil if there is none.
	offers *ingest.Bulk
	// then is done after the commit, to speed up what the sweep would do as well.
	then func(ctx context.Context)
	// operation is the id of the bulk operation that completes the action, "" if there is none.
	operation string
}

// decision is what an action would do to a job.
type decision struct {
	plan
	next ingest.Job
}

// decider decides what an action does to a job. An error refuses it.
type decider func(ctx context.Context, q *Queue, row *Job, a ingest.Action) (decision, error)

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
func (d Admin) actOnJob(ctx context.Context, a ingest.Action, r *receipt) (out ingest.ActionResult, err error) {
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

// batchDecision is what an action would do to a batch.
type batchDecision struct {
	plan
	next ingest.Batch
}

// batchDecider decides what an action does to a batch. An error refuses it.
type batchDecider func(ctx context.Context, q *Queue, row *Batch, a ingest.Action) (batchDecision, error)

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
func (d Admin) actOnBatch(ctx context.Context, a ingest.Action, r *receipt) (out ingest.ActionResult, err error) {
	q, decide := d.Queue, batchActions[a.Name]
	return d.attempt(ctx, a, r, func() (attempt, error) {
		row, err := q.Batch(ctx, a.Target.ID)
		if err != nil {
			return attempt{}, err
		}
		to, err := decide(ctx, q, row, a)
		to.by.request = a.Request
		commit := func(remember part) error {
			return q.changeBatch(ctx, row, to.next, to.by, append(slices.Clip(to.also), remember)...)
		}
		return attempt{to.plan, string(row.State), string(to.next.State), commit}, err
	})
}

// part is a part of a transaction.
type part = func(*table.Tx) error

// attempt is one try of an action: its plan, the states before and after, and its commit,
// with what remembers that it was done.
type attempt struct {
	plan
	from, to string
	commit   func(remember part) error
}

// prepare does what is to be done before the commit.
func (p plan) prepare(ctx context.Context) error {
	if p.first == nil {
		return nil
	}
	return p.first(ctx)
}

// attempt decides and commits an action, again as often as others change its target
// meanwhile. If another try of the same request was first, the result is that of the other.
func (d Admin) attempt(ctx context.Context, a ingest.Action, r *receipt, decide func() (attempt, error)) (
	out ingest.ActionResult, err error) {
	for range actTries {
		to, err := decide()
		if err != nil {
			return out, err
		}
		out = to.result(a)
		if out.NeedsConfirm && (!a.DryRun || r != nil) { // an item of a dry run has a receipt, too
			return out, fault.New(fault.Conflict, "%s; %w", to.unconfirmed, ingest.ErrUnconfirmed)
		}
		if to.unchanged || a.DryRun {
			err = d.Queue.save(ctx, r, out)
		} else {
			err = to.do(ctx, r, &out)
		}
		switch {
		case r.lost(err):
			err = d.Queue.Table.Get(ctx, r.Key(), r)
			return r.result(a), err
		case fault.Is(err, fault.Stale):
			continue
		case err != nil:
			return out, fmt.Errorf("queue: %s %s %s: %w", a.Name, a.Target.Kind, a.Target.ID, err)
		}
		return out, nil
	}
	return out, busy(a.Target)
}

// result is the result of the attempt before it is committed.
func (to attempt) result(a ingest.Action) ingest.ActionResult {
	out := ingest.ActionResult{Action: a.Name, Target: a.Target, DryRun: a.DryRun, Summary: to.summary,
		Warnings: to.warnings, Next: to.offers, Operation: to.operation}
	if to.unchanged {
		return out
	}
	if to.from != to.to {
		out.From, out.To = to.from, to.to
	}
	if to.unconfirmed != "" {
		out.Warnings = append(slices.Clip(out.Warnings), to.unconfirmed)
		out.NeedsConfirm = !a.Confirm
	}
	return out
}

// do commits the attempt.
func (to attempt) do(ctx context.Context, r *receipt, out *ingest.ActionResult) error {
	changed := *out
	changed.Changed = true
	if err := to.prepare(ctx); err != nil {
		return err
	}
	err := to.commit(func(tx *table.Tx) error {
		r.add(tx, changed)
		return nil
	})
	if err != nil {
		return err
	}
	*out = changed
	if to.then != nil {
		to.then(ctx)
	}
	return nil
}

// cannot is a WrongState with advice.
func cannot(a ingest.Action, state, needs, becomes, advice string) error {
	err := ingest.WrongState(a.Target.Kind, a.Target.ID, state, a.Name, needs, becomes)
	return fault.New(fault.Conflict, "%w. %s", err, advice)
}

// actTries is how often an action is tried on a target that others change meanwhile.
const actTries = 10

// busy is the error of an action whose target was changed by others at each try.
func busy(t ingest.Target) error {
	return fault.New(fault.Unavailable, "%s %s keeps changing; try again in a moment", t.Kind, t.ID)
}
