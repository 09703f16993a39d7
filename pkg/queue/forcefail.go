package queue

import (
	"context"
	"fmt"

	"archivist/pkg/fault"
	"archivist/pkg/ingest"
)

// ForceFail fails a running or waiting job for an operator. Its worker, if there is one,
// can no longer write, because the rev has changed. At Storing it checks the storage first,
// so that the message does not deny a committed version.
func (q *Queue) ForceFail(ctx context.Context, id, reason, actor string) (*Job, error) {
	for range actTries {
		row, err := q.Job(ctx, id)
		if err != nil {
			return nil, err
		}
		if err := ingest.CheckJob(row.State, ingest.Failed); err != nil {
			return nil, fault.New(fault.Conflict, "job %s is %s; only a job from Estimating to Notify can be failed",
				id, row.State)
		}
		job := row.Job
		if job.State == ingest.Storing && q.Stored != nil {
			if err := q.Stored(ctx, &job); err != nil {
				return nil, err
			}
		}
		message := fmt.Sprintf("stopped by %s: %s", actor, reason)
		if job.ObjectVersion == 0 {
			message = sentence(message) + " Requeue the job to continue it"
		}
		next := q.Rules.Failed(job, message, true, q.Now())
		old, running := ExecutionName(id, row.Exec), row.Running()
		err = q.changeJob(ctx, row, next, origin{event: "job.state", actor: actor, component: "admin", reason: reason})
		switch {
		case err == nil && running:
			if err := q.Executions.Stop(ctx, MachineJob, old, "stopped by "+actor); err != nil {
				q.Log.Warn("the execution was not stopped; its answers are superseded", "execution", old, "error", err)
			}
			return row, nil
		case !fault.Is(err, fault.Stale):
			return row, err
		}
	}
	return nil, busy(id)
}
