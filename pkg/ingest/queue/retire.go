package queue

import (
	"context"
	"fmt"
	"time"

	"archivist/pkg/ingest"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/table"
)

// retireRows is the number of rows that one transaction removes: of jobs, and those under which they are listed. With
// the batch they are within DynamoDB's 100 rows.
const retireRows = 95

// retire removes the rows of a batch that a person has deleted, or of a Completed one whose
// retention has ended. The batch becomes Deleted, then its jobs' rows are removed from the
// last to the first, and at the end its own. Events stay. It continues where an earlier
// sweep stopped, and works for the time of one item.
func (q *Queue) retire(ctx context.Context, row *Batch) error {
	until := q.Now().Add(q.itemTime())
	if row.State == ingest.BatchCompleted {
		next := q.Rules.EnterBatch(row.Batch, ingest.BatchDeleted, q.Now())
		next.Due = q.Now().UnixMilli()
		if err := q.changeBatch(ctx, row, next, origin{
			event:     "batch.state",
			component: "sweep",
			reason:    "the retention period has ended; the event history is kept",
		}); err != nil {
			return err
		}
	}

	for row.Unpacked > 0 {
		if !q.Now().Before(until) {
			return nil // the next sweep continues
		}
		if ended, err := q.retireJobs(ctx, row, until); err != nil || !ended {
			return err
		}
	}

	if waits, err := q.awaitMails(ctx, row); waits || err != nil {
		return err
	}

	var counts Counts
	if err := q.Table.Get(ctx, countKey(row.Batch.ID), &counts); err != nil {
		return err
	}

	tx := q.Table.Begin(q.NewID())
	tx.Remove(row)
	tx.Remove(&counts)
	tx.Follow(row.Batch.ID, listedBatch(&row.Batch), nil)
	return tx.Commit(ctx)
}

// awaitMails keeps the row of a batch until the mails about it are sent or given up, which
// takes about a day at most. It reports whether there are such mails.
func (q *Queue) awaitMails(ctx context.Context, row *Batch) (waits bool, err error) {
	if q.Compose == nil {
		return false, nil
	}

	var mails []Mail
	query := table.Query{PK: mailPK(row.Batch.ID), Limit: 1}
	if _, err := q.Table.Page(ctx, query, &mails); err != nil || len(mails) == 0 {
		return false, err
	}

	next := row.Batch
	next.Due, next.Repairs = max(mails[0].Due, q.Now().UnixMilli())+time.Minute.Milliseconds(), 0
	return true, q.changeBatch(ctx, row, next, origin{})
}

// retireJobs removes the last of the remaining job rows, and records that on the batch. It
// removes none, and reports that, while one of these jobs still has work files. From the last to
// the first, so that the jobs that are left have the numbers from 1 on.
func (q *Queue) retireJobs(ctx context.Context, row *Batch,
	until time.Time) (ended bool, err error) {
	tx := q.Table.Begin(q.NewID())
	left := row.Unpacked
	var waits int64 // until the last work files can be removed
	for rows := 0; left > 0; left-- {
		if !q.Now().Before(until) {
			return false, nil // the next sweep continues
		}

		job, err := q.Job(ctx, ingest.JobID(row.Batch.ID, left))
		if fault.Is(err, fault.NotFound) {
			continue
		}

		if err != nil {
			return false, err
		}

		rows += 3 + len(Listed(&job.Job)) // its deletion may give it a message
		if rows > retireRows {
			break
		}

		if err := q.discard(ctx, row, job); err != nil {
			return false, err
		}

		if job.Uncleaned() {
			waits = max(waits, job.Due, q.Now().UnixMilli()+1)
		}

		tx.Remove(job)
		tx.Follow(job.Job.ID, Listed(&job.Job), nil)
	}

	next := row.Batch
	// Unpacked is what is left: a sweep that ends here is continued from there by the next one.
	next.Unpacked, next.Due, next.Repairs = left, q.Now().UnixMilli(), 0
	// No row goes before all work files of this chunk are removed: without it, nobody would free
	// the space.
	if waits > 0 {
		tx = q.Table.Begin(q.NewID())
		next.Unpacked, next.Due = row.Unpacked, waits
	}

	if err := q.putBatch(tx, row, next, nil, origin{}); err != nil {
		return false, err
	}
	return waits == 0, tx.Commit(ctx)
}

// discard deletes a failed job of a deleted batch, and removes its work files if that is
// due. What it stored is recorded first. An open job is an error: no batch becomes Deleted while it
// has one.
func (q *Queue) discard(ctx context.Context, batch *Batch, job *Job) error {
	now := q.Now()
	switch {
	case job.State.Open():
		return fmt.Errorf("queue: batch %s is Deleted, but its job %s is %s", batch.Batch.ID,
			job.Job.ID, job.State)
	case job.State == ingest.Failed && batch.Removal != nil:
		if err := q.checkStored(ctx, &job.Job); err != nil {
			return err
		}
		if err := q.recordStored(ctx, &job.Job, batch.Removal.Actor); err != nil {
			return err
		}
		next := q.Rules.Deleted(job.Job, batch.Removal.String("deleted with its batch"), now)
		by := origin{
			event:     "job.state",
			actor:     batch.Removal.Actor,
			component: "sweep",
			reason:    batch.Removal.Reason,
		}
		if err := q.changeJob(ctx, job, next, by); err != nil {
			return err
		}
	}

	if !job.Uncleaned() || job.Live(now) || now.UnixMilli() < job.Due {
		return nil
	}
	return q.clean(ctx, job, now, "work files removed: "+q.whyClean(job, now))
}
