package queue

import (
	"context"
	"fmt"
	"maps"

	"archivist/pkg/events/event"
	"archivist/pkg/ingest"
	"archivist/pkg/kernel/table"
)

// Change is the detail of a job's or batch's event.
type Change struct {
	From   string `json:"from,omitempty"`
	To     string `json:"to"`
	Exec   int64  `json:"exec"`
	Reason string `json:"reason,omitempty"`
	Parked bool   `json:"parked,omitempty"`

	// Request is the id of the bulk operation, or of the request, that caused the change.
	Request string `json:"request,omitempty"`
}

// origin states who or what caused a change, and why.
type origin struct {
	event, actor, component, reason string
	request                         string // see Change.Request
}

// putJob puts a job's change to next into tx: its row, its event, and all that must agree
// with it, which are the slot, space and lock rows, and the batch's counts. A new job is
// counted by the chunk that makes it. The job's lease ends with the change.
func (q *Queue) putJob(tx *table.Tx, row *Job, next ingest.Job, missing missingRows,
	by origin) error {
	prev := row.Job
	if prev.State != next.State {
		if err := ingest.CheckJob(prev.State, next.State); err != nil {
			return err
		}
	}

	changed := *row
	changed.Job = next
	changed.Version++
	q.release(changed.common(), by, prev.State == next.State)
	q.writeJob(tx, row, changed)

	e := event.New{
		Type:      by.event,
		Time:      q.Now().UnixMilli(),
		Actor:     by.actor,
		Component: by.component,
		Detail: Change{
			From:    string(prev.State),
			To:      string(next.State),
			Exec:    next.Exec,
			Reason:  ingest.Cut(by.reason, mostText),
			Parked:  next.Parked,
			Request: by.request,
		},
		Objects:     stored(prev, next),
		Parents:     jobParents(next),
		Identifiers: jobIdentifiers(next),
		Before:      propertiesOfJob(prev),
		After:       propertiesOfJob(next),
	}

	if next.State == ingest.Failed {
		e.Outcome = event.Failure
		if prev.State != next.State {
			tx.OnCommit(func() { q.Metric(FailedJobs, 1) })
		}
	}

	if err := event.Append(tx, jobSubject(next.ID), changed.Version, e); err != nil {
		return err
	}

	// The counts are a row of their own, which is only added to: changes of other jobs of the batch
	// do not make this one a Stale.
	if add := moved(prev, next); prev.State != "" && len(add) > 0 {
		tx.Count(countKey(next.Batch), add)
	}

	reserve(tx, prev, next, missing)
	return nil
}

// moved is what a change of a job adds to the counts of its batch.
func moved(prev, next ingest.Job) map[string]int64 {
	add := ingest.Moved(prev.State, next.State)
	for name, n := range next.Amounts() {
		add[name] += n
	}
	for name, n := range prev.Amounts() {
		add[name] -= n
	}
	maps.DeleteFunc(add, func(_ string, n int64) bool { return n == 0 })
	if prev.Stopped == next.Stopped {
		return add
	}

	add["n_stopped"] = -1
	if next.Stopped {
		add["n_stopped"] = 1
	}
	return add
}

// release ends the lease of the worker that has an item, by a change of the item. If a person interrupts its try, which
// is repeated in the same state, the try does not count.
func (q *Queue) release(row common, by origin, same bool) {
	if same && by.component == "admin" && row.Live(q.Now()) {
		row.Interrupted()
	}
	row.Release()
}

// writeJob puts a job's row into the transaction with the content of next, at its place in
// the indexes, on the condition that it was not written since row was read, and the rows that list it. row becomes
// next after the commit has succeeded.
func (q *Queue) writeJob(tx *table.Tx, row *Job, next Job) {
	next.Place()
	put(tx, &next, next.Rev)
	var was []table.Row
	if row.Rev > 0 {
		was = Listed(&row.Job)
	}
	tx.Follow(next.Job.ID, was, Listed(&next.Job))
	tx.OnCommit(func() { *row = next })
}

// Place puts the row at its places in the indexes.
func (row *Job) Place() {
	row.Head.WorkPK, row.Head.WorkSK = row.Job.WorkKey()
	row.Head.ListPK, row.Head.ListSK = "jobs#"+row.Collection, placeOf(row.Created, row.Job.ID)
}

// Place puts the row at its places in the indexes.
func (row *Batch) Place() {
	row.Head.WorkPK, row.Head.WorkSK = row.Batch.WorkKey()
	row.Head.ListPK, row.Head.ListSK = "batches#"+row.Collection, placeOf(row.Created, row.Batch.ID)
}

