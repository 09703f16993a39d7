package queue

import (
	"context"
	"fmt"

	"archivist/pkg/collection"
	"archivist/pkg/event"
	"archivist/pkg/fault"
	"archivist/pkg/ingest"
	"archivist/pkg/lease"
	"archivist/pkg/table"
)

// HoldChange is the detail of the event that a hold or a pause began, changed or ended.
type HoldChange struct {
	Reason string `json:"reason"`
	Until  string `json:"until,omitempty"` // ISO 8601
}

// holdEvents are the types of the events of holds and pauses: of their begin or change, and
// of their end.
var holdEvents = map[ingest.TargetKind][2]string{
	ingest.TargetCollection: {"collection.held", "collection.released"},
	ingest.TargetBatch:      {"batch.held", "batch.released"},
	ingest.TargetQueue:      {"queue.paused", "queue.resumed"},
	ingest.TargetStorage:    {"storage.paused", "storage.resumed"},
}

// actOnHold does hold and release on a collection, and pause and resume on the queue and the
// storage.
func (d Admin) actOnHold(ctx context.Context, a ingest.Action, r *receipt) (ingest.ActionResult, error) {
	q := d.Queue
	return d.attempt(ctx, a, r, func() (attempt, error) {
		row, err := q.holdRow(ctx, a.Target)
		if err != nil {
			return attempt{}, err
		}
		to := planHold(row.standing(q.Now()), a)
		if lifts(a) && !to.unchanged {
			to.offers, err = q.offerRelease(ctx, a.Target)
		}
		change := func(tx *table.Tx) error { return q.putHold(ctx, tx, row, a) }
		record := func(tx *table.Tx) error { return q.recordHold(ctx, tx, a) }
		wakes := func() []ingest.Wake { return []ingest.Wake{{Kind: ingest.LookGates}} }
		commit := func(remember part) error { return q.commit(ctx, []part{record, change, remember}, wakes) }
		return attempt{plan: to, commit: commit}, err
	})
}

// lifts reports whether an action ends a hold or a pause.
func lifts(a ingest.Action) bool { return a.Name == ingest.ActRelease || a.Name == ingest.ActResume }

// planHold decides what an action does, if row is the hold of its target that stands.
func planHold(row *Hold, a ingest.Action) plan {
	name, state := nameOf(a.Target), "on hold"
	if a.Target.ID == "" {
		state = "paused"
	}
	switch {
	case lifts(a) && row == nil:
		return plan{unchanged: true, summary: name + " is not " + state}
	case lifts(a):
		return plan{summary: name + " is not " + state + " any more"}
	case row == nil:
		return plan{summary: fmt.Sprintf("%s is %s%s", name, state, until(a.Until))}
	case row.Until == a.Until:
		return plan{unchanged: true, summary: fmt.Sprintf("%s is already %s %s", name, state, row.Hold.Says())}
	}
	return plan{summary: fmt.Sprintf("%s stays %s%s", name, state, until(a.Until))}
}

// until is the end of a hold, for a summary.
func until(ms int64) string {
	if ms == 0 {
		return " until a person ends it"
	}
	return " until " + ingest.Timestamp(ms)
}

// holdEvent is the event of an action on a hold.
func (q *Queue) holdEvent(a ingest.Action) event.New {
	types, detail := holdEvents[a.Target.Kind], HoldChange{Reason: a.Reason}
	e := event.New{Type: types[0], Time: q.Now().UnixMilli(), Actor: a.Actor, Component: "admin"}
	if lifts(a) {
		e.Type = types[1]
	} else if a.Until != 0 {
		detail.Until = ingest.Timestamp(a.Until)
	}
	e.Detail = detail
	return e
}

// putHold puts the row of a hold into tx, or removes it, and revokes the scheduler's lease.
// A row whose hold has ended is replaced.
func (q *Queue) putHold(ctx context.Context, tx *table.Tx, row *Hold, a ingest.Action) error {
	next := Hold{Head: row.Head, ID: a.Target.ID, Hold: ingest.Hold{Scope: a.Target.Kind, Reason: a.Reason,
		Actor: a.Actor, Since: q.Now().UnixMilli(), Until: a.Until}}
	if row.standing(q.Now()) != nil {
		next.Since = row.Since
	}
	if lifts(a) {
		tx.Remove(&next)
	} else {
		put(tx, &next, next.Rev)
	}
	return q.leases().Revoke(ctx, tx, leaseName)
}

func (q *Queue) leases() *lease.Store {
	return &lease.Store{Table: q.Table, Now: q.Now, NewID: q.NewID}
}

// subjectRow is the row of a subject that has nothing but events. Version is the number of
// the last.
type subjectRow struct {
	table.Head
	Version int64 `dynamo:"version"`
}

// queueSubject is the subject of the events of the queue or the storage.
func queueSubject(t ingest.Target) event.Subject {
	if t.Kind == ingest.TargetStorage {
		return event.Subject{Type: event.Queue, ID: "storage"}
	}
	return event.Subject{Type: event.Queue, ID: "ingest"}
}

// recordHold puts the event of a hold of a collection, or of a pause, into tx.
func (q *Queue) recordHold(ctx context.Context, tx *table.Tx, a ingest.Action) error {
	e := q.holdEvent(a)
	if a.Target.Kind == ingest.TargetCollection {
		return collection.Store{Table: q.Table, NewID: q.NewID}.Record(ctx, tx, a.Target.ID, e)
	}
	s := queueSubject(a.Target)
	row := &subjectRow{Head: head(s.Key())}
	if err := q.Table.Get(ctx, row.Key(), row); err != nil && !fault.Is(err, fault.NotFound) {
		return err
	}
	row.Version++
	put(tx, row, row.Rev)
	return event.Append(tx, s, row.Version, e)
}

// offerRelease is the bulk operation that releases what a hold has stopped, nil if nothing
// is held.
func (q *Queue) offerRelease(ctx context.Context, t ingest.Target) (*ingest.Bulk, error) {
	if t.Kind != ingest.TargetCollection {
		return nil, nil
	}
	var page []candidate
	next, err := q.Table.Page(ctx, table.Query{Index: "work", PK: ingest.WorkHeld, Limit: countedMost}, &page)
	for _, w := range page {
		if w.Collection == t.ID {
			next = "found"
		}
	}
	if err != nil || next == "" { // there may be others behind a full page
		return nil, err
	}
	return &ingest.Bulk{Name: ingest.ActRelease,
		Filter: ingest.Filter{Collection: t.ID, State: ingest.Held}}, nil
}
