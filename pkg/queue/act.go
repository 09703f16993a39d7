package queue

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"archivist/pkg/event"
	"archivist/pkg/fault"
	"archivist/pkg/ingest"
	"archivist/pkg/table"
)

// Requeue puts a failed job back at the state after its last successful one.
// It is refused with the reason where that cannot help. Said again, it finds
// the job no longer Failed and is refused too: nothing happens twice. A job that a
// later submission has overtaken needs RequeueConfirmed.
func (q *Queue) Requeue(ctx context.Context, id, reason, actor string) (*Job, error) {
	return q.requeue(ctx, id, reason, actor, false)
}

func (q *Queue) requeue(ctx context.Context, id, reason, actor string, confirmed bool) (*Job, error) {
	for range actTries {
		row, err := q.Job(ctx, id)
		if err != nil {
			return nil, err
		}
		is, err := q.Rules.Requeue(row.Job, q.Now())
		if err != nil {
			return nil, err
		}
		if is.Permitted, err = q.overtaken(ctx, &row.Job, confirmed); err != nil {
			return nil, err
		}
		if len(is.Locks) > 0 {
			lock, owner, err := q.blockedBy(ctx, &is)
			if err != nil {
				return nil, err
			}
			if lock != "" {
				is = q.Rules.Park(is, lock, owner, q.Now())
			}
		}
		says := reason
		if is.Permitted > row.Permitted {
			says = fmt.Sprintf("%s (confirmed: it may replace version %d)", reason, is.Permitted)
		}
		err = q.changeJob(ctx, row, is, why{event: "job.requeued", actor: actor, component: "admin", reason: says})
		if err == nil {
			return row, nil
		}
		if !fault.Is(err, fault.Stale) {
			return nil, fmt.Errorf("queue: requeue job %s: %w", id, err)
		}
	}
	return nil, busy(id)
}

// actTries is how often an action on a job is tried that others change meanwhile.
const actTries = 10

func busy(job string) error {
	return fault.New(fault.Unavailable, "job %s is changed by others all the time; try again in a moment", job)
}

// JobEnded reports whether a job writes nothing any more: it has ended, or waits, and
// for so long that a worker which it was taken from has reached the time-out of its
// function. A job that is gone is over.
func (q *Queue) JobEnded(ctx context.Context, id string) (bool, error) {
	row, err := q.Job(ctx, id)
	if fault.Is(err, fault.NotFound) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	return !row.Running() && q.Ended(row.Entered), nil
}

// Ended reports whether every worker that was at work at a time must have ended.
func (q *Queue) Ended(at int64) bool {
	quiet := q.Rules.Timing.Times(ingest.Stage{Long: true}).Grace
	return q.Now().Sub(time.UnixMilli(at)) >= quiet
}

// Preserved notes on a failed job that its version is committed: its worker did so
// after the job was taken from it. A job that says so already, or goes on, is left
// as it is.
func (q *Queue) Preserved(ctx context.Context, id, ark string, version int) error {
	for range actTries {
		row, err := q.Job(ctx, id)
		if fault.Is(err, fault.NotFound) {
			return nil
		}
		if err != nil || row.State != ingest.Failed || row.ObjectVersion != 0 {
			return err
		}
		is := row.Job
		is.Primary = ark // it may have been minted after the moment to which the table was restored
		is = q.Rules.Preserved(is, version)
		err = q.changeJob(ctx, row, is, why{event: "job.preserved", component: "store", reason: is.Message})
		if !fault.Is(err, fault.Stale) {
			return err
		}
	}
	return busy(id)
}