// putBatch puts a batch's change to next into tx, with an event if by names one. The lease
// ends if there is an event, and is kept if there is none.
func (q *Queue) putBatch(tx *table.Tx, row *Batch, next ingest.Batch, missing missingRows, by origin) error {
	prev := row.Batch
	if prev.State != next.State {
		if err := ingest.CheckBatch(prev.State, next.State); err != nil {
			return err
		}
	}

	changed := *row
	changed.Batch = next
	// Without an event the change is one of the worker itself, e.g. a checkpoint: it keeps its
	// lease.
	if by.event != "" {
		changed.Version++
		q.release(changed.common(), by, prev.State == next.State)
	}

	q.writeBatch(tx, row, changed)
	if next.Unpacked == 0 || next.AsManifest { // else its job has the places in line, see Unpack
		reserve(tx, prev.First(), next.First(), missing)
	}
	q.addMails(tx, prev, next)
	if by.event == "" {
		return nil
	}

	e := event.New{
		Type:      by.event,
		Time:      q.Now().UnixMilli(),
		Actor:     by.actor,
		Component: by.component,
		Detail: Change{
			From:    string(prev.State),
			To:      string(next.State),
			Exec:    next.Exec,
			Reason:  ingest.Cut(by.reason, mostText),
			Request: by.request,
		},
		Parents:     batchParents(next),
		Identifiers: identifiers(next.Primary, next.LocalIDs),
		Before:      propertiesOfBatch(prev),
		After:       propertiesOfBatch(next),
	}

	if next.State == ingest.BatchFailed {
		e.Outcome = event.Failure
	}
	return event.Append(tx, batchSubject(next.ID), changed.Version, e)
}

// writeBatch is writeJob for a batch.
func (q *Queue) writeBatch(tx *table.Tx, row *Batch, next Batch) {
	next.Place()
	put(tx, &next, next.Rev)
	var was []table.Row
	if row.Rev > 0 {
		was = listedBatch(&row.Batch)
	}
	tx.Follow(next.Batch.ID, was, listedBatch(&next.Batch))
	tx.OnCommit(func() { *row = next })
}

// changeJob commits one change of a job and sends the wake-ups that are due. more adds what
// else must be in the transaction. If a row that the job owns is missing because a person
// removed it, the change is made without it: otherwise the job could never end.
func (q *Queue) changeJob(ctx context.Context, row *Job, next ingest.Job, by origin,
	more ...func(*table.Tx) error) error {
	prev := row.Job
	wakes := func() []ingest.Wake { return ingest.Wakes(prev, next) }
	change := func(tx *table.Tx, missing missingRows) error { return q.putJob(tx, row, next, missing, by) }
	return q.change(ctx, &prev, change, more, wakes)
}

// changeBatch is changeJob for a batch.
func (q *Queue) changeBatch(ctx context.Context, row *Batch, next ingest.Batch, by origin,
	more ...func(*table.Tx) error) error {
	prev := row.Batch
	owner := prev.First()
	wakes := func() []ingest.Wake { return ingest.BatchWakes(prev, next) }
	change := func(tx *table.Tx, missing missingRows) error { return q.putBatch(tx, row, next, missing, by) }
	return q.change(ctx, &owner, change, more, wakes)
}

// change commits a change and what else is in its transaction; owner is the job that owns the
// rows that the change gives back. A Stale means that the item, or what its change depends on, was
// changed since it was read.
func (q *Queue) change(ctx context.Context, owner *ingest.Job, put func(*table.Tx, missingRows) error,
	more []func(*table.Tx) error, wakes func() []ingest.Wake) error {
	var missing missingRows
	parts := append([]func(*table.Tx) error{func(tx *table.Tx) error { return put(tx, missing) }}, more...)
	err := q.commit(ctx, parts, wakes)
	missing = q.missingRows(ctx, err, owner)
	if len(missing) == 0 {
		return err
	}

	q.Log.Error("rows that a job owns are missing; it is changed without them", "job", owner.ID,
		"rows",
		fmt.Sprint(missing))

	q.Metric(MissingRows, float64(len(missing)))
	return q.commit(ctx, parts, wakes)
}

// commit makes a new transaction of its parts, commits it, and then sends the wake-ups.
func (q *Queue) commit(ctx context.Context, parts []func(*table.Tx) error,
	wakes func() []ingest.Wake) error {
	tx := q.Table.Begin(q.NewID())
	for _, add := range parts {
		if err := add(tx); err != nil {
			return err
		}
	}

	if err := tx.Commit(ctx); err != nil {
		return err
	}

	// Only after the commit: an execution that starts before would find the former state.
	q.wake(ctx, wakes())
	return nil
}
