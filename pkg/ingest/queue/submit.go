package queue

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"time"

	"archivist/pkg/events/event"
	"archivist/pkg/ingest"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/table"
)

// KeepKeys is how long an Idempotency-Key is remembered.
const KeepKeys = 7 * 24 * time.Hour

// remembered is the row of an Idempotency-Key. The body is kept as its sha256 only.
type remembered struct {
	table.Head
	Batch string `dynamo:"batch_id"`
	Body  string `dynamo:"body_sha256"`
	Until int64  `dynamo:"until_ms"`
}

// Submit makes a batch in state Pending and starts it. body is the request as received.
// Within KeepKeys, the same key with the same body returns the same batch, and with another
// body a Conflict. An empty key is no key.
//
// An Invalid names an identifier or a size that is not accepted. The batch, its counts, its places
// in line and the key are one transaction: a submission is accepted as a whole, or not at all. also is what else is in
// it; it gets the id of the batch.
func (q *Queue) Submit(ctx context.Context, b ingest.Batch, key string, body []byte,
	actor string, also ...func(tx *table.Tx, batch string) error) (*Batch, error) {
	if err := ingest.CheckSubmission(&b.Primary, &b.LocalIDs, b.Payload); err != nil {
		return nil, err
	}

	if err := q.name(ctx, b.Collection); err != nil {
		return nil, err
	}

	now := q.Now()
	b.ID, b.Created = q.NewID(), now.UnixMilli()
	if err := q.joinLines(ctx, &b); err != nil {
		return nil, err
	}

	id := b.ID
	if cause := event.OriginOf(ctx).Cause; cause.Event != "" {
		b.Cause = &cause
	}

	next := q.Rules.EnterBatch(b, ingest.BatchPending, now)
	row := &Batch{Head: head(batchKey(id))}
	tx := q.Table.Begin(id)
	if err := q.putBatch(tx, row, next, nil, origin{
		event:     "batch.state",
		actor:     actor,
		component: "api",
	}); err != nil {
		return nil, err
	}

	tx.Insert(&Counts{Head: head(countKey(id)), StopAfter: b.StopAfter, Weighed: true})
	if key != "" {
		known, err := q.remember(ctx, tx, key, body, id, now)
		if known != nil || err != nil {
			return known, err
		}
	}

	err := commitWith(ctx, tx, id, also)
	if key != "" && fault.Is(err, fault.Stale) {
		// Another request may have used the key since it was read. Else it is another row that has changed.
		known, readErr := q.Submitted(ctx, key, body)
		if known != nil || readErr != nil {
			return known, readErr
		}
	}

	if err != nil {
		return nil, err
	}

	q.wake(ctx, ingest.BatchWakes(ingest.Batch{}, next))
	return row, nil
}

// commitWith commits the transaction that makes a batch, with what else is in it.
func commitWith(ctx context.Context, tx *table.Tx, batch string,
	also []func(tx *table.Tx, batch string) error) error {
	for _, add := range also {
		if err := add(tx, batch); err != nil {
			return err
		}
	}
	return tx.Commit(ctx)
}

// keyRow is the key of an Idempotency-Key's row. Its digest bounds the length.
func keyRow(key string) table.Key {
	sum := sha256.Sum256([]byte(key))
	return table.Key{PK: "KEY#" + hex.EncodeToString(sum[:]), SK: "KEY"}
}

// Submitted returns the batch for which a key was used, nil for none: a request that is repeated is not checked
// against what it has changed. Another body is a Conflict.
func (q *Queue) Submitted(ctx context.Context, key string, body []byte) (*Batch, error) {
	if key == "" {
		return nil, nil
	}
	now, row := q.Now(), remembered{}
	err := q.Table.Get(ctx, keyRow(key), &row)
	switch {
	case fault.Is(err, fault.NotFound), err == nil && now.UnixMilli() >= row.Until:
		return nil, nil
	case err != nil:
		return nil, err
	}
	return q.recall(ctx, key, body, now)
}

// Remembers says of each key whether it is remembered now.
func (q *Queue) Remembers(ctx context.Context, keys []string) ([]bool, error) {
	rows := make([]table.Key, len(keys))
	for i, key := range keys {
		rows[i] = keyRow(key)
	}
	found, err := q.Table.Many(ctx, rows)
	if err != nil {
		return nil, err
	}
	used := make([]bool, len(keys))
	for i, at := range rows {
		raw, has := found[at]
		if !has {
			continue
		}
		var row remembered
		if err := raw.Decode(&row); err != nil {
			return nil, err
		}
		used[i] = q.Now().UnixMilli() < row.Until
	}
	return used, nil
}

// remember puts the key's row into tx, or returns the batch for which the key was used. An expired
// row is replaced.
func (q *Queue) remember(ctx context.Context, tx *table.Tx, key string, body []byte, batch string,
	now time.Time) (*Batch, error) {
	row := remembered{Head: head(keyRow(key))}
	err := q.Table.Get(ctx, row.Key(), &row)
	switch {
	case err == nil && now.UnixMilli() < row.Until:
		return q.recall(ctx, key, body, now)
	case err != nil && !fault.Is(err, fault.NotFound):
		return nil, err
	}

	until := now.Add(KeepKeys)
	// Until decides: DynamoDB may remove an expired row days later.
	row.Batch, row.Body, row.Until, row.ExpiresAt = batch, digestOf(body), until.UnixMilli(),
		until.Unix()
	put(tx, &row, row.Rev)
	return nil, nil
}

// recall returns the batch for which a key was used, if the request is the same. A batch whose rows
// were removed since is a Conflict.
func (q *Queue) recall(ctx context.Context, key string, body []byte,
	now time.Time) (*Batch, error) {
	var row remembered
	if err := q.Table.Get(ctx, keyRow(key), &row); err != nil {
		return nil, err
	}
	if row.Body != digestOf(body) {
		return nil, fault.New(fault.Conflict,
			"the Idempotency-Key was used with another request, for batch %s; use "+
				"a new key for a new submission", row.Batch)
	}

	batch, err := q.Batch(ctx, row.Batch)
	if fault.Is(err, fault.NotFound) {
		return nil, fault.New(fault.Conflict, "this submission was accepted as batch %s, whose records are removed "+
			"since; use a new Idempotency-Key to submit it again", row.Batch)
	}
	return batch, err
}
