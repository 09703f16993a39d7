package queue

import (
	"context"
	"strings"

	"archivist/pkg/events/event"
	"archivist/pkg/ingest"
	"archivist/pkg/kernel/table"
)

// hold checks that what is held exists. A collection exists without rows. So only a hold
// of a batch can be without what it holds.
func (x *exam) hold(ctx context.Context) error {
	var h Hold
	if !x.Into(&h) {
		return nil
	}

	x.Subject = h.Target().String()
	if want := strings.TrimSuffix(string(h.Scope)+"#"+h.ID, "#"); x.SK != want {
		x.Row.Add("row-key", "archivist queue holds", nil, "the row says that it is the hold %s", want)
		return nil
	}

	if h.Scope != ingest.TargetBatch {
		return nil
	}

	batch := batchKey(h.ID)
	missing, err := x.Missing(ctx, batch)
	if missing {
		x.Row.Add("hold-target", "", x.Removing(batch), "the batch does not exist")
	}
	return err
}

// queue checks the history of pauses. Its events are numbered by the row itself, as
// those of other subjects.
func (x *exam) queue(ctx context.Context) error { return x.Numbered(ctx, event.Queue) }

// operation checks that a running operation makes progress, and its history. The
// doctor's own operation is one of those that it checks: its row is due, too.
func (x *exam) operation(ctx context.Context) error {
	var o Operation
	if !x.Into(&o) {
		return nil
	}

	x.Subject = "operation:" + o.Operation.ID
	place, _ := o.Operation.WorkKey()
	x.due(o.Due, place, false, "archivist operation show "+o.Operation.ID)
	err := x.History(ctx, operationSubject(o.Operation.ID), o.Version, "")

	// Its place follows from its due time; at another one it would not be swept in time.
	should := o
	should.Place()
	x.Placed(o.Head, should.Head, func(tx *table.Tx) { tx.Save(&should) })
	return err
}

// receipt checks that the operation of an item exists. The receipt of a request is no
// item.
func (x *exam) receipt(ctx context.Context) error {
	var row receipt
	if !x.Into(&row) {
		return nil
	}

	// The operation may be deleted days before its items (TTL deletes "within a few days").
	ended := row.ExpiresAt <= x.Queue.Now().Unix() // DynamoDB deletes the rows in any order
	operation := operationSubject(x.ID()).Key()
	if _, known := x.operations.Load(operation); known || row.ID == "" || ended {
		return nil
	}

	missing, err := x.Missing(ctx, operation)
	if err != nil {
		return err
	}

	if !missing {
		x.operations.Store(operation, true)
	} else {
		x.Row.Add("receipt-operation", "", x.Removing(operation),
			"it is an item of an operation that does not exist")
	}
	return nil
}
