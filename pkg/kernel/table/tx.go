package table

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/guregu/dynamo/v2"

	"archivist/pkg/kernel/fault"
)

// DynamoDB's limits on one transaction and on one row.
const (
	MaxActions  = 100
	MaxTxBytes  = 4 << 20
	MaxRowBytes = 400 << 10
)

// Tx is one change: all of its rows are written, or none. Compose it, then Commit it once.
// The rows are written with their values at the time of the call. The caller's copies get
// their new revision only after the commit has succeeded. A row may be in it only once, as
// DynamoDB requires. It belongs to one goroutine.
type Tx struct {
	t     *Table
	id    string
	ops   []op
	bytes int // of the rows that it puts
	// large is a row above MaxRowBytes, proof the row that tells whether this transaction was
	// committed; both may be nil.
	large *Key
	proof *Key
	then  []func()
	later []func(ctx context.Context, index, count int)
}

// Exactly one of put, del, update and check is set.
type op struct {
	key     Key
	written bool // the row carries the transaction's id afterwards
	put     *dynamo.Put
	del     *dynamo.Delete
	update  *dynamo.Update
	check   *dynamo.ConditionCheck
}

// Begin starts a transaction. id is unique to this change and made beforehand: every row that
// it writes carries it, so that a commit whose answer was lost can be distinguished from
// another change. An id that two changes share would make the second believe that it was
// committed.
func (t *Table) Begin(id string) *Tx { return &Tx{t: t, id: id} }

// ID returns the id that Begin was given.
func (tx *Tx) ID() string { return tx.id }

// OnCommit runs f after the commit has succeeded, in the order of the calls. It does not run
// if the process dies in between: what must happen is owed by a row, not by f.
func (tx *Tx) OnCommit(f func()) { tx.then = append(tx.then, f) }

// Later runs f when the transaction is committed, before it is sent: f puts rows that say
// which of how many they are. index counts the calls of Later from 0, count is their number.
func (tx *Tx) Later(f func(ctx context.Context, index, count int)) {
	tx.later = append(tx.later, f)
}

// Insert writes a row that must not exist yet; its rev becomes 1. A row that exists is a
// Stale of the commit.
func (tx *Tx) Insert(row Row) { tx.put(row, 1, "attribute_not_exists(pk)") }

// Save writes a row that was read, on the condition that it was not written since:
// its rev is the fence.
func (tx *Tx) Save(row Row) {
	read := row.head().Rev
	tx.put(row, read+1, "rev = ?", read)
}

// InsertOrSave inserts a row that is new, so that its Rev is 0, and saves one that was read.
func (tx *Tx) InsertOrSave(row Row) {
	if row.head().Rev == 0 {
		tx.Insert(row)
	} else {
		tx.Save(row)
	}
}

// put encodes the row now, with the head that it will have, and restores the caller's head
// until the commit. A row that exceeds DynamoDB's limit is refused by Commit, not here, so
// that the caller has one place for errors.
func (tx *Tx) put(row Row, rev int64, condition string, args ...any) {
	h := row.head()
	read := *h
	h.Rev, h.TxID, h.Schema = rev, tx.id, Schema
	put := tx.t.Rows.Put(row).If(condition, args...)
	size := Size(row)
	*h = read
	k := h.Key()
	tx.bytes += size
	if size > MaxRowBytes {
		tx.large = &k
	}

	tx.add(op{key: k, written: true, put: put})
	tx.OnCommit(func() { h.Rev, h.TxID, h.Schema = rev, tx.id, Schema })
}

// Remove deletes a row that was read, on the condition that it was not written since. The row
// may be a Head alone, if that was read.
func (tx *Tx) Remove(row Row) {
	h := row.head()
	tx.add(op{key: h.Key(),
		del: tx.t.Rows.Delete("pk", h.PK).Range("sk", h.SK).If("rev = ?", h.Rev)})
}

// RemoveOwned deletes a row on the condition that owner owns it. It is for slots, locks and
// the like, whose row the owner has not read. A row that is gone or of another owner is a
// Stale of the commit.
func (tx *Tx) RemoveOwned(k Key, owner string) {
	tx.add(op{key: k, del: tx.t.Rows.Delete("pk", k.PK).Range("sk", k.SK).If("owned_by = ?",
		owner)})
}

// Count adds to the numbers of an existing row. Transactions that count on the same row do
// not make each other Stale, but conflict if they are committed at the same moment, and are
// retried. A row that is missing is a Stale. The row's wid is not used as a proof, since
// another count would write over it.
func (tx *Tx) Count(k Key, add map[string]int64) {
	u := tx.t.Rows.Update("pk", k.PK).Range("sk", k.SK).Add("rev", 1).Set("wid",
		tx.id).If("attribute_exists(pk)").If(
		notNewer, Schema)
	for name, n := range add {
		u.Add(name, n)
	}
	tx.add(op{key: k, update: u})
}

// Amend sets and removes attributes of an existing row under a condition. It leaves the row's
// revision and the id of its transaction as they are: the row remains the proof of the commit
// that wrote it. A condition on a rev does not see this change, unless set has the new rev.
// That is for what others add to a row that is not theirs, such as the place of an event.
func (tx *Tx) Amend(k Key, condition string, set map[string]any, remove ...string) {
	tx.AmendIf(k, condition, nil, set, remove...)
}

