package queue

import (
	"context"
	"strings"

	"archivist/pkg/ingest"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/table"
)

// Start starts a bulk operation. What it accepts can be finished: the filter's batch or
// collection exists, and the actor's role allows the action. The same request again returns
// the same operation. A dry run plans the operation, and finds out for each item what the
// action would do. A refused request is an Invalid, a Denied or a NotFound; one with the id of
// another is a Conflict.
func (d Admin) Start(ctx context.Context, b ingest.Bulk, reason, actor string, role ingest.Role,
	request string,
	dryRun bool) (*Operation, error) {
	o := ingest.Operation{Bulk: b, Reason: strings.TrimSpace(reason), Actor: actor, DryRun: dryRun}
	return d.begin(ctx, o, request, func() error { return d.checkBulk(ctx, b, role) })
}

// checkBulk returns an error if a bulk operation could not be done.
func (d Admin) checkBulk(ctx context.Context, b ingest.Bulk, role ingest.Role) error {
	if err := b.Check(d.Queue.Now()); err != nil {
		return err
	}

	switch {
	case b.Name == ingest.ActCancel:
		return fault.New(fault.Invalid, "action: cancel is an action on a batch")
	case b.Confirm && (b.Name == ingest.ActRequeue || b.Name == ingest.ActRelease):
		return fault.New(fault.Invalid,
			"confirm: a bulk operation cannot confirm that newer versions are replaced; "+
				"%s these jobs one by one", b.Name)
	}

	if err := role.May(b.Name); err != nil {
		return err
	}
	return d.checkFilter(ctx, b.Filter)
}

// checkFilter returns an error if the batch or collection of a filter does not exist.
func (d Admin) checkFilter(ctx context.Context, f ingest.Filter) error {
	if f.Batch != "" {
		row, err := d.Queue.Batch(ctx, f.Batch)
		if err == nil && f.Collection != "" && f.Collection != row.Collection {
			err = fault.New(fault.Invalid, "filter: batch %s belongs to the collection %q", f.Batch,
				row.Collection)
		}
		return err
	}

	if f.Collection == "" {
		return nil
	}

	any, err := d.Queue.hasBatches(ctx, f.Collection)
	if err == nil && !any {
		err = fault.New(fault.NotFound, "the collection %q has no batches", f.Collection)
	}
	return err
}

// begin checks and inserts an operation, and starts its execution. The receipt of the request
// names the operation: the same request again returns it, although its filter's batch may be
// removed meanwhile, or its end have passed.
func (d Admin) begin(ctx context.Context, o ingest.Operation, request string,
	check func() error) (*Operation, error) {
	q := d.Queue
	if err := ingest.CheckActionReason(o.Reason); err != nil {
		return nil, err
	}

	if err := ingest.CheckText("request", request, ingest.MaxRequest); err != nil {
		return nil, err
	}

	o.Execution = d.Execution
	// Of two calls at once with one request, the second time finds the receipt of the first.
	for range 2 {
		r, err := q.receiptOf(ctx, request, ingest.Target{Kind: "operation"}, o.Name, o)
		if err != nil {
			return nil, err
		}

		if r.done() {
			return q.Operation(ctx, r.Bulk)
		}

		// Only of a new request: what it names may be gone when it is repeated.
		if err := check(); err != nil {
			return nil, err
		}

		row := q.newOperation(o)
		next := q.Rules.StartOperation(row.Operation, q.Now())
		err = q.changeOperation(ctx, row, next, started(next), func(tx *table.Tx) error {
			r.add(tx, ingest.ActionResult{Changed: true, Operation: next.ID})
			return nil
		})
		if !r.lost(err) {
			return row, err
		}
	}
	return nil, fault.New(fault.Unavailable,
		"the same request is in progress; try again in a moment")
}

// addOperation makes an operation that completes another change. It returns its id, the part
// of the change's transaction that inserts it, and what starts its execution after the
// commit. If start is lost, the sweep starts it.
func (q *Queue) addOperation(o ingest.Operation) (id string, insert part,
	start func(ctx context.Context)) {
	row := q.newOperation(o)
	next := q.Rules.StartOperation(row.Operation, q.Now())
	insert = func(tx *table.Tx) error { return q.putOperation(tx, row, next, started(next)) }
	start = func(ctx context.Context) {
		q.wake(ctx,
			ingest.OperationWakes(ingest.Operation{}, next))
	}
	return row.Operation.ID, insert, start
}

// Interrupt stops a running operation. The page that is running may still act on its other
// items. One that is done is a Conflict.
func (d Admin) Interrupt(ctx context.Context, id, reason, actor string,
	role ingest.Role) (*Operation, error) {
	by := origin{event: "operation.interrupted", actor: actor, component: "admin", reason: reason}
	return d.set(ctx, id, by, role, ingest.OperationInterrupted,
		func(o ingest.Operation) (ingest.Operation, error) {
			return d.Queue.interrupted(o), nil
		})
}

// Continue continues an interrupted operation from where it stopped, under a new execution. One
// that is done, or began too long ago, is a Conflict.
func (d Admin) Continue(ctx context.Context, id, reason, actor string,
	role ingest.Role) (*Operation, error) {
	by := origin{event: "operation.continued", actor: actor, component: "admin", reason: reason}
	return d.set(ctx, id, by, role, ingest.OperationRunning,
		func(o ingest.Operation) (ingest.Operation, error) {
			if o.Overdue(d.Queue.Now()) {
				return o, fault.New(fault.Conflict,
					"operation %s began at %s, too long ago to be continued; "+
						"start a new one", o.ID, ingest.Timestamp(o.Created))
			}
			return d.Queue.Rules.StartOperation(o, d.Queue.Now()), nil
		})
}

// set changes the state of an operation to what a person wants. Only one that is done
// refuses.
func (d Admin) set(ctx context.Context, id string, by origin, role ingest.Role,
	to ingest.OperationState,
	how func(ingest.Operation) (ingest.Operation, error)) (row *Operation, err error) {
	by.reason = strings.TrimSpace(by.reason)
	if err := ingest.CheckActionReason(by.reason); err != nil {
		return nil, err
	}

	err = d.Queue.Table.Again(ctx, "operation "+id, func() error {
		row, err = d.Queue.Operation(ctx, id)
		if err != nil {
			return err
		}

		if err := role.May(row.Needs()); err != nil {
			return err
		}

		switch row.State {
		case to:
			return nil
		case ingest.OperationDone:
			return fault.New(fault.Conflict,
				"operation %s is %s; only one that is %s or %s can be changed", id,
				row.State, ingest.OperationRunning, ingest.OperationInterrupted)
		}

		next, err := how(row.Operation)
		if err != nil {
			return err
		}
		return d.Queue.changeOperation(ctx, row, next, by)
	})
	if err != nil {
		return nil, err
	}
	return row, nil
}
