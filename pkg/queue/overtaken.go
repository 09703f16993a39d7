package queue

import (
	"context"

	"archivist/pkg/fault"
	"archivist/pkg/ingest"
	"archivist/pkg/inventory"
)

// RequeueConfirmed is Requeue for a job that was overtaken: a person has seen which
// version it will replace as the object's newest, and wants that.
func (q *Queue) RequeueConfirmed(ctx context.Context, id, reason, actor string) (*Job, error) {
	return q.requeue(ctx, id, reason, actor, true)
}

// overtaken looks whether the object of a job that is to be requeued has a version
// by a later submission. It returns the newest version that the job may then replace:
// the one of the object, if that was confirmed, else a Conflict that names it.
func (q *Queue) overtaken(ctx context.Context, j *ingest.Job, confirmed bool) (permitted int, err error) {
	if j.ObjectVersion > 0 {
		return j.Permitted, nil // its own version is stored: it only finishes
	}
	objects := inventory.Store{Table: q.Table}
	ark := j.Primary
	for i := 0; i < len(j.LocalIDs) && ark == ""; i++ {
		if ark, err = objects.ByLocalID(ctx, j.Collection, j.LocalIDs[i]); err != nil {
			return 0, err
		}
	}
	if ark == "" {
		return j.Permitted, nil
	}
	head, later := 0, inventory.Version{}
	for cursor, more := "", true; more; more = cursor != "" {
		var versions []inventory.Version
		if versions, cursor, err = objects.Versions(ctx, ark, cursor); err != nil {
			return 0, err
		}
		for _, v := range versions {
			if head = v.Number; v.Job == j.ID {
				return j.Permitted, nil
			}
			if v.Number > j.Permitted && ingest.SubmittedAfter(v.Job, j.ID) {
				later = v
			}
		}
	}
	switch {
	case later.Number == 0:
		return j.Permitted, nil
	case confirmed:
		return head, nil
	}
	return 0, fault.New(fault.Conflict, "%s. Requeue it with confirm if that is wanted",
		ingest.Overtaken(j.ID, ark, head, later.Number, later.Job))
}
