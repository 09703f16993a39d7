package queue

import (
	"context"
	"fmt"

	"archivist/pkg/events/event"
	"archivist/pkg/ingest"
	"archivist/pkg/kernel/table"
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

// operationsList is the partition of the operations in the index "list".
const operationsList = "operations"

// RunBy is the name of the execution that runs the operation. A person's execution has a name of
// its own, and runs only the first number.
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

// newOperation gives an operation its id and its row, which is not inserted yet. Its rev is 0 until
// it is.
func (q *Queue) newOperation(o ingest.Operation) *Operation {
	o.ID, o.FromEnd = q.NewID(), true
	row := &Operation{Head: head(operationKey(o.ID))}
	row.Operation = o
	return row
}

// started is the origin of a new operation.
func started(o ingest.Operation) origin {
	return origin{event: "operation.started", actor: o.Actor, component: "admin", reason: o.Reason}
}

// putOperation puts an operation's change to next into tx, with an event if by names one. A page
// has none: its counts are on the row.
func (q *Queue) putOperation(tx *table.Tx, row *Operation, next ingest.Operation, by origin) error {
	prev, changed := row.Operation, *row
	changed.Operation = next
	// In seconds, as DynamoDB wants it (TTL).
	changed.ExpiresAt = next.Created/1000 + int64(ingest.KeepOperations.Seconds())
	if by.event != "" {
		changed.Version++
	}

	q.writeOperation(tx, row, changed)
	if by.event == "" {
		return nil
	}

	detail := OperationChange{
		Action: next.Name,
		State:  next.State,
		Exec:   next.Exec,
		Reason: by.reason,
		DryRun: next.DryRun,
		Tally:  next.Tally,
	}

	if next.Name != ingest.ActDoctor {
		detail.Filter = &next.Filter
	}
	return event.Append(tx, operationSubject(next.ID), changed.Version, event.New{
		Type:      by.event,
		Time:      q.Now().UnixMilli(),
		Actor:     by.actor,
		Component: by.component,
		Detail:    detail,
		Objects:   selected(next),
		Before:    propertiesOfOperation(prev),
		After:     propertiesOfOperation(next),
	})
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
	row.Head.ListPK, row.Head.ListSK = operationsList,
		fmt.Sprintf("%013d#%s", row.Created, row.Operation.ID)
}

// changeOperation is changeJob for an operation.
func (q *Queue) changeOperation(ctx context.Context, row *Operation, next ingest.Operation,
	by origin,
	more ...func(*table.Tx) error) error {
	prev := row.Operation
	change := func(tx *table.Tx) error { return q.putOperation(tx, row, next, by) }
	wakes := func() []ingest.Wake { return ingest.OperationWakes(prev, next) }
	return q.commit(ctx, append([]func(*table.Tx) error{change}, more...), wakes)
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
