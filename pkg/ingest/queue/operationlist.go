package queue

import (
	"context"

	"archivist/pkg/kernel/table"
)

// Operation reads an operation. A missing one is a NotFound.
func (d Admin) Operation(ctx context.Context, id string) (*Operation, error) {
	return d.Queue.Operation(ctx, id)
}

// Operations lists the operations, newest first.
func (d Admin) Operations(ctx context.Context, cursor string) (Page[Operation], error) {
	return listed(ctx, d.Queue, operationsList, cursor, d.Queue.Operation)
}

// Item is an item of an operation.
type Item struct {
	Job     string // the id of the job, or of a held batch without jobs
	Outcome Outcome
	Message string // what was done, or would be done, or why it was refused
}

// Items lists the items of an operation, in the order of job ids. A missing operation is a
// NotFound, also once its rows have expired.
func (d Admin) Items(ctx context.Context, id, cursor string) (page Page[Item], err error) {
	if _, err := d.Queue.Operation(ctx, id); err != nil {
		return page, err
	}
	var rows []receipt
	page.Cursor, err = d.Queue.Table.Page(ctx, table.Query{PK: receiptPK(id), Cursor: cursor},
		&rows)
	for _, r := range rows {
		page.Items = append(page.Items, Item{r.ID, r.Outcome, r.Message})
	}
	return page, err
}

// Refusal is the row of an item that was refused.
type Refusal struct {
	table.Head
	Job    string `dynamo:"id"` // the id of the job, or of a held batch without jobs
	Reason string `dynamo:"message"`
}

// refusals and findings begin sort keys in the partition of an operation.
const refusals = "REFUSED#"

// Refusals lists the refused items of an operation, in the order of job ids.
func (d Admin) Refusals(ctx context.Context, id, cursor string) (Page[Refusal], error) {
	return rowsBelow[Refusal](ctx, d.Queue, id, refusals, cursor)
}

// FindingRow is the row of a finding of the doctor.
type FindingRow struct {
	table.Head
	Finding
}

const findings = "FINDING#"

// Findings lists the findings of an operation of the doctor, in the order in which they were
// found.
func (d Admin) Findings(ctx context.Context, id, cursor string) (Page[FindingRow], error) {
	return rowsBelow[FindingRow](ctx, d.Queue, id, findings, cursor)
}

// rowsBelow lists the rows of one kind of an operation.
func rowsBelow[T any](ctx context.Context, q *Queue, id, kind,
	cursor string) (page Page[T], err error) {
	row, err := q.Operation(ctx, id)
	if err != nil {
		return page, err
	}
	page.Cursor, err = q.Table.Page(ctx, table.Query{
		PK:     row.PK,
		Prefix: kind,
		Cursor: cursor,
	}, &page.Items)
	return page, err
}
