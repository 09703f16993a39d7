package queue

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"archivist/pkg/ingest"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/table"
)

const (
	// itemPage is the number of items that one page acts on.
	itemPage = 50
	// itemTries is how often an action on an item is tried that fails without a refusal, such
	// as when the storage does not answer. Then the item is refused with that error.
	itemTries = 5
)

// RunPage runs one page of an operation for its execution exec, and returns the operation
// after it. It starts no item after until. The caller runs pages while the operation
// RunsAs(exec): another execution may have replaced it, or a person interrupted it. After
// an error the same page can be run again.
//
// A missing operation is a NotFound. An error of one item is returned after the items before it are
// recorded.
func (d Admin) RunPage(ctx context.Context, id string, exec int64,
	until time.Time) (*Operation, error) {
	row, err := d.Queue.Operation(ctx, id)
	if err != nil || !row.RunsAs(exec) {
		return row, err
	}

	switch {
	case row.Overdue(d.Queue.Now()):
		err = d.Queue.changeOperation(ctx, row, d.Queue.interrupted(row.Operation),
			origin{
				event:     "operation.interrupted",
				component: "admin",
				reason:    "it began too long ago to be finished",
			})
	case row.Name == ingest.ActDoctor:
		err = d.check(ctx, row, until)
	case row.Planning:
		err = d.plan(ctx, row)
	default:
		err = d.runItems(ctx, row, until)
	}

	if fault.Is(err, fault.Stale) { // another run of the page was first
		return d.Queue.Operation(ctx, id)
	}
	return row, err
}

// plan inserts the items of the next page of candidates. One that an earlier page has
// found, because it moved in the index meanwhile, is an item once. Its receipt exists then, and the
// transaction is made again without it.
func (d Admin) plan(ctx context.Context, row *Operation) error {
	q := d.Queue
	found, cursor, err := q.candidates(ctx, &row.Operation)
	if err != nil {
		return err
	}

	var items []*receipt
	for _, t := range found {
		i := &receipt{Head: head(receiptKey(row.Operation.ID, t)), ID: t.ID, Name: row.Name}
		// Items expire with their operation, not a request's time after they are done.
		i.ExpiresAt = row.ExpiresAt
		items = append(items, i)
	}

	for {
		next := q.Rules.ContinueOperation(row.Operation, q.Now())
		next.Cursor, next.Planning = cursor, cursor != ""
		next.Tally.Planned += len(items)
		err := q.changeOperation(ctx, row, next, origin{}, func(tx *table.Tx) error {
			for _, i := range items {
				tx.Insert(i)
			}
			return nil
		})

		left := slices.DeleteFunc(slices.Clone(items), func(i *receipt) bool { return i.lost(err) })
		if len(left) == len(items) {
			return err
		}

		items = left // the others exist already
	}
}

// items reads the next page of the items of an operation, after its cursor. They are in the order
// of their keys, which does not change while they are done.
func (q *Queue) items(ctx context.Context,
	o *ingest.Operation) (page []receipt, end bool, err error) {
	query := table.Query{PK: receiptPK(o.ID), From: o.Cursor + " ", To: "~", Limit: itemPage}
	if o.FromEnd {
		// A range includes its ends, so the item at the cursor is read again, and left out.
		query.From, query.To, query.Desc, query.Limit = " ", cmp.Or(o.Cursor, "~"), true, itemPage+1
	}

	next, err := q.Table.Page(ctx, query, &page)
	page = slices.DeleteFunc(page, func(r receipt) bool { return r.SK == o.Cursor })
	return page[:min(len(page), itemPage)], next == "" && len(page) <= itemPage, err
}

