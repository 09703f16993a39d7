package queue

import (
	"context"
	"fmt"
	"strings"

	"archivist/pkg/event"
	"archivist/pkg/fault"
	"archivist/pkg/ingest"
	"archivist/pkg/table"
)

// Operation is the row of a bulk operation. Version is the number of its last event. Its
// items are receipts, which are inserted while it is planned; see plan and runItems.
//
// A page of an operation can be run again from any point of a crash, and by two executions
// at once: each item is acted on by the transaction that writes its receipt, and the counts
// are taken from the receipts, by the transaction that moves the cursor past them.
type Operation struct {
	table.Head
	Version int64 `dynamo:"version"`
	ingest.Operation
}

// OperationChange is the detail of an operation's event.
type OperationChange struct {
	Action ingest.ActionName     `json:"action"`
	Filter *ingest.Filter        `json:"filter,omitempty"`
	State  ingest.OperationState `json:"state"`
	Exec   int64                 `json:"exec"`
	Reason string                `json:"reason,omitempty"`
	DryRun bool                  `json:"dryRun,omitempty"`
	Tally  ingest.Tally          `json:"tally"`
}

func operationSubject(id string) event.Subject {
	return event.Subject{Type: event.Operation, ID: id}
}

func operationKey(id string) table.Key { return operationSubject(id).Key() }

// RunBy is the name of the execution that runs the operation.
func (row *Operation) RunBy() string {
	if row.Execution != "" && row.Exec == 1 {
		return row.Execution
	}
	return ExecutionName(row.Operation.ID, row.Exec)
}

// Operation reads an operation. A missing one is a NotFound.
func (q *Queue) Operation(ctx context.Context, id string) (*Operation, error) {
	var row Operation
	if err := q.Table.Get(ctx, operationKey(id), &row); err != nil {
		return nil, named(err, "operation", id)
	}
	return &row, nil
}

// Start starts a bulk operation. What it accepts can be finished: the filter's batch or
// collection exists, and the actor's role allows the action. The same request again returns
// the same operation. A dry run plans the operation, and finds out for each item what the
// action would do.
func (d Admin) Start(ctx context.Context, b ingest.Bulk, reason, actor string, role ingest.Role, request string,
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
		return fault.New(fault.Invalid, "confirm: a bulk operation cannot confirm that newer versions are replaced; "+
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
			err = fault.New(fault.Invalid, "filter: batch %s belongs to the collection %q", f.Batch, row.Collection)
		}
		return err
	}
	if f.Collection == "" {
		return nil
	}
	page, err := d.Queue.BatchesOf(ctx, f.Collection, "")
	if err == nil && len(page.Items) == 0 {
		err = fault.New(fault.NotFound, "the collection %q has no batches", f.Collection)
	}
	return err
}

