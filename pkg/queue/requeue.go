package queue

import (
	"context"
	"fmt"

	"archivist/pkg/fault"
	"archivist/pkg/ingest"
	"archivist/pkg/inventory"
)

// Requeue puts a failed job back at the state after its last successful one.
// It is refused with the reason where that cannot help. Said again, it finds
// the job no longer Failed and is refused too: nothing happens twice. A job that a
// later submission has overtaken needs RequeueConfirmed.
func (q *Queue) Requeue(ctx context.Context, id, reason, actor string) (*Job, error) {
	return q.requeue(ctx, id, reason, actor, false)
}

// RequeueConfirmed is Requeue for a job that was overtaken: a person has seen which
// version it will replace as the object's newest, and wants that.
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

// requeued is a failed job as it goes on: at its state, or parked for a lock.
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

// overtaken looks whether the object of a job that is to be requeued has a version
// by a later submission. It returns the newest version that the job may then replace:
// the one of the object, if that was confirmed, else a Conflict that names it.
func (q *Queue) overtaken(ctx context.Context, j *ingest.Job, confirmed bool) (permitted int, err error) {
	if j.ObjectVersion > 0 {
		return j.Permitted, nil // its own version is stored: it only finishes
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

// arkOf is the ark of a job's object as far as it is known, "" if the object is new.
func (q *Queue) arkOf(ctx context.Context, j *ingest.Job) (ark string, err error) {
	objects := inventory.Store{Table: q.Table}
	ark = j.Primary
	for i := 0; i < len(j.LocalIDs) && ark == "" && err == nil; i++ {
		ark, err = objects.ByLocalID(ctx, j.Collection, j.LocalIDs[i])
	}
	return ark, err
}

// laterVersion finds the newest version of an object, and the last one by a submission
// later than the job's that it may not replace. There is none if the job has stored a
// version itself.
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

// actTries is how often an action on a job is tried that others change meanwhile.
const actTries = 10

// busy says that an action lost against others each time.
func busy(job string) error {
	return fault.New(fault.Unavailable, "job %s keeps changing; try again in a moment", job)
}
