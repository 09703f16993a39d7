package queue

import (
	"cmp"
	"context"
	"slices"
	"time"

	"archivist/pkg/ingest"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/lease"
	"archivist/pkg/kernel/table"
)

// Hold is the row of a hold of a collection or a batch, or of a pause of the queue or the
// storage. All are in one partition, which each pass over the gates reads once. A hold of a
// single job is on the job's own row.
//
// The transaction that places, changes or lifts a hold revokes the scheduler's lease. So a
// tick that has read the former holds can no longer admit or hold a job.
type Hold struct {
	table.Head
	ID string `dynamo:"hold_id,omitempty"` // of the collection or batch
	ingest.Hold
}

// holdPK is the partition of all holds.
const holdPK = "HOLD"

// holdKey is the key of a target's hold: "queue", "storage", "collection#maps", "batch#01M…".
func holdKey(t ingest.Target) table.Key {
	if t.ID == "" {
		return table.Key{PK: holdPK, SK: string(t.Kind)}
	}
	return table.Key{PK: holdPK, SK: string(t.Kind) + "#" + t.ID}
}

var (
	theQueue   = ingest.Target{Kind: ingest.TargetQueue}
	theStorage = ingest.Target{Kind: ingest.TargetStorage}
)

func collectionTarget(name string) ingest.Target {
	return ingest.Target{Kind: ingest.TargetCollection, ID: name}
}

func batchTarget(id string) ingest.Target { return ingest.Target{Kind: ingest.TargetBatch, ID: id} }

// Target is what is held or paused.
func (h *Hold) Target() ingest.Target { return ingest.Target{Kind: h.Scope, ID: h.ID} }

// Description describes the hold in a sentence without its end.
func (h *Hold) Description() string {
	state := "on hold"
	if h.ID == "" {
		state = "paused"
	}
	return nameOf(h.Target()) + " is " + state + " " + h.Hold.Description()
}

// endOf is the action that lifts a hold or a pause.
func endOf(h *Hold) ingest.ActionName {
	if h.ID == "" {
		return ingest.ActResume
	}
	return ingest.ActRelease
}

// nameOf is how a sentence names a target.
func nameOf(t ingest.Target) string {
	if t.ID == "" {
		return "the " + string(t.Kind)
	}
	return string(t.Kind) + " " + t.ID
}

// holds are the active holds and pauses, by their rows' keys.
type holds map[table.Key]*Hold

// active reads the active holds and pauses. One whose end has passed counts as lifted.
func (q *Queue) active(ctx context.Context) (holds, error) {
	all, err := q.holdRows(ctx)
	out := holds{}
	for i := range all {
		if !all[i].Ended(q.Now()) {
			out[all[i].Key()] = &all[i]
		}
	}
	return out, err
}

// holdRows reads the rows of all holds, also of those that have ended.
func (q *Queue) holdRows(ctx context.Context) (all []Hold, err error) {
	query := table.Query{PK: holdPK, Limit: 1000}
	for more := true; more; more = query.Cursor != "" {
		var page []Hold
		if query.Cursor, err = q.Table.Page(ctx, query, &page); err != nil {
			return nil, err
		}
		all = append(all, page...)
	}
	// A row without a scope is an event of a collection of that name, by an earlier release.
	return slices.DeleteFunc(all, func(h Hold) bool { return h.Scope == "" }), nil
}

// Holds lists the active pauses and holds: first the pauses, then the holds, oldest
// first. Those that have ended are left out, also while their rows are there.
func (q *Queue) Holds(ctx context.Context) ([]Hold, error) {
	active, err := q.active(ctx)
	return active.sorted(), err
}

// sorted are the holds in the order of Holds.
func (h holds) sorted() []Hold {
	out := make([]Hold, 0, len(h))
	for _, one := range h {
		out = append(out, *one)
	}
	slices.SortFunc(out, func(a, b Hold) int {
		return cmp.Or(min(len(a.ID), 1)-min(len(b.ID), 1), cmp.Compare(a.Since, b.Since),
			cmp.Compare(a.SK, b.SK))
	})
	return out
}

// on returns the hold that stops work of a collection, or else of a batch; nil if none does.
func (h holds) on(collection, batch string) *Hold {
	return cmp.Or(h[holdKey(collectionTarget(collection))], h[holdKey(batchTarget(batch))])
}

