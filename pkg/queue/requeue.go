package queue

import (
	"context"
	"fmt"

	"archivist/pkg/ingest"
	"archivist/pkg/inventory"
)

// decideRequeue puts a failed job back to the state after its last successful one. It is
// refused if that cannot help. A job that a later submission has overtaken needs
// confirmation that it may replace the object's newest version.
func decideRequeue(ctx context.Context, q *Queue, row *Job, a ingest.Action) (d decision, err error) {
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
	d.by = origin{event: "job.requeued", actor: a.Actor, component: "admin", reason: permits(a, row, &d.next)}
	d.summary = fmt.Sprintf("job %s continues at %s", row.Job.ID, d.next.State)
	if err := q.awaitPauses(ctx, &d); err != nil || len(d.next.Locks) == 0 {
		return d, err
	}

	lock, owner, err := q.blockedBy(ctx, &d.next)
	if lock != "" {
		d.next = q.Rules.Park(d.next, lock, owner, q.Now())
		d.summary += fmt.Sprintf(", once job %s has ended: it works on the same object and comes first", owner)
	}
	return d, err
}

// permits is the reason of the event of an action after which a job may replace newer versions.
func permits(a ingest.Action, row *Job, next *ingest.Job) string {
	if next.Permitted <= row.Permitted {
		return a.Reason
	}
	return fmt.Sprintf("%s (confirmed: may replace version %d)", a.Reason, next.Permitted)
}

// overtaken checks whether the object of a job to be requeued has a version by a later
// submission. If so, it returns the object's newest version, which the job may replace only
// if that is confirmed, and the warning that names it.
func (q *Queue) overtaken(ctx context.Context, j *ingest.Job) (permitted int, warning string, err error) {
	if j.ObjectVersion > 0 {
		return j.Permitted, "", nil // its own version is stored: it has only to finish
	}
	ark, err := q.arkOf(ctx, j)
	if err != nil || ark == "" {
		return j.Permitted, "", err
	}
	head, later, err := q.laterVersion(ctx, ark, j)
	if err != nil || later.Number == 0 {
		return j.Permitted, "", err
	}
	return head, ingest.Overtaken(j.ID, ark, head, later.Number, later.Job), nil
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
