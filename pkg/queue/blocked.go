package queue

import (
	"context"
	"errors"
	"fmt"

	"github.com/aws/smithy-go"

	"archivist/pkg/fault"
	"archivist/pkg/ingest"
)

// Denied reports whether an error says that a permission is missing.
func Denied(err error) bool {
	var api smithy.APIError
	return errors.As(err, &api) && denied[api.ErrorCode()]
}

// lasts reports whether an error is AWS's refusal of a call, which the next try is
// likely to meet again.
func lasts(err error) bool {
	var api smithy.APIError
	return errors.As(err, &api) && !throttled[api.ErrorCode()] && api.ErrorFault() != smithy.FaultServer
}

// mostBlocked bounds what a row says of a refused call, in bytes.
const mostBlocked = 600

// block notes on the row of a job, or else of a batch, which call was refused that
// its execution exec needs, so that explain can say it. If that fails, only the
// explanation is lost: the sweep sends again what is owed.
func (q *Queue) block(ctx context.Context, job, batch string, exec int64, what string, cause error) {
	if !lasts(cause) {
		return
	}
	q.Metric(Stuck, 1)
	says := ingest.Cut(what+": "+causeOf(cause), mostBlocked)
	note := func() error { return q.blockJob(ctx, job, exec, says) }
	if batch != "" {
		note = func() error { return q.blockBatch(ctx, batch, exec, says) }
	}
	if err := note(); err != nil && !fault.Is(err, fault.Stale) {
		q.Log.Warn("a refused call could not be noted", "job", job, "batch", batch, "error", err)
	}
}

func (q *Queue) blockJob(ctx context.Context, id string, exec int64, says string) error {
	row, err := q.Job(ctx, id)
	if err != nil || row.Exec != exec || !row.Running() || row.Live(q.Now()) || row.Blocked == says {
		return err
	}
	next := *row
	next.Blocked = says
	tx := q.Table.Begin(q.NewID())
	q.writeJob(tx, row, next)
	return tx.Commit(ctx)
}

func (q *Queue) blockBatch(ctx context.Context, id string, exec int64, says string) error {
	row, err := q.Batch(ctx, id)
	if err != nil || row.Exec != exec || row.Live(q.Now()) || row.Blocked == says {
		return err
	}
	if _, working := ingest.StageOfBatch(row.State); !working {
		return nil
	}
	next := *row
	next.Blocked = says
	tx := q.Table.Begin(q.NewID())
	q.writeBatch(tx, row, next)
	return tx.Commit(ctx)
}

// blocker is what is known, when an item is repaired, of why its old execution did
// not bring it to a worker: the call that the state machine could not make, or what
// was noted before. Nothing is decided from it.
func (q *Queue) blocker(ctx context.Context, machine, old string, w ingest.Work) string {
	if w.Tries > 0 {
		return "" // a worker had it
	}
	problem, err := q.Executions.Problem(ctx, machine, old)
	switch {
	case err != nil:
		q.Log.Warn("it is not known what the execution met", "execution", old, "error", err)
	case problem != "":
		return ingest.Cut(fmt.Sprintf("the state machine %s %s", machine, problem), mostBlocked)
	}
	return w.Blocked
}

// noProgress is the reason of a repair.
func noProgress(w ingest.Work) string {
	if w.Blocked == "" {
		return "no progress by its due time"
	}
	return "no progress by its due time: " + w.Blocked
}

// blockedWhy is what explain says of an item whose execution cannot do its work.
func blockedWhy(w ingest.Work) string {
	return fmt.Sprintf("AWS refuses what it needs: %s. Correct that; the item then goes on by itself, at the latest after %s",
		w.Blocked, ingest.Timestamp(w.Due))
}