// begin checks and inserts an operation, and starts its execution. The receipt of the request
// names the operation: the same request again returns it, although its filter's batch may be
// removed meanwhile, or its end have passed.
func (d Admin) begin(ctx context.Context, o ingest.Operation, request string, check func() error) (*Operation, error) {
	q := d.Queue
	if err := ingest.CheckActionReason(o.Reason); err != nil {
		return nil, err
	}
	if err := ingest.CheckText("request", request, ingest.MaxRequest); err != nil {
		return nil, err
	}
	o.Execution = d.Execution
	for range 2 {
		r, err := q.receiptOf(ctx, request, ingest.Target{Kind: "operation"}, o.Name, o)
		if err != nil {
			return nil, err
		}
		if r.done() {
			return q.Operation(ctx, r.Bulk)
		}
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
	return nil, fault.New(fault.Unavailable, "the same request is in progress; try again in a moment")
}

// newOperation gives an operation its id and its row, which is not inserted yet.
func (q *Queue) newOperation(o ingest.Operation) *Operation {
	o.ID = q.NewID()
	row := &Operation{Head: head(operationKey(o.ID))}
	row.Operation = o
	return row
}

// addOperation makes an operation that completes another change. It returns its id, the part
// of the change's transaction that inserts it, and what starts its execution after the
// commit.
func (q *Queue) addOperation(o ingest.Operation) (id string, insert part, start func(ctx context.Context)) {
	row := q.newOperation(o)
	next := q.Rules.StartOperation(row.Operation, q.Now())
	insert = func(tx *table.Tx) error { return q.putOperation(tx, row, next, started(next)) }
	start = func(ctx context.Context) { q.wake(ctx, ingest.OperationWakes(ingest.Operation{}, next)) }
	return row.Operation.ID, insert, start
}

// started is the origin of a new operation.
func started(o ingest.Operation) origin {
	return origin{event: "operation.started", actor: o.Actor, component: "admin", reason: o.Reason}
}

// putOperation puts an operation's change to next into tx, with an event if by names one.
func (q *Queue) putOperation(tx *table.Tx, row *Operation, next ingest.Operation, by origin) error {
	prev, changed := row.Operation, *row
	changed.Operation = next
	changed.ExpiresAt = next.Created/1000 + int64(ingest.KeepOperations.Seconds())
	if by.event != "" {
		changed.Version++
	}
	q.writeOperation(tx, row, changed)
	if by.event == "" {
		return nil
	}
	detail := OperationChange{Action: next.Name, State: next.State, Exec: next.Exec, Reason: by.reason,
		DryRun: next.DryRun, Tally: next.Tally}
	if next.Name != ingest.ActDoctor {
		detail.Filter = &next.Filter
	}
	return event.Append(tx, operationSubject(next.ID), changed.Version, event.New{Type: by.event,
		Time: q.Now().UnixMilli(), Actor: by.actor, Component: by.component, Detail: detail,
		Objects: selected(next), Before: propertiesOfOperation(prev), After: propertiesOfOperation(next)})
}

// writeOperation is writeJob for an operation.
func (q *Queue) writeOperation(tx *table.Tx, row *Operation, next Operation) {
	next.Place()
	put(tx, &next, next.Rev)
	tx.OnCommit(func() { *row = next })
}

// Place puts the row at its places in the indexes.
func (row *Operation) Place() {
	row.Head.WorkPK, row.Head.WorkSK = row.Operation.WorkKey()
	row.Head.ListPK, row.Head.ListSK = operationsList, fmt.Sprintf("%013d#%s", row.Created, row.Operation.ID)
}

// changeOperation is changeJob for an operation.
func (q *Queue) changeOperation(ctx context.Context, row *Operation, next ingest.Operation, by origin,
	more ...func(*table.Tx) error) error {
	prev := row.Operation
	change := func(tx *table.Tx) error { return q.putOperation(tx, row, next, by) }
	wakes := func() []ingest.Wake { return ingest.OperationWakes(prev, next) }
	return q.commit(ctx, append([]func(*table.Tx) error{change}, more...), wakes)
}

// Interrupt stops a running operation. The page that is running may still act on its other
// items.
func (d Admin) Interrupt(ctx context.Context, id, reason, actor string, role ingest.Role) (*Operation, error) {
	by := origin{event: "operation.interrupted", actor: actor, component: "admin", reason: reason}
	return d.set(ctx, id, by, role, ingest.OperationInterrupted, func(o ingest.Operation) (ingest.Operation, error) {
		return d.Queue.interrupted(o), nil
	})
}

// Continue continues an interrupted operation from where it stopped, under a new execution.
func (d Admin) Continue(ctx context.Context, id, reason, actor string, role ingest.Role) (*Operation, error) {
	by := origin{event: "operation.continued", actor: actor, component: "admin", reason: reason}
	return d.set(ctx, id, by, role, ingest.OperationRunning, func(o ingest.Operation) (ingest.Operation, error) {
		if o.Overdue(d.Queue.Now()) {
			return o, fault.New(fault.Conflict, "operation %s began at %s, too long ago to be continued; "+
				"start a new one", o.ID, ingest.Timestamp(o.Created))
		}
		return d.Queue.Rules.StartOperation(o, d.Queue.Now()), nil
	})
}

// interrupted is an operation that stops before it is done.
func (q *Queue) interrupted(o ingest.Operation) ingest.Operation {
	return q.Rules.StopOperation(o, ingest.OperationInterrupted, q.Now())
}

// ended is an operation that is done, with the origin of that change.
func (q *Queue) ended(o ingest.Operation) (ingest.Operation, origin) {
	by := origin{event: "operation.done", actor: o.Actor, component: "admin", reason: o.Reason}
	return q.Rules.StopOperation(o, ingest.OperationDone, q.Now()), by
}

// set changes the state of an operation to what a person wants. Only one that is done
// refuses.
func (d Admin) set(ctx context.Context, id string, by origin, role ingest.Role, to ingest.OperationState,
	how func(ingest.Operation) (ingest.Operation, error)) (*Operation, error) {
	by.reason = strings.TrimSpace(by.reason)
	if err := ingest.CheckActionReason(by.reason); err != nil {
		return nil, err
	}
	for range actTries {
		row, err := d.Queue.Operation(ctx, id)
		if err != nil {
			return nil, err
		}
		if err := role.May(row.Needs()); err != nil {
			return nil, err
		}
		switch row.State {
		case to:
			return row, nil
		case ingest.OperationDone:
			return nil, fault.New(fault.Conflict, "operation %s is %s; only one that is %s or %s can be changed", id,
				row.State, ingest.OperationRunning, ingest.OperationInterrupted)
		}
		next, err := how(row.Operation)
		if err != nil {
			return nil, err
		}
		err = d.Queue.changeOperation(ctx, row, next, by)
		if !fault.Is(err, fault.Stale) {
			return row, err
		}
	}
	return nil, fault.New(fault.Unavailable, "operation %s keeps changing; try again in a moment", id)
}

// dueOperation reads an operation that is past its due time; nil if it is not.
func (q *Queue) dueOperation(ctx context.Context, id string) (*Operation, error) {
	row, err := q.Operation(ctx, id)
	if err != nil || row.State != ingest.OperationRunning || q.Now().UnixMilli() < row.Due {
		return nil, err
	}
	return row, nil
}

// repairOperation gives an operation without progress a new execution. An execution that a
// person stopped interrupts the operation.
func (q *Queue) repairOperation(ctx context.Context, id string) error {
	row, err := q.dueOperation(ctx, id)
	if err != nil || row == nil {
		return err
	}
	why, stopped, err := q.Executions.StoppedByHand(ctx, MachineAdmin, row.RunBy())
	if err != nil {
		return err
	}
	if stopped {
		by := origin{event: "operation.interrupted", component: "sweep",
			reason: fmt.Sprintf("an operator stopped its execution in AWS (%s)", why)}
		return q.changeOperation(ctx, row, q.interrupted(row.Operation), by)
	}
	return q.restart(ctx, MachineAdmin, row.RunBy(), ingest.Stage{}, row.Work, func(w ingest.Work, by origin) error {
		next := row.Operation
		next.Work = w
		by.event = "operation.repaired"
		return q.changeOperation(ctx, row, next, by)
	})
}

// postponeOperation moves the due time of an operation whose repair failed.
func (q *Queue) postponeOperation(ctx context.Context, id string) error {
	row, err := q.dueOperation(ctx, id)
	if err != nil || row == nil {
		return err
	}
	next := row.Operation
	next.Work = q.Rules.Postpone(next.Work, ingest.Stage{}, q.Now())
	return q.changeOperation(ctx, row, next, origin{})
}
