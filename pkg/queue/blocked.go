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

// isRefusal reports whether an error is AWS's refusal of a call, which the next try is
// likely to meet again.
func isRefusal(err error) bool {
	var api smithy.APIError
	return errors.As(err, &api) && !throttled[api.ErrorCode()] && api.ErrorFault() != smithy.FaultServer
}

// maxBlocked bounds what a row says of a refused call, in bytes.
const maxBlocked = 600

// block notes on the row of a job, or else of a batch, which call was refused that
// its execution exec needs, so that explain can say it. If that fails, only the
// explanation is lost: the sweep sends again what is owed.
func (q *Queue) block(ctx context.Context, job, batch string, exec int64, what string, cause error) {
	if !isRefusal(cause) {
		return
	}
	q.Metric(Stuck, 1)
	err := q.noteBlocked(ctx, job, batch, exec, ingest.Cut(what+": "+causeOf(cause), maxBlocked))
	if err != nil && !fault.Is(err, fault.Stale) {
		q.Log.Warn("a refused call could not be noted", "job", job, "batch", batch, "error", err)
	}
}

// noteBlocked leaves a row alone that went on meanwhile, or that a worker has: it would
// lose its lease to a note.
func (q *Queue) noteBlocked(ctx context.Context, job, batch string, exec int64, text string) error {
	it, err := q.item(ctx, job, batch)
	if err != nil {
		return err
	}
	row := it.common()
	if _, working := it.stage(); !working || row.Exec != exec || row.Live(q.Now()) || row.Blocked == text {
		return nil
	}
	return q.rewrite(ctx, it, func(row common) { row.Blocked = text })
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
