package queue

import (
	"archivist/pkg/event"
	"archivist/pkg/ingest"
	"archivist/pkg/table"
	"context"
	"fmt"
)

// Change is the detail of a job's or batch's event.
type Change struct {
	From   string `json:"from,omitempty"`
	To     string `json:"to"`
	Exec   int64  `json:"exec"`
	Reason string `json:"reason,omitempty"`
	Parked bool   `json:"parked,omitempty"`
}

// why is who caused a change, and for what.
type why struct {
	event, actor, component, reason string
}

// putJob writes a job's row as it shall be, with its event, and whatever must
// agree: the slot, space and lock rows, and the batch's counts. A job that is
// new is counted by the chunk that makes it. The job's lease ends with the change.
func (q *Queue) putJob(tx *table.Tx, row *Job, is ingest.Job, gone goneRows, w why) error {
	prev := row.Job
	if prev.State != is.State {
		if err := ingest.CheckJob(prev.State, is.State); err != nil {
			return err
		}
	}
	next := *row
	next.Job = is
	next.Version++
	next.Release()
	q.writeJob(tx, row, next)
	e := event.New{Type: w.event, Time: q.Now().UnixMilli(), Actor: w.actor, Component: w.component,
		Detail: Change{From: string(prev.State), To: string(is.State), Exec: is.Exec, Reason: w.reason, Parked: is.Parked}}
	if is.State == ingest.Failed {
		e.Outcome = event.Failure
		if prev.State != is.State {
			tx.OnCommit(func() { q.Metric(FailedJobs, 1) })
		}
	}
	if err := event.Append(tx, jobSubject(is.ID), next.Version, e); err != nil {
		return err
	}
	if add := ingest.Moved(prev.State, is.State); prev.State != "" && len(add) > 0 {
		tx.Count(countKey(is.Batch), add)
	}
	reserve(tx, prev, is, gone)
	return nil
}

// writeJob puts a job's row into the transaction as next is, at its place in the
// indexes, on the condition that nobody wrote it since row was read. row becomes
// next once the commit has succeeded.
func (q *Queue) writeJob(tx *table.Tx, row *Job, next Job) {
	next.Head.WorkPK, next.Head.WorkSK = next.Job.WorkKey()
	next.Head.ListPK, next.Head.ListSK = "jobs#"+next.Collection, fmt.Sprintf("%013d#%s", next.Created, next.Job.ID)
	if next.Rev == 0 {
		tx.Insert(&next)
	} else {
		tx.Save(&next)
	}
	tx.OnCommit(func() { *row = next })
}

// putBatch writes a batch's row as it shall be, with its event if w names one.
// The batch's lease ends with an event, and stays without.
func (q *Queue) putBatch(tx *table.Tx, row *Batch, is ingest.Batch, w why) error {
	prev := row.Batch
	if prev.State != is.State {
		if err := ingest.CheckBatch(prev.State, is.State); err != nil {
			return err
		}
	}
	next := *row
	next.Batch = is
	if w.event != "" {
		next.Version++
		next.Release()
	}
	q.writeBatch(tx, row, next)
	q.owe(tx, prev, is)
	if w.event == "" {
		return nil
	}
	e := event.New{Type: w.event, Time: q.Now().UnixMilli(), Actor: w.actor, Component: w.component,
		Detail: Change{From: string(prev.State), To: string(is.State), Exec: is.Exec, Reason: w.reason}}
	if is.State == ingest.BatchFailed {
		e.Outcome = event.Failure
	}
	return event.Append(tx, batchSubject(is.ID), next.Version, e)
}

// writeBatch is writeJob for a batch.
func (q *Queue) writeBatch(tx *table.Tx, row *Batch, next Batch) {
	next.Head.WorkPK, next.Head.WorkSK = next.Batch.WorkKey()
	next.Head.ListPK, next.Head.ListSK = "batches#"+next.Collection, fmt.Sprintf("%013d#%s", next.Created, next.Batch.ID)
	if next.Rev == 0 {
		tx.Insert(&next)
	} else {
		tx.Save(&next)
	}
	tx.OnCommit(func() { *row = next })
}

// changeJob commits one change of a job and sends the wake-ups that it is owed.
// more adds what else must be in the transaction. Where a row that the job owns is
// not there any more, because somebody removed it by hand, the change is made
// without it: else the job could never end.
func (q *Queue) changeJob(ctx context.Context, row *Job, next ingest.Job, w why, more ...func(*table.Tx) error) error {
	prev := row.Job
	owed := func() []ingest.Wake { return ingest.Wakes(prev, next) }
	var gone goneRows
	put := func(tx *table.Tx) error { return q.putJob(tx, row, next, gone, w) }
	parts := append([]func(*table.Tx) error{put}, more...)
	err := q.commit(ctx, parts, owed)
	if gone = q.goneRows(ctx, err, &prev); len(gone) == 0 {
		return err
	}
	q.Log.Error("rows of a job were not there; it is changed without them", "job", prev.ID, "rows", fmt.Sprint(gone))
	q.Metric(MissingRows, float64(len(gone)))
	return q.commit(ctx, parts, owed)
}

// changeBatch is changeJob for a batch.
func (q *Queue) changeBatch(ctx context.Context, row *Batch, next ingest.Batch, w why, more ...func(*table.Tx) error) error {
	prev := row.Batch
	put := func(tx *table.Tx) error { return q.putBatch(tx, row, next, w) }
	return q.commit(ctx, append([]func(*table.Tx) error{put}, more...), func() []ingest.Wake { return ingest.BatchWakes(prev, next) })
}

func (q *Queue) commit(ctx context.Context, parts []func(*table.Tx) error, owed func() []ingest.Wake) error {
	tx := q.Table.Begin(q.NewID())
	for _, add := range parts {
		if err := add(tx); err != nil {
			return err
		}
	}
	if err := tx.Commit(ctx); err != nil {
		return err
	}
	q.wake(ctx, owed())
	return nil
}
