package queue

import (
	"context"
	"fmt"

	"archivist/pkg/fault"
	"archivist/pkg/ingest"
	"archivist/pkg/inventory"
)

// Requeue puts a failed job back to the state after its last successful one. It is refused
// with the reason if that cannot help. A repeated request is refused too, because the job
// is no longer Failed: nothing happens twice. A job that a later submission has overtaken
// needs RequeueConfirmed.
func (q *Queue) Requeue(ctx context.Context, id, reason, actor string) (*Job, error) {
	return q.requeue(ctx, id, reason, actor, false)
}

// RequeueConfirmed is Requeue for a job that was overtaken: a person has confirmed that it
// may replace the object's newest version.
func (q *Queue) RequeueConfirmed(ctx context.Context, id, reason, actor string) (*Job, error) {
	return q.requeue(ctx, id, reason, actor, true)
}

func (q *Queue) requeue(ctx context.Context, id, reason, actor string, confirmed bool) (*Job, error) {
	for range actTries {
		row, err := q.Job(ctx, id)
		if err != nil {
			return nil, err
		}
		next, err := q.requeued(ctx, &row.Job, confirmed)
		if err != nil {
			return nil, err
		}
		by := origin{event: "job.requeued", actor: actor, component: "admin", reason: reason}
		if next.Permitted > row.Permitted {
			by.reason = fmt.Sprintf("%s (confirmed: may replace version %d)", reason, next.Permitted)
		}
		err = q.changeJob(ctx, row, next, by)
		if err == nil {
			return row, nil
		}
		if !fault.Is(err, fault.Stale) {
			return nil, fmt.Errorf("queue: requeue job %s: %w", id, err)
		}
	}
	return nil, busy(id)
}

// requeued is a failed job after its requeue: at its state, or parked for a lock.
func (q *Queue) requeued(ctx context.Context, j *ingest.Job, confirmed bool) (ingest.Job, error) {
	next, err := q.Rules.Requeue(*j, q.Now())
	if err != nil {
		return next, err
	}
	if next.Permitted, err = q.overtaken(ctx, j, confirmed); err != nil || len(next.Locks) == 0 {
		return next, err
	}
	lock, owner, err := q.blockedBy(ctx, &next)
	if lock != "" {
		next = q.Rules.Park(next, lock, owner, q.Now())
	}
	return next, err
}

// overtaken checks whether the object of a job to be requeued has a version by a later
// submission. If so and if it is confirmed, it returns the object's newest version, which
// the job may then replace. Without confirmation it returns a Conflict that names it.
func (q *Queue) overtaken(ctx context.Context, j *ingest.Job, confirmed bool) (permitted int, err error) {
	if j.ObjectVersion > 0 {
		return j.Permitted, nil // its own version is stored: it has only to finish
	}
	ark, err := q.arkOf(ctx, j)
	if err != nil || ark == "" {
		return j.Permitted, err
	}
	head, later, err := q.laterVersion(ctx, ark, j)
	switch {
	case err != nil:
		return 0, err
	case later.Number == 0:
		return j.Permitted, nil
	case confirmed:
		return head, nil
	}
	return 0, fault.New(fault.Conflict, "%s. Requeue it with confirm if that is wanted",
		ingest.Overtaken(j.ID, ark, head, later.Number, later.Job))
}

// arkOf returns the ARK of a job's object if it is known, "" if the object is new.
func (q *Queue) arkOf(ctx context.Context, j *ingest.Job) (ark string, err error) {
	objects := inventory.Store{Table: q.Table}
	ark = j.Primary
	for i := 0; i < len(j.LocalIDs) && ark == "" && err == nil; i++ {
		ark, err = objects.ByLocalID(ctx, j.Collection, j.LocalIDs[i])
	}
	return ark, err
}

// laterVersion finds the newest version of an object, and the last one that the job may not
// replace because its submission is later than the job's. It finds no later version if the
// job itself has stored one.
func (q *Queue) laterVersion(ctx context.Context, ark string, j *ingest.Job) (
	head int, later inventory.Version, err error) {
	objects := inventory.Store{Table: q.Table}
	for cursor, more := "", true; more; more = cursor != "" {
		var versions []inventory.Version
		versions, cursor, err = objects.Versions(ctx, ark, cursor)
		if err != nil {
			return 0, later, err
		}
		for _, v := range versions {
			head = v.Number
			if v.Job == j.ID {
				return head, inventory.Version{}, nil
			}
			if v.Number > j.Permitted && ingest.SubmittedAfter(v.Job, j.ID) {
				later = v
			}
		}
	}
	return head, later, nil
}

// actTries is how often an action is tried on a job that others change meanwhile.
const actTries = 10

// busy is the error of an action whose job was changed by others at each try.
func busy(job string) error {
	return fault.New(fault.Unavailable, "job %s keeps changing; try again in a moment", job)
}
