// Package passes has what all work with a limited time has in common that goes over many owners (consumers, components,
// projects): one pass at a time works on an owner; it ends in time; the next one goes on where it stopped; and what is
// left is not forgotten.
package passes

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/guregu/dynamo/v2"

	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/lease"
	"archivist/pkg/kernel/table"
)

// Left says how a pass ended, beside what it did.
type Left struct {
	// More: the time is over, and there is more to do: another pass has to follow at once.
	More bool
	// Busy: another pass is at work. It may not see what this one was asked for, so the caller tries again.
	Busy bool
}

// State returns it: so whatever embeds it can be asked what is left.
func (l Left) State() Left { return l }

// Under makes a pass under a lease, which ends with it, also after an error: the next pass need not wait. Another pass
// that is at work is not an error, but busy. A lease that has passed to another meanwhile, or was revoked, is none
// either: the other one does the rest.
func Under(ctx context.Context, leases *lease.Store, name string, ttl time.Duration,
	pass func(l lease.Lease) error) (busy bool, err error) {
	l, err := leases.Acquire(ctx, name, ttl)
	if fault.Is(err, fault.Held) {
		return true, nil
	}
	if err != nil {
		return false, err
	}

	err = pass(l)
	released := leases.Release(ctx, l)
	if err == nil && !fault.Is(released, fault.Stale) {
		err = released
	}
	return false, err
}

// Turns lets the owners of a loop take turns. Where a loop has stopped is a row of the table, so that any process goes
// on from there.
type Turns struct {
	Table *table.Table
	NewID func() string
	Now   func() time.Time
}

type turnRow struct {
	table.Head
	Last string `dynamo:"last_owner,omitempty"` // who had the last turn
}

func turnKey(loop string) table.Key { return table.Key{PK: "LEASE#" + loop, SK: "TURN"} }

// Each calls do for each of the owners, sorted by name, beginning behind the one at which the last call stopped, and
// begins none after until. So each has its turn, however many there are, however long they take, and whoever comes or
// goes meanwhile. What fails for one does not stop the others: their errors are joined. It costs a read if there are
// several, and a write if the time was not enough.
func (t Turns) Each(ctx context.Context, loop string, owners []string, until time.Time,
	do func(owner string) error) error {
	owners = slices.Sorted(slices.Values(owners))
	first, err := t.first(ctx, loop, owners)
	errs := []error{err} // without it the loop begins at the first: that is better than not at all
	last := ""
	for _, owner := range slices.Concat(owners[first:], owners[:first]) {
		if !t.Now().Before(until) {
			return errors.Join(append(errs, t.stopped(ctx, loop, last))...)
		}
		errs, last = append(errs, do(owner)), owner
	}
	return errors.Join(errs...)
}

// first is whose turn it is, by the place in owners; they can be fewer.
func (t Turns) first(ctx context.Context, loop string, owners []string) (int, error) {
	if len(owners) < 2 {
		return 0, nil
	}

	var row turnRow
	err := t.Table.Get(ctx, turnKey(loop), &row)
	if err != nil && !fault.Is(err, fault.NotFound) {
		return 0, err
	}

	i, known := slices.BinarySearch(owners, row.Last)
	if known {
		i++
	}
	return i, nil
}

// stopped notes who had the last turn, if anybody had one.
func (t Turns) stopped(ctx context.Context, loop, last string) error {
	if last == "" {
		return nil
	}
	set := func(u *dynamo.Update) { u.Set("last_owner", last) }
	return t.Table.Change(ctx, turnKey(loop), t.NewID(), set, &turnRow{})
}
