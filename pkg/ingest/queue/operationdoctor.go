package queue

import (
	"context"
	"fmt"
	"strings"
	"time"

	"archivist/pkg/ingest"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/table"
)

// StartDoctor starts an operation that checks the system page by page, and repairs what it
// finds if that is asked for. The same request again returns the same operation.
func (d Admin) StartDoctor(ctx context.Context, repair bool, reason, actor string, role ingest.Role,
	request string) (*Operation, error) {
	o := ingest.Operation{
		Bulk:   ingest.Bulk{Name: ingest.ActDoctor},
		Repair: repair,
		Reason: strings.TrimSpace(reason),
		Actor:  actor,
	}
	return d.begin(ctx, o, request, func() error { return role.May(o.Needs()) })
}

// check checks the next page, and records its findings with the cursor. After an error the cursor
// is where it was, and the page is checked again.
func (d Admin) check(ctx context.Context, row *Operation, until time.Time) error {
	if d.Checker == nil {
		return fault.New(fault.Invalid, "operation %s: this function cannot run the doctor",
			row.Operation.ID)
	}

	found, err := d.Checker.Check(ctx, row.Cursor, row.Repair, until)
	if err == nil && len(found.Findings) > MaxFindings {
		err = fmt.Errorf("the page has %d findings; at most %d are allowed", len(found.Findings),
			MaxFindings)
	}

	if err != nil {
		return fmt.Errorf("queue: doctor from %q: %w", row.Cursor, err)
	}

	// The page is counted in the transaction that moves the cursor past it: a page that is checked
	// again after a crash is counted once.
	next := d.Queue.Rules.ContinueOperation(row.Operation, d.Queue.Now())
	next.Cursor, next.Progress = found.Cursor, found.Progress
	next.Tally.Checked += found.Checked
	var rows []*FindingRow
	for _, f := range found.Findings {
		next.Tally.Findings++
		if f.Repaired {
			next.Tally.Repaired++
		}
		k := table.Key{PK: row.PK, SK: fmt.Sprintf("%s%08d", findings, next.Tally.Findings)}
		r := &FindingRow{Head: head(k), Finding: f}
		r.ExpiresAt = row.ExpiresAt
		rows = append(rows, r)
	}

	by := origin{}
	if found.Cursor == "" {
		next, by = d.Queue.ended(next)
	}
	return d.Queue.changeOperation(ctx, row, next, by, func(tx *table.Tx) error {
		for _, r := range rows {
			tx.Insert(r)
		}
		return nil
	})
}
