package queue

import (
	"context"
	"fmt"

	"archivist/pkg/ingest"
	"archivist/pkg/objects/inventory"
)

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
func (q *Queue) overtaken(ctx context.Context,
	j *ingest.Job) (permitted int, warning string, err error) {
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
