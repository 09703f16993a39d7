package queue

import (
	"context"
	"fmt"

	"archivist/pkg/aws/awserror"
	"archivist/pkg/ingest"
	"archivist/pkg/kernel/fault"
)

// maxBlocked limits the text about a refused call on a row, in bytes.
const maxBlocked = 600

// block records on the row of a job, or else of a batch, which call AWS refused that its
// execution exec needs, so that explain can show it. If that fails, only the explanation
// is lost: the sweep repairs the item. Throttling and errors of the service itself are not
// recorded: they pass.
func (q *Queue) block(ctx context.Context, job, batch string, exec int64, what string,
	cause error) {
	if !awserror.IsRefusal(cause) {
		return
	}
	q.Metric(Stuck, 1)
	err := q.recordBlocked(ctx, job, batch, exec, ingest.Cut(what+": "+CauseOf(cause), maxBlocked))
	if err != nil && !fault.Is(err, fault.Stale) {
		q.Log.Warn("a refused call could not be recorded", "job", job, "batch", batch, "error", err)
	}
}

// blockOperation is block for an operation.
func (q *Queue) blockOperation(ctx context.Context, id string, exec int64, what string,
	cause error) {
	if !awserror.IsRefusal(cause) {
		return
	}

	q.Metric(Stuck, 1)
	row, err := q.Operation(ctx, id)
	if err == nil && row.RunsAs(exec) {
		next := row.Operation
		next.Blocked = ingest.Cut(what+": "+CauseOf(cause), maxBlocked)
		err = q.changeOperation(ctx, row, next, origin{})
	}

	if err != nil && !fault.Is(err, fault.Stale) {
		q.Log.Warn("a refused call could not be recorded", "operation", id, "error", err)
	}
}

// recordBlocked does not write a row that has changed since, or that a worker has: the
// worker would lose its lease. So it never delays work.
func (q *Queue) recordBlocked(ctx context.Context, job, batch string, exec int64,
	text string) error {
	it, err := q.item(ctx, job, batch)
	if err != nil {
		return err
	}
	row := it.common()
	if _, working := it.stage(); !working || row.Exec != exec || row.Live(q.Now()) ||
		row.Blocked == text {
		return nil
	}
	return q.rewrite(ctx, it, func(row common) { row.Blocked = text })
}

// blocker returns why the old execution of a repaired item did not reach a worker, if that
// is known: the call that the state machine could not make, or what was recorded before.
// It is for people; nothing is decided from it. One call reads the execution's history.
func (q *Queue) blocker(ctx context.Context, machine, old string, w ingest.Work) string {
	if w.Tries > 0 {
		return "" // a worker had it
	}

	problem, err := q.Executions.Problem(ctx, machine, old)
	switch {
	case err != nil:
		q.Log.Warn("the history of an execution could not be read", "execution", old, "error", err)
	case problem != "":
		return ingest.Cut(fmt.Sprintf("the state machine %s %s", machine, problem), maxBlocked)
	}
	return w.Blocked
}

// noProgress is the reason of a repair.
func noProgress(w ingest.Work) string {
	if w.Blocked == "" {
		return "no progress before its deadline"
	}
	return "no progress before its deadline: " + w.Blocked
}
