package queue

import (
	"context"
	"fmt"

	"archivist/pkg/ingest"
)

// decideFail fails a job that has started.
func decideFail(ctx context.Context, q *Queue, row *Job, a ingest.Action) (d decision, err error) {
	if row.State == ingest.Failed {
		d.next, d.unchanged, d.summary = row.Job, true,
			fmt.Sprintf("job %s is already Failed", row.Job.ID)
		return d, nil
	}

	if !row.Allows(ingest.ActFail) {
		return d, cannot(a, string(row.State), "a state from Estimating to Notify",
			row.State.Becomes(),
			"A job that has not started can be held, and then deleted")
	}
	d, err = q.stopJob(ctx, row, a,
		ingest.Decision{Reason: a.Reason, Actor: a.Actor}.String("stopped"))
	d.next.Stopped = true
	return d, err
}

// stopJob fails a job that has started. Its worker, if there is one, can no longer write,
// because the rev has changed. At Storing it checks the storage first, so that the message
// does not deny a committed version.
func (q *Queue) stopJob(ctx context.Context, row *Job, a ingest.Action,
	message string) (d decision, err error) {
	job := row.Job
	if job.State == ingest.Storing && q.Stored != nil {
		if err := q.Stored(ctx, &job); err != nil {
			return d, err
		}
	}

	// Of a stored version, Failed adds that to the message by itself.
	if job.ObjectVersion == 0 {
		message = sentence(message) + " Requeue the job to continue it"
	}

	d.next = q.Rules.Failed(job, message, true, q.Now())
	d.by = origin{event: "job.state", actor: a.Actor, component: "admin", reason: a.Reason}
	d.summary = fmt.Sprintf("job %s fails at %s; a requeue continues it", job.ID, job.State)
	if row.Running() {
		old := ExecutionName(job.ID, row.Exec)
		// It only saves the execution's time: its answers are superseded anyway.
		d.then = func(ctx context.Context) {
			q.stop(ctx, MachineJob, old,
				ingest.Cut(message, 200))
		}
	}
	return d, nil
}

// stop stops an execution that no longer drives its item.
func (q *Queue) stop(ctx context.Context, machine, name, why string) {
	if err := q.Executions.Stop(ctx, machine, name, why); err != nil {
		q.Log.Warn("the execution was not stopped; its answers are superseded", "execution", name,
			"error", err)
	}
}
