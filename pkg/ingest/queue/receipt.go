package queue

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"time"

	"archivist/pkg/ingest"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/table"
)

// KeepReceipts is how long a request with an id is remembered. Then its row expires, and the same
// request is a new one.
const KeepReceipts = 30 * 24 * time.Hour

// receipt is the row that remembers the result of an action. The transaction that does the
// action writes it, so that the same request again finds the result, and does not act
// twice. A request's receipt is inserted by that transaction. The receipt of an item of a
// bulk operation is inserted, without an outcome, when the operation is planned. A nil
// receipt remembers nothing.
type receipt struct {
	table.Head
	ID       string            `dynamo:"id,omitempty"`        // of the target of an item
	Asked    string            `dynamo:"asked_for,omitempty"` // digest of a request
	Name     ingest.ActionName `dynamo:"action_name"`
	Outcome  Outcome           `dynamo:"outcome,omitempty"`
	Changed  bool              `dynamo:"changed,omitempty"`
	Message  string            `dynamo:"message,omitempty"` // the summary, or why it was refused
	From     string            `dynamo:"from_state,omitempty"`
	To       string            `dynamo:"to_state,omitempty"`
	Warnings []string          `dynamo:"warnings,omitempty"`
	Next     *ingest.Bulk      `dynamo:"next_bulk,omitempty"`
	Bulk     string            `dynamo:"operation_id,omitempty"`
}

// Outcome is how an action on an item of a bulk operation ended, "" if it is pending.
type Outcome string

// The outcomes. Done includes items that were already as the action wants them.
const (
	ItemDone    Outcome = "done"
	ItemRefused Outcome = "refused"
)

// receiptKey is the key of the receipt of a request, or of a bulk operation, for a target.
func receiptKey(request string, t ingest.Target) table.Key {
	return table.Key{PK: receiptPK(request), SK: t.String()}
}

func receiptPK(request string) string { return "ACT#" + request }

// receipt returns the receipt of an action, nil if the action has none: it has no request
// id, or is a dry run. If the request was done before, the receipt has an outcome, and its
// result is that of the action. Otherwise attempt adds it to the transaction of the action.
func (q *Queue) receipt(ctx context.Context, a ingest.Action) (*receipt, error) {
	if a.DryRun {
		return nil, nil
	}
	return q.receiptOf(ctx, a.Request, a.Target, a.Name, a)
}

// receiptOf returns the receipt of a request for a target. asked is all that was asked for:
// under the same id, it must be the same.
func (q *Queue) receiptOf(ctx context.Context, request string, t ingest.Target,
	name ingest.ActionName, asked any) (
	*receipt, error) {
	if request == "" {
		return nil, nil
	}

	body, err := json.Marshal(asked)
	if err != nil {
		return nil, err
	}

	want := digestOf(body)
	r := &receipt{Head: head(receiptKey(request, t)), Name: name, Asked: want}
	r.ExpiresAt = q.Now().Add(KeepReceipts).Unix()
	err = q.Table.Get(ctx, r.Key(), r)
	switch {
	case fault.Is(err, fault.NotFound):
		return r, nil
	case err == nil && r.Asked != want:
		what := string(r.Name)
		if r.Bulk != "" {
			what += " (operation " + r.Bulk + ")"
		}
		return nil, fault.New(fault.Conflict,
			"request: the id %q was used for another request, for the action %s; "+
				"use a new id for a new request", ingest.Cut(request, 100), what)
	}
	return r, err
}

// digestOf is the sha256 of a request, in hexadecimal: its row need not keep the request.
func digestOf(body []byte) string {
	sum := sha256.Sum256(body)
	return hex.EncodeToString(sum[:])
}

// done reports whether the action of the receipt was done before.
func (r *receipt) done() bool { return r != nil && r.Outcome != "" }

// result is the result that the receipt remembers; zero if it remembers none.
func (r *receipt) result(a ingest.Action) ingest.ActionResult {
	if !r.done() {
		return ingest.ActionResult{}
	}
	return ingest.ActionResult{
		Action:    a.Name,
		Target:    a.Target,
		DryRun:    a.DryRun,
		Changed:   r.Changed,
		Summary:   r.Message,
		From:      r.From,
		To:        r.To,
		Warnings:  r.Warnings,
		Next:      r.Next,
		Operation: r.Bulk,
	}
}

// add puts the receipt into the transaction that does the action. A nil receipt adds nothing.
func (r *receipt) add(tx *table.Tx, out ingest.ActionResult) {
	if r == nil {
		return
	}
	next := *r
	next.Outcome, next.Changed, next.Message = ItemDone, out.Changed, out.Summary
	next.From, next.To, next.Warnings = out.From, out.To, out.Warnings
	next.Next, next.Bulk = out.Next, out.Operation
	r.put(tx, next)
}

// put writes the receipt as next, on the condition that no other try has written it.
func (r *receipt) put(tx *table.Tx, next receipt) {
	put(tx, &next, next.Rev)
	tx.OnCommit(func() { *r = next })
}

// lost reports whether a commit failed because another try of the request wrote the receipt.
func (r *receipt) lost(err error) bool {
	var ce *table.ConditionError
	return r != nil && errors.As(err, &ce) && ce.Failed(r.Key())
}

// save writes the receipt of an action that changes nothing else.
func (q *Queue) save(ctx context.Context, r *receipt, out ingest.ActionResult) error {
	if r == nil {
		return nil
	}
	tx := q.Table.Begin(q.NewID())
	r.add(tx, out)
	return tx.Commit(ctx)
}