// runItems acts on the next page of items. Those that were done by an earlier run of the
// page, which ended before its checkpoint, are only counted.
func (d Admin) runItems(ctx context.Context, row *Operation, until time.Time) error {
	page, end, err := d.Queue.items(ctx, &row.Operation)
	if err != nil {
		return err
	}

	var add ingest.Tally
	cursor, failure := row.Cursor, error(nil)
	for i := range page {
		item := &page[i]
		if item.Outcome == "" && !d.Queue.Now().Before(until) {
			end = false
			break
		}

		// Only the first item of a page can have failed in the tries before: an error ends the page
		// there.
		failure = d.runItem(ctx, row, item, i == 0 && row.Tries >= itemTries-1)
		if failure != nil {
			end = false
			break
		}

		if item.Outcome == ItemRefused {
			add.Refused++
		} else {
			add.Done++
		}

		cursor = item.SK
	}
	return errors.Join(failure, d.checkpoint(ctx, row, cursor, add, end, failure != nil))
}

// checkpoint records the items that are done. If the operation was interrupted meanwhile,
// they are recorded all the same. A Stale means that another run has recorded them.
func (d Admin) checkpoint(ctx context.Context, row *Operation, cursor string, add ingest.Tally,
	end, failed bool) error {
	q, from := d.Queue, row.Cursor
	for {
		next := q.Rules.ContinueOperation(row.Operation, q.Now())
		// No item was done: this counts as a try of the first one.
		if failed && cursor == from {
			next.Tries = row.Tries + 1
		}

		next.Cursor = cursor
		next.Tally.Done += add.Done
		next.Tally.Refused += add.Refused
		by := origin{}
		if end && next.State == ingest.OperationRunning {
			next, by = q.ended(next)
		}

		err := q.changeOperation(ctx, row, next, by)
		if !fault.Is(err, fault.Stale) {
			return err
		}

		again, readErr := q.Operation(ctx, row.Operation.ID)
		if readErr != nil {
			return readErr
		}

		if again.Cursor != from || again.State == ingest.OperationDone {
			return err
		}

		*row = *again
	}
}

// runItem does the action on one item, unless it is done. A refusal is recorded with its
// reason. Any other error is returned, unless it is the last try.
func (d Admin) runItem(ctx context.Context, row *Operation, item *receipt, last bool) error {
	if item.Outcome != "" {
		return nil
	}

	t, err := ingest.ParseTarget(item.SK)
	if err != nil {
		return err
	}

	a := ingest.Action{
		Name:     row.Name,
		Target:   t,
		Reason:   row.Reason,
		Actor:    row.Actor,
		Role:     ingest.Administrator,
		Request:  row.Operation.ID,
		Confirm:  row.Confirm,
		DryRun:   row.DryRun,
		Priority: row.Priority,
		Until:    row.Until,
	}

	if t.Kind == ingest.TargetBatch {
		_, err = d.actOnBatch(ctx, a, item)
	} else {
		_, err = d.actOnJob(ctx, a, item)
	}

	switch {
	case err == nil:
		return nil
	case isRefused(err):
	case last:
		err = fmt.Errorf("given up after %d tries: %w", itemTries, err)
	default:
		return fmt.Errorf("queue: operation %s: %w", row.Operation.ID, err)
	}
	return d.refuse(ctx, row, item, err)
}

// isRefused reports whether an action was refused, so that the same try would be refused
// again. Other errors may pass, so such an item is tried again.
func isRefused(err error) bool {
	switch fault.Of(err) {
	case fault.Invalid, fault.Denied, fault.NotFound, fault.Conflict, fault.Held:
		return true
	}
	return false
}

// refuse records that an item was refused: on its receipt, and in the list of refusals. Both are
// one transaction, so that the list has each refusal once.
func (d Admin) refuse(ctx context.Context, row *Operation, item *receipt, why error) error {
	next := *item
	next.Outcome, next.Message = ItemRefused, ingest.Cut(why.Error(), ingest.MaxReason)
	k := table.Key{PK: row.PK, SK: refusals + item.SK}
	r := &Refusal{Head: head(k), Job: item.ID, Reason: next.Message}
	r.ExpiresAt = row.ExpiresAt
	tx := d.Queue.Table.Begin(d.Queue.NewID())
	item.put(tx, next)
	tx.Insert(r)
	err := tx.Commit(ctx)
	if item.lost(err) {
		return d.Queue.Table.Get(ctx, item.Key(), item)
	}
	return err
}
