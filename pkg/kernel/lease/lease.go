// Package lease makes sure that only one worker at a time does a piece of work.
//
// A lease has a holder and an end. It is never renewed: it lasts a little longer than the
// time-out of the function that takes it. A worker that dies keeps its lease until the end;
// then another worker can take it. There are two kinds.
//
// A lease on a row (On) is part of the row that it guards. Every write of the row has the
// condition that the revision is the one that was read, so a worker whose lease has passed
// to another cannot write.
//
//	if row.Live(now) {
//		return // another worker has it
//	}
//	row.Take(tx.ID(), now, time.Minute)
//	tx.Save(&row)
//
// A lease row (Store, Lease) guards what has no row of its own, such as the scheduler's
// tick. It has a fence, a number that only rises. A transaction under the lease includes
// its Guard, and fails once the lease has passed to another holder.
//
// The time only says when another worker may try. What keeps a late one from writing, e.g. after
// its clock was wrong or its function was suspended, is the condition on rev or fence.
package lease

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/guregu/dynamo/v2"

	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/table"
)

// On is the lease in a row. Holder is a new id each time the lease is taken; Until is the end
// of the lease, in milliseconds since 1970. Every write of the row is conditioned on its rev,
// so a former holder cannot write. It is embedded in the row beside its Head.
type On struct {
	Holder string `dynamo:"holder,omitempty"`
	Until  int64  `dynamo:"until_ms,omitempty"`
}

// Live reports whether the lease is held at now.
func (l *On) Live(now time.Time) bool { return l.Holder != "" && now.UnixMilli() < l.Until }

// Take gives the lease to holder. The caller has checked that it is not live. The lease is
// held once the row is saved.
func (l *On) Take(holder string, now time.Time, ttl time.Duration) {
	l.Holder, l.Until = holder, now.Add(ttl).UnixMilli()
}

// Release gives the lease back.
func (l *On) Release() { *l = On{} }

// Lease is a held lease row.
type Lease struct {
	Name  string
	Fence int64 // higher than that of every holder before
	Until time.Time
}

type row struct {
	table.Head
	On
	Fence int64 `dynamo:"fence"`
}

func key(name string) table.Key { return table.Key{PK: "LEASE#" + name, SK: "LEASE"} }

// Store keeps leases that guard no row: the scheduler's, a component's. Their rows stay after
// a release, because the fence must not fall.
type Store struct {
	Table *table.Table
	Now   func() time.Time
	NewID func() string
}

// HeldError means that another holder has the lease, and until when.
type HeldError struct {
	Name, Holder string
	Until        time.Time
}

// Error names the lease, its holder and its end.
func (e *HeldError) Error() string {
	return fmt.Sprintf("lease %s is held by %s until %s", e.Name, e.Holder,
		e.Until.UTC().Format(time.RFC3339))
}

// Acquire takes the lease on name for ttl. If another holder has it, it returns an error of
// the kind fault.Held with a *HeldError inside. Transactions under the lease include its
// Guard; they fail once the lease has passed to another holder.
//
// It costs one write. The condition lets a lease be taken that was given back (no holder) or
// has ended by this process's clock; the same update raises the fence. The id of the change
// is the holder's, so a call whose response was lost finds its own lease instead of being
// refused by it.
func (s *Store) Acquire(ctx context.Context, name string, ttl time.Duration) (Lease, error) {
	now, holder := s.Now(), s.NewID()
	until := now.Add(ttl)
	var r row
	err := s.Table.Change(ctx, key(name), holder, func(u *dynamo.Update) {
		u.Set("holder", holder).Set("until_ms", until.UnixMilli()).Add("fence", 1)
		u.If("attribute_not_exists(holder) OR until_ms <= ?", now.UnixMilli())
	}, &r)
	if fault.Is(err, fault.Stale) {
		held := &HeldError{name, r.Holder, time.UnixMilli(r.Until)}
		return Lease{}, &fault.Error{Kind: fault.Held, Msg: held.Error(), Err: held}
	}
	return Lease{Name: name, Fence: r.Fence, Until: until}, err
}

// Guard makes tx fail if the lease has passed to another holder. The end of the lease is not
// in the condition: as long as nobody else has taken it, its holder may still commit.
func (l Lease) Guard(tx *table.Tx) { tx.Require(key(l.Name), "fence = ?", l.Fence) }

// Lost reports whether a transaction failed because the lease has passed to another holder.
// err is that of a commit with Guard. Whoever lost it stops: the new holder does the work.
func (l Lease) Lost(err error) bool {
	ce, ok := errors.AsType[*table.ConditionError](err)
	return ok && ce.Failed(key(l.Name))
}

// Release gives the lease back before its end. A Stale means that it has already passed to
// another holder. The fence stays. Without a release, the lease ends by its time.
func (s *Store) Release(ctx context.Context, l Lease) error {
	return s.Table.Change(ctx, key(l.Name), s.NewID(), func(u *dynamo.Update) {
		u.Remove("holder", "until_ms").If("fence = ?", l.Fence)
	}, &row{})
}

// Revoke puts into tx that the lease on name is taken away from its holder, if it has one. No
// transaction under that lease can be committed after tx, and the lease is free. A Stale of
// tx means that the lease has passed to another holder meanwhile. It reads the row and writes
// it with the fence raised. The error is one of that read.
func (s *Store) Revoke(ctx context.Context, tx *table.Tx, name string) error {
	k := key(name)
	r := row{Head: table.Head{PK: k.PK, SK: k.SK}}
	err := s.Table.Get(ctx, k, &r)
	if err != nil && !fault.Is(err, fault.NotFound) {
		return err
	}

	fresh := err != nil
	r.Fence++
	r.On = On{}
	if fresh {
		tx.Insert(&r)
	} else {
		tx.Save(&r)
	}
	return nil
}
