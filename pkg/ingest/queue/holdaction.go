package queue

import (
	"context"
	"fmt"
	"slices"

	"archivist/pkg/events/event"
	"archivist/pkg/ingest"
	"archivist/pkg/ingest/collection"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/table"
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
func (d Admin) actOnHold(ctx context.Context, a ingest.Action,
	r *receipt) (ingest.ActionResult, error) {
	q := d.Queue
	if a.Target.Kind == ingest.TargetCollection {
		if err := collection.CheckName(a.Target.ID); err != nil {
			return ingest.ActionResult{}, fault.New(fault.Invalid, "target: %w", err)
		}
	}
	return d.attempt(ctx, a, r, func() (attempt, error) {
		row, err := q.holdRow(ctx, a.Target)
		if err != nil {
			return attempt{}, err
		}

		to := planHold(row.active(q.Now()), a)
		switch {
		case to.unchanged:
		case a.Name.Lifts():
			to.offers, err = q.offerRelease(ctx, a.Target)
		case a.Target.Kind == ingest.TargetCollection:
			to.warnings, err = q.warnOfName(ctx, a.Target.ID, to.warnings)
		}

		change := func(tx *table.Tx) error { return q.putHold(ctx, tx, row, a) }
		record := func(tx *table.Tx) error { return q.recordHold(ctx, tx, row, a, "admin") }
		wakes := func() []ingest.Wake { return []ingest.Wake{{Kind: ingest.LookGates}} }
		commit := func(remember part) error {
			return q.commit(ctx, []part{record, change, remember}, wakes)
		}
		return attempt{plan: to, commit: commit}, err
	})
}

// planHold decides what an action does, if row is the active hold of its target. The same hold
// again, with the same end, changes nothing, whatever its reason.
func planHold(row *Hold, a ingest.Action) plan {
	name, state := nameOf(a.Target), "on hold"
	if a.Target.ID == "" {
		state = "paused"
	}

	switch {
	case a.Name.Lifts() && row == nil:
		return plan{unchanged: true, summary: name + " is not " + state}
	case a.Name.Lifts():
		return plan{summary: name + " is no longer " + state}
	case row == nil:
		return plan{summary: fmt.Sprintf("%s is %s%s", name, state, until(a.Until))}
	case row.Until == a.Until:
		return plan{unchanged: true,
			summary: fmt.Sprintf("%s is already %s %s", name, state, row.Hold.Description())}
	}

	to := plan{summary: fmt.Sprintf("%s stays %s%s", name, state, until(a.Until))}
	// Jobs have the end of the hold as it was when it stopped them: see ingest.HeldBy.
	if earlier := row.Until == 0 || a.Until != 0 && a.Until < row.Until; earlier && row.ID != "" {
		to.warnings = []string{"what is already held does not continue at the new end: release it then"}
	}
	return to
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
	e := event.New{Type: types[0], Time: q.Now().UnixMilli(), Actor: a.Actor}
	if a.Name.Lifts() {
		e.Type = types[1]
	} else if a.Until != 0 {
		detail.Until = ingest.Timestamp(a.Until)
	}
	e.Detail = detail
	return e
}

// subjectRow is the row of a subject that has nothing but events. Version is the number of
// the last. It is saved with each event, on the condition of its revision, so that no two have one
// number.
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

// recordHold puts the event of a hold of a collection, or of a pause, into tx. row is the hold
// before the action.
func (q *Queue) recordHold(ctx context.Context, tx *table.Tx, row *Hold, a ingest.Action,
	component string) error {
	e := q.holdEvent(a)
	e.Component, e.Before = component, propertiesOfHold(row)
	if !a.Name.Lifts() {
		e.After = propertiesOfHold(row.changed(a, q.Now()))
	}

	if a.Target.Kind == ingest.TargetCollection {
		return collection.Store{Table: q.Table, NewID: q.NewID}.Record(ctx, tx, a.Target.ID, e)
	}

	s := queueSubject(a.Target)
	last := &subjectRow{Head: head(s.Key())}
	if err := q.Table.Get(ctx, last.Key(), last); err != nil && !fault.Is(err, fault.NotFound) {
		return err
	}

	last.Version++
	put(tx, last, last.Rev)
	return event.Append(tx, s, last.Version, e)
}

// offerRelease is the bulk operation that releases what a hold has stopped, nil if nothing
// is held. It is only offered: a person starts it.
func (q *Queue) offerRelease(ctx context.Context, t ingest.Target) (*ingest.Bulk, error) {
	bulk := &ingest.Bulk{Name: ingest.ActRelease, Filter: ingest.Filter{State: ingest.Held,
		KeepOwnHolds: true}}
	var any bool
	var err error
	switch t.Kind {
	case ingest.TargetCollection:
		bulk.Filter.Collection = t.ID
		any, err = q.anyHeld(ctx, t.ID)
	case ingest.TargetBatch:
		var counts ingest.Counts
		bulk.Filter.Batch = t.ID
		counts, err = q.Counts(ctx, t.ID)
		any = counts.Held > 0
	}

	if !any {
		return nil, err
	}
	return bulk, err
}

// anyHeld reports whether jobs or batches of a collection are held. It reads a limited
// number of them: if there are more, others may be of the collection.
func (q *Queue) anyHeld(ctx context.Context, collection string) (bool, error) {
	var page []candidate
	next, err := q.Table.Page(ctx, table.Query{
		Index: "work",
		PK:    ingest.WorkHeld,
		Limit: countedMost,
	}, &page)
	of := func(w candidate) bool { return w.Collection == collection }
	return next != "" || slices.ContainsFunc(page, of), err
}
