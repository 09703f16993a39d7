package queue

import (
	"context"
	"fmt"

	"archivist/pkg/ingest"
)

// decideRequeue puts a failed job back to the state after its last successful one. It is
// refused if that cannot help. A job that a later submission has overtaken needs
// confirmation that it may replace the object's newest version. A refusal is a Conflict, or a Held
// while its work files are being removed.
func decideRequeue(ctx context.Context, q *Queue, row *Job,
	a ingest.Action) (d decision, err error) {
	if d.next, err = q.Rules.Requeue(row.Job, q.Now()); err != nil {
		return d, err
	}

	notDeleted, err := q.mayReopen(ctx, row.Batch)
	if err != nil {
		return d, err
	}

	d.also = append(d.also, notDeleted)
	permitted, overtaken, err := q.overtaken(ctx, &row.Job)
	if err != nil {
		return d, err
	}

	d.next.Permitted, d.unconfirmed = permitted, overtaken
	d.by = origin{
		event:     "job.requeued",
		actor:     a.Actor,
		component: "admin",
		reason:    permits(a, row, &d.next),
	}

	d.summary = fmt.Sprintf("job %s continues at %s", row.Job.ID, d.next.State)
	// For the summary only: the gate asks again when it is the job's turn.
	active, err := q.active(ctx)
	if err != nil {
		return d, err
	}
	if h := active.stops(&d.next); h != nil {
		d.summary += fmt.Sprintf(", once it is allowed: %s; %s it first", h.Description(), endOf(h))
	}

	// It waits at gate 1 or 2 like a job that has never failed.
	if !d.next.Parked {
		return d, nil
	}
	lock, owner, err := q.blockedBy(ctx, &d.next)
	if lock != "" {
		d.next = q.Rules.Park(d.next, lock, owner, q.Now())
		d.summary += fmt.Sprintf(", once job %s has ended: it works on the same object and comes first", owner)
	}
	return d, err
}
