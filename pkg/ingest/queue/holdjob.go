package queue

import (
	"context"
	"fmt"

	"archivist/pkg/ingest"
	"archivist/pkg/kernel/fault"
)

// decideHold holds a Pending job, until it is released or until a time. Any other state is a
// Conflict: a job that has started continues.
func decideHold(_ context.Context, q *Queue, row *Job, a ingest.Action) (d decision, err error) {
	now := q.Now()
	h := ingest.Hold{
		Scope:  ingest.TargetJob,
		Reason: a.Reason,
		Actor:  a.Actor,
		Since:  now.UnixMilli(),
		Until:  a.Until,
	}

	d.by = origin{
		event:     "job.held",
		actor:     a.Actor,
		component: "admin",
		reason:    reasonUntil(a.Reason, a.Until),
	}

	switch {
	case row.State != ingest.Held && row.State != ingest.Pending:
		return d, cannot(a, string(row.State), "Pending or Held", row.State.Becomes(),
			noHold(row.State.Open()))
	case row.State == ingest.Pending:
		d.next, err = q.Rules.Held(row.Job, h, now)
		d.summary = fmt.Sprintf("job %s is on hold%s", row.Job.ID, until(a.Until))
	case row.Hold != nil && row.Hold.Scope == ingest.TargetJob && row.Hold.Until == a.Until:
		d.next, d.unchanged = row.Job, true
		d.summary = fmt.Sprintf("job %s is already on hold %s", row.Job.ID, row.Hold.Description())
	default: // it stays held when the hold of its collection or batch is lifted
		d.next = q.Rules.HeldBy(row.Job, h)
		d.summary = fmt.Sprintf("job %s stays on hold%s", row.Job.ID, until(a.Until))
	}
	return d, err
}

// noHold is what to do with a job or a batch that cannot be held.
func noHold(open bool) string {
	if open {
		return "It has started, and continues: fail it to stop it"
	}
	return "It has ended"
}

// reasonUntil is the reason of an event of a hold, with the hold's end.
func reasonUntil(reason string, until int64) string {
	if until == 0 {
		return reason
	}
	return fmt.Sprintf("%s (until %s)", reason, ingest.Timestamp(until))
}

// decideRelease lets a held job continue. It is refused while its collection or batch is on
// hold. A job that a later submission has overtaken meanwhile needs confirmation that it may
// replace the object's newest version. A hold of these is a Held, another state than Held or
// Pending a Conflict.
func decideRelease(ctx context.Context, q *Queue, row *Job,
	a ingest.Action) (d decision, err error) {
	d.next = row.Job
	switch {
	case row.State == ingest.Pending:
		d.unchanged, d.summary = true, fmt.Sprintf("job %s is not on hold", row.Job.ID)
		return d, nil
	case !row.Allows(ingest.ActRelease):
		return d, cannot(a, string(row.State), "Held", row.State.Becomes(), "It is not on hold")
	}

	if d.next, err = q.Rules.Released(row.Job, q.Now()); err != nil {
		return d, err
	}

	h, err := q.holdOn(ctx, row.Collection, row.Job.Batch)
	if h != nil {
		err = stopped("job "+row.Job.ID, h)
	}

	if err != nil {
		return d, err
	}

	// While it was held it was not in line, so others may have passed it.
	d.next.Permitted, d.unconfirmed, err = q.overtaken(ctx, &row.Job)
	d.by = origin{
		event:     "job.released",
		actor:     a.Actor,
		component: "admin",
		reason:    permits(a, row, &d.next),
	}

	// A hold that is placed meanwhile makes the commit a Stale: the action is decided again.
	d.also = append(d.also, q.unheld(collectionTarget(row.Collection), batchTarget(row.Job.Batch)))
	d.summary = fmt.Sprintf("job %s continues", row.Job.ID)
	return d, err
}

// stopped is the refusal to release an item because of a hold.
func stopped(item string, h *Hold) error {
	return fault.New(fault.Held, "%s cannot be released: %s. Release %s first", item,
		h.Description(),
		nameOf(h.Target()))
}

// holdEnds is done when the hold of a job has ended by itself: the job continues, unless
// another hold is active.
func (row *Job) holdEnds(ctx context.Context, q *Queue) error {
	h, err := q.holdOn(ctx, row.Collection, row.Job.Batch)
	if err != nil {
		return err
	}

	if h != nil {
		by := origin{event: "job.held", component: "sweep", reason: h.Description()}
		return q.changeJob(ctx, row, q.Rules.HeldBy(row.Job, h.Hold), by, h.require)
	}

	next, err := q.Rules.Released(row.Job, q.Now())
	if err != nil {
		return err
	}

	by := origin{event: "job.released", component: "sweep", reason: holdEnded}
	return q.changeJob(ctx, row, next, by,
		q.unheld(collectionTarget(row.Collection), batchTarget(row.Job.Batch)))
}