// paused returns the pause of the queue or of the storage, nil if it is not paused.
func (h holds) paused(t ingest.Target) *Hold { return h[holdKey(t)] }

// stops returns the hold or pause because of which a waiting job does not pass its gate, nil if there is none. A
// hold of a collection or batch stops what waits at gate 1: any other job has started, and continues.
func (h holds) stops(j *ingest.Job) *Hold {
	place, _ := j.WorkKey()
	switch pause := h.paused(theQueue); {
	case pause != nil:
		return pause
	case j.NeedsStorage() && h.paused(theStorage) != nil:
		return h.paused(theStorage)
	case place == ingest.WorkPending:
		return h.on(j.Collection, j.Batch)
	}
	return nil
}

// holdRow reads the row of a target's hold. Its rev is 0 if there is none.
func (q *Queue) holdRow(ctx context.Context, t ingest.Target) (*Hold, error) {
	row := &Hold{Head: head(holdKey(t))}
	err := q.Table.Get(ctx, row.Key(), row)
	if fault.Is(err, fault.NotFound) {
		err = nil
	}
	return row, err
}

// active returns the hold if it is active, or nil.
func (h *Hold) active(now time.Time) *Hold {
	if h.Rev == 0 || h.Ended(now) {
		return nil
	}
	return h
}

// hold reads the hold of a target, nil if none is active.
func (q *Queue) hold(ctx context.Context, t ingest.Target) (*Hold, error) {
	row, err := q.holdRow(ctx, t)
	return row.active(q.Now()), err
}

// holdOn reads the hold that stops work of a collection, or else of a batch; nil if none
// does. That of the collection comes first: while it lasts, a release of the batch would not help.
func (q *Queue) holdOn(ctx context.Context, collection, batch string) (*Hold, error) {
	h, err := q.hold(ctx, collectionTarget(collection))
	if h != nil || err != nil {
		return h, err
	}
	return q.hold(ctx, batchTarget(batch))
}

// unheld makes a transaction depend on that none of the targets is held. A row whose end has passed
// is no hold: the sweep removes it later.
func (q *Queue) unheld(targets ...ingest.Target) func(*table.Tx) error {
	return func(tx *table.Tx) error {
		for _, t := range targets {
			tx.Require(holdKey(t), "attribute_not_exists(pk) OR hold_until <= ?",
				q.Now().UnixMilli())
		}
		return nil
	}
}

// require makes a transaction depend on a hold that was read. A hold that was changed or lifted
// meanwhile has another rev, or no row.
func (h *Hold) require(tx *table.Tx) error {
	tx.Require(h.Key(), "rev = ?", h.Rev)
	return nil
}

// changed is the row of a hold after an action has placed or changed it. A row whose hold has
// ended is replaced.
func (h *Hold) changed(a ingest.Action, now time.Time) *Hold {
	next := &Hold{
		Head: h.Head,
		ID:   a.Target.ID,
		Hold: ingest.Hold{
			Scope:  a.Target.Kind,
			Reason: a.Reason,
			Actor:  a.Actor,
			Since:  now.UnixMilli(),
			Until:  a.Until,
		},
	}

	// A change of a hold keeps the time since when it holds.
	if h.active(now) != nil {
		next.Since = h.Since
	}
	return next
}

// putHold puts the row of a hold into tx, or removes it, and revokes the scheduler's lease. Both
// have the revision of the row that was read as their condition.
func (q *Queue) putHold(ctx context.Context, tx *table.Tx, row *Hold, a ingest.Action) error {
	if next := row.changed(a, q.Now()); a.Name.Lifts() {
		tx.Remove(next)
	} else {
		put(tx, next, next.Rev)
	}
	return q.leases().Revoke(ctx, tx, leaseName)
}

// leases are the leases in the same table.
func (q *Queue) leases() *lease.Store {
	return &lease.Store{Table: q.Table, Now: q.Now, NewID: q.NewID}
}

// leaseName is stored: under another name, the old and the new function of an upgrade
// would each hold a lease.
const leaseName = "clock"

// holdEnded is the reason of the event that a hold ended by itself.
const holdEnded = "its end time has passed"