// AmendIf is Amend with a condition that has arguments, as that of Require.
func (tx *Tx) AmendIf(k Key, condition string, args []any, set map[string]any, remove ...string) {
	u := tx.t.Rows.Update("pk", k.PK).Range("sk", k.SK).If(condition, args...)
	for _, name := range slices.Sorted(maps.Keys(set)) {
		u.Set(name, set[name])
	}
	if len(remove) > 0 {
		u.Remove(remove...)
	}
	tx.add(op{key: k, update: u})
}

// Require makes the commit depend on a row that it does not write: the condition is guregu's
// expression with its arguments. It costs as much as a write of the row, and conflicts with
// those who write it.
func (tx *Tx) Require(k Key, condition string, args ...any) {
	tx.add(op{key: k, check: tx.t.Rows.Check("pk", k.PK).Range("sk", k.SK).If(condition, args...)})
}

// Prove names the inserted row that permanently records which transaction wrote it (the event
// row). By default the first written row is the proof. A row that others write again would
// lose the id before it is read. A transaction that puts no row has no proof: see Commit.
func (tx *Tx) Prove(k Key) { tx.proof = &k }

func (tx *Tx) add(o op) {
	tx.ops = append(tx.ops, o)
	if tx.proof == nil && o.written {
		tx.proof = &o.key
	}
}

// Commit makes the change. nil means that it was made exactly once, even if responses were
// lost. A Stale (with a *ConditionError inside) means that it was not made and cannot be:
// read again. An Unavailable means that the result is not known: check whether the change
// was made before repeating it. An Invalid means that it exceeds DynamoDB's limits and can
// never be made.
//
// After an error whose effect is not known, or a condition that failed, the proof row is
// read: with our id, an earlier try was committed; with another, it was not. That is how a
// repeat of a committed transaction, whose own conditions fail by its first success, is told
// from a change by another.
//
// A transaction that puts no row has no proof. If its response is lost, the repeat can report
// a Stale although it was made, and counts twice if it only counts. So counts go along with a
// row.
func (tx *Tx) Commit(ctx context.Context) error {
	for i, f := range tx.later {
		f(ctx, i, len(tx.later))
	}

	if err := tx.fits(); err != nil {
		return err
	}

	err := tx.t.retry(ctx, "commit", func(ctx context.Context) error {
		err := tx.send(ctx)

		// What was refused as throttled or in conflict was not made: there is nothing to
		// settle.
		if err == nil || transient(err) == refused {
			return err
		}

		mine, readErr := tx.happened(ctx)
		switch {
		case mine:
			return nil
		case isCondition(err) && readErr == nil:
			return &ConditionError{tx.failed(err)}
		case isCondition(err):
			return readErr
		}
		return err
	})

	var ce *ConditionError
	if errors.As(err, &ce) {
		return &fault.Error{Kind: fault.Stale, Msg: ce.Error(), Err: ce}
	}

	if err != nil {
		return err
	}

	for _, f := range tx.then {
		f()
	}
	return nil
}

// fits refuses what DynamoDB would refuse, with a message that names the row or the number.
// Updates and removals do not count as bytes here.
func (tx *Tx) fits() error {
	switch {
	case len(tx.ops) == 0:
		return fmt.Errorf("table: a transaction without rows")
	case len(tx.ops) > MaxActions:
		return fault.New(fault.Invalid,
			"table: a transaction of %d rows; at most %d can be written at once",
			len(tx.ops), MaxActions)
	case tx.large != nil:
		return fault.New(fault.Invalid, "table: the row %s has more than %d bytes", tx.large,
			MaxRowBytes)
	case tx.bytes > MaxTxBytes:
		return fault.New(fault.Invalid,
			"table: a transaction of %d bytes; at most %d can be written at once",
			tx.bytes, MaxTxBytes)
	}
	return nil
}

// happened reads the proof row and reports whether this transaction wrote it. A proof row
// that is missing means that it did not.
func (tx *Tx) happened(ctx context.Context) (bool, error) {
	if tx.proof == nil {
		return false, nil
	}
	var h Head
	err := tx.t.get(ctx, *tx.proof, &h)
	if fault.Is(err, fault.NotFound) {
		return false, nil
	}
	return err == nil && h.TxID == tx.id, err
}

// send makes one request. One row alone needs no transaction, which costs double.
func (tx *Tx) send(ctx context.Context) error {
	if len(tx.ops) == 1 {
		switch o := tx.ops[0]; {
		case o.put != nil:
			return o.put.Run(ctx)
		case o.del != nil:
			return o.del.Run(ctx)
		case o.update != nil:
			return o.update.Run(ctx)
		}
	}

	w := tx.t.DB.WriteTx()
	for _, o := range tx.ops {
		switch {
		case o.put != nil:
			w.Put(o.put)
		case o.del != nil:
			w.Delete(o.del)
		case o.update != nil:
			w.Update(o.update)
		case o.check != nil:
			w.Check(o.check)
		}
	}
	return w.Run(ctx)
}

// failed lists the rows whose conditions did not hold. The reasons are in the order of the
// actions. An error without them is of a single write.
func (tx *Tx) failed(err error) []Key {
	var cancelled *types.TransactionCanceledException
	if !errors.As(err, &cancelled) {
		return []Key{tx.ops[0].key}
	}

	var keys []Key
	for i, r := range cancelled.CancellationReasons {
		if r.Code != nil && *r.Code == "ConditionalCheckFailed" && i < len(tx.ops) {
			keys = append(keys, tx.ops[i].key)
		}
	}
	return keys
}
