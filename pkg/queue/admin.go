package queue

import (
	"context"
	"fmt"

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
type Admin struct{ Queue *Queue }

// Act does one action. An Invalid means that the request is wrong, a Denied that the role
// of the actor does not allow it, a Conflict that the state of the target does not allow
// it or that it needs confirmation, a Held that a hold stands against it.
func (d Admin) Act(ctx context.Context, a ingest.Action) (ingest.ActionResult, error) {
	if err := a.Check(d.Queue.Now()); err != nil {
		return ingest.ActionResult{}, err
	}
	if a.Target.Kind == ingest.TargetJob {
		return d.actOnJob(ctx, a, nil)
	}
	return ingest.ActionResult{}, fault.New(fault.Invalid, "action: %s on a %s is not implemented", a.Name,
		a.Target.Kind)
}

// decision is what an action would do to a job.
type decision struct {
	next     ingest.Job
	by       origin
	summary  string
	warnings []string
	// unconfirmed is why the action needs confirmation, "" if it needs none.
	unconfirmed string
	// unchanged is set if the job is already as the action wants it.
	unchanged bool
	// then is done after the commit, to speed up what the sweep would do as well.
	then func(ctx context.Context)
}

// decider decides what an action does to a job. An error refuses it.
type decider func(ctx context.Context, q *Queue, row *Job, a ingest.Action) (decision, error)

// jobActions are the deciders of the actions on jobs.
var jobActions = map[ingest.ActionName]decider{
	ingest.ActRequeue: decideRequeue,
	ingest.ActFail:    decideFail,
}

// actOnJob does an action on a job. more adds what else must be in the transaction.
func (d Admin) actOnJob(ctx context.Context, a ingest.Action, more func(*table.Tx) error) (
	out ingest.ActionResult, err error) {
	q := d.Queue
	decide, ok := jobActions[a.Name]
	if !ok {
		return out, fault.New(fault.Invalid, "action: %s on a job is not implemented", a.Name)
	}
	for range actTries {
		row, err := q.Job(ctx, a.Target.ID)
		if err != nil {
			return out, err
		}
		to, err := decide(ctx, q, row, a)
		if err != nil {
			return out, err
		}
		out = ingest.ActionResult{Action: a.Name, Target: a.Target, DryRun: a.DryRun, Summary: to.summary,
			Warnings: to.warnings}
		if row.State != to.next.State && !to.unchanged {
			out.From, out.To = string(row.State), string(to.next.State)
		}
		if to.unconfirmed != "" {
			out.Warnings = append(out.Warnings, to.unconfirmed)
		}
		switch {
		case to.unchanged || a.DryRun:
			return out, nil
		case to.unconfirmed != "" && !a.Confirm:
			return out, fault.New(fault.Conflict, "%s. Repeat it with confirm if that is wanted", to.unconfirmed)
		}
		err = q.changeJob(ctx, row, to.next, to.by, parts(more)...)
		if fault.Is(err, fault.Stale) {
			continue
		}
		if err != nil {
			return out, fmt.Errorf("queue: %s job %s: %w", a.Name, a.Target.ID, err)
		}
		if to.then != nil {
			to.then(ctx)
		}
		out.Changed = true
		return out, nil
	}
	return out, busy(a.Target.ID)
}

// parts is a list of one part of a transaction, or of none.
func parts(more func(*table.Tx) error) []func(*table.Tx) error {
	if more == nil {
		return nil
	}
	return []func(*table.Tx) error{more}
}
