package doctor

import (
	"context"
	"strings"

	"archivist/pkg/events/event"
	"archivist/pkg/ingest"
	"archivist/pkg/ingest/queue"
	"archivist/pkg/kernel/table"
)

// checkHold checks that what is held exists. A collection exists without rows. So only a hold
// of a batch can be without what it holds.
func checkHold(ctx context.Context, x *rowCheck) error {
	var h queue.Hold
	if !x.decode(&h) {
		return nil
	}

	x.subject = h.Target().String()
	if want := strings.TrimSuffix(string(h.Scope)+"#"+h.ID, "#"); x.SK != want {
		x.add("row-key", "archivist queue holds", nil, "the row says that it is the hold %s", want)
		return nil
	}

	if h.Scope != ingest.TargetBatch {
		return nil
	}

	batch := subjectOf(event.Batch, h.ID).Key()
	missing, err := x.missing(ctx, batch)
	if missing {
		x.add("hold-target", "", x.removeWithout(&h, batch), "the batch does not exist")
	}
	return err
}

// removeWithout removes a row that belongs to another one, if that does not exist. Both
// conditions are in the transaction, so a row whose other is made meanwhile stays.
func (x *rowCheck) removeWithout(row table.Row, other table.Key) func(context.Context) error {
	return func(ctx context.Context) error {
		return x.commit(ctx, func(tx *table.Tx) {
			tx.Remove(row)
			tx.Require(other, "attribute_not_exists(pk)")
		})
	}
}

// checkQueue checks the history of pauses. Its events are numbered by the row itself, as
// those of other subjects.
func checkQueue(ctx context.Context, x *rowCheck) error {
	var row struct {
		table.Head
		Number int64 `dynamo:"version"`
	}
	if !x.decode(&row) {
		return nil
	}
	return x.history(ctx, subjectOf(event.Queue, strings.TrimPrefix(x.PK, "QUEUE#")), row.Number,
		"")
}

// checkOperation checks that a running operation makes progress, and its history. The
// doctor's own operation is one of those that it checks: its row is due, too.
func checkOperation(ctx context.Context, x *rowCheck) error {
	var o queue.Operation
	if !x.decode(&o) {
		return nil
	}

	x.subject = "operation:" + o.Operation.ID
	place, _ := o.Operation.WorkKey()
	x.due(o.Due, place, false, "archivist operation show "+o.Operation.ID)
	err := x.history(ctx, subjectOf(event.Operation, o.Operation.ID), o.Version, "")

	// Its place follows from its due time; at another one it would not be swept in time.
	should := o
	should.Place()
	x.placed(o.Head, should.Head, false, func(tx *table.Tx) { tx.Save(&should) })
	return err
}

// checkReceipt checks that the operation of an item exists. The receipt of a request is no
// item.
func checkReceipt(ctx context.Context, x *rowCheck) error {
	var row struct {
		table.Head
		Job string `dynamo:"id,omitempty"`
	}

	if !x.decode(&row) {
		return nil
	}

	// The operation may be deleted days before its items (TTL deletes "within a few days").
	ended := row.ExpiresAt <= x.Queue.Now().Unix() // DynamoDB deletes the rows in any order
	operation := subjectOf(event.Operation, strings.TrimPrefix(x.PK, "ACT#")).Key()
	if _, known := x.known.Load(operation); known || row.Job == "" || ended {
		return nil
	}

	missing, err := x.missing(ctx, operation)
	if err != nil {
		return err
	}

	if !missing {
		x.known.Store(operation, true)
	} else {
		x.add("receipt-operation", "", x.removeWithout(&row.Head, operation),
			"it is an item of an operation that does not exist")
	}
	return nil
}