// ForceFail fails a running or waiting job by an admin's word: its worker, if
// there is one, is fenced by the rev. At Storing the storage is asked first, so that
// a version that is committed is not denied.
func (q *Queue) ForceFail(ctx context.Context, id, reason, actor string) (*Job, error) {
	for range actTries {
		row, err := q.Job(ctx, id)
		if err != nil {
			return nil, err
		}
		if err := ingest.CheckJob(row.State, ingest.Failed); err != nil {
			return nil, fault.New(fault.Conflict, "job %s is %s; only a job from Estimating to Notify can be failed", id, row.State)
		}
		job := row.Job
		if job.State == ingest.Storing && q.Stored != nil {
			if err := q.Stored(ctx, &job); err != nil {
				return nil, err
			}
		}
		is := q.Rules.Failed(job, "failed by "+actor+": "+reason, true, q.Now())
		old, running := ExecutionName(id, row.Exec), row.Running()
		err = q.changeJob(ctx, row, is, why{event: "job.state", actor: actor, component: "admin", reason: reason})
		switch {
		case err == nil && running:
			if err := q.Executions.Stop(ctx, MachineJob, old, "failed by "+actor); err != nil {
				q.Log.Warn("the execution was not stopped; what it says is superseded", "execution", old, "error", err)
			}
			return row, nil
		case !fault.Is(err, fault.Stale):
			return row, err
		}
	}
	return nil, busy(id)
}

// Page is a page of rows with the cursor of the next.
type Page[T any] struct {
	Items  []T
	Cursor string
}

// readers bounds how many rows of a page are read at once.
const readers = 16

// Jobs lists a batch's jobs in the order of their rows, from the row after
// after, at most 100.
func (q *Queue) Jobs(ctx context.Context, batch string, after int) ([]Job, error) {
	b, err := q.Batch(ctx, batch)
	if err != nil {
		return nil, err
	}
	out := make([]Job, max(0, min(b.Unpacked-after, 100)))
	failed := make([]error, len(out))
	gate := make(chan struct{}, readers)
	var wg sync.WaitGroup
	for i := range out {
		gate <- struct{}{}
		wg.Go(func() {
			defer func() { <-gate }()
			j, err := q.Job(ctx, ingest.JobID(batch, after+1+i))
			if failed[i] = err; err == nil {
				out[i] = *j
			}
		})
	}
	wg.Wait()
	if i := slices.IndexFunc(failed, func(err error) bool { return fault.Is(err, fault.NotFound) }); i >= 0 {
		out, failed = out[:i], failed[:i] // the batch is being retired: its jobs go from the last to the first
	}
	return out, errors.Join(failed...)
}

// listed is the pointer that the index "list" gives.
type listed struct {
	table.Head
	ID string `dynamo:"id"`
}

// List pages through a collection's batches or jobs, newest first.
func (q *Queue) list(ctx context.Context, shelf, cursor string) ([]string, string, error) {
	var rows []listed
	next, err := q.Table.Page(ctx, table.Query{Index: "list", PK: shelf, Cursor: cursor, Desc: true, Limit: 50}, &rows)
	ids := make([]string, len(rows))
	for i, r := range rows {
		ids[i] = r.ID
	}
	return ids, next, err
}

// BatchesOf lists a collection's batches, newest first.
func (q *Queue) BatchesOf(ctx context.Context, collection, cursor string) (Page[Batch], error) {
	ids, next, err := q.list(ctx, "batches#"+collection, cursor)
	page := Page[Batch]{Cursor: next}
	for _, id := range ids {
		b, err := q.Batch(ctx, id)
		if fault.Is(err, fault.NotFound) {
			continue // the index lags: its rows were cleaned away
		}
		if err != nil {
			return page, err
		}
		page.Items = append(page.Items, *b)
	}
	return page, err
}

// JobsOf lists a collection's jobs, newest first.
func (q *Queue) JobsOf(ctx context.Context, collection, cursor string) (Page[Job], error) {
	ids, next, err := q.list(ctx, "jobs#"+collection, cursor)
	page := Page[Job]{Cursor: next}
	for _, id := range ids {
		j, err := q.Job(ctx, id)
		if fault.Is(err, fault.NotFound) {
			continue
		}
		if err != nil {
			return page, err
		}
		page.Items = append(page.Items, *j)
	}
	return page, err
}

// Events lists what happened to a job or batch, oldest first.
func (q *Queue) Events(ctx context.Context, subject event.Subject, cursor string) (Page[event.Row], error) {
	rows, next, err := event.Page(ctx, q.Table, subject, cursor)
	return Page[event.Row]{rows, next}, err
}
