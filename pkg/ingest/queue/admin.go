package queue

import (
	"context"
	"fmt"
	"slices"

	"archivist/pkg/ingest"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/table"
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

// batchDecision is what an action would do to a batch.
type batchDecision struct {
	plan
	next ingest.Batch
}

// batchDecider decides what an action does to a batch. An error refuses it. It is called again with
// the row as it is then, if another change was first.
type batchDecider func(ctx context.Context, q *Queue, row *Batch, a ingest.Action) (batchDecision, error)

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
func (d Admin) attempt(ctx context.Context, a ingest.Action, r *receipt,
	decide func() (attempt, error)) (
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
		// Another call with the same request id has done it, or does it: its receipt has the
		// result.
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
	out := ingest.ActionResult{
		Action:    a.Name,
		Target:    a.Target,
		DryRun:    a.DryRun,
		Summary:   to.summary,
		Warnings:  to.warnings,
		Next:      to.offers,
		Operation: to.operation,
	}

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
	// It has effects of its own, so it comes last before the commit, and never in a dry run.
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
	// After the commit: if this process dies here, the sweep does the same later.
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
	return table.Busy(fmt.Sprintf("%s %s", t.Kind, t.ID))
}
