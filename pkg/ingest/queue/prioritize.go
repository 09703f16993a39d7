package queue

import (
	"context"
	"fmt"

	"archivist/pkg/ingest"
)

// decidePrioritize sets the priority of a job that has not ended for good. A waiting job
// changes its place in the queue at once, any other when it next waits. That there is a priority,
// from 0 to WorstPriority, is checked before.
func decidePrioritize(_ context.Context, q *Queue, row *Job,
	a ingest.Action) (d decision, err error) {
	job := row.Job
	d.next = job
	switch {
	case !job.Allows(ingest.ActPrioritize):
		return d, cannot(a, string(job.State), "a job that has not ended", job.State.Becomes(),
			"Its priority no longer has an effect")
	case job.Prioritized && job.Priority == *a.Priority:
		d.unchanged, d.summary = true,
			fmt.Sprintf("job %s already has priority %d", job.ID, job.Priority)
		return d, nil
	}

	d.next = q.Rules.Prioritize(job, *a.Priority)
	change := fmt.Sprintf("priority changed from %d to %d", job.Priority, *a.Priority)
	d.by = origin{
		event:     "job.prioritized",
		actor:     a.Actor,
		component: "admin",
		reason:    change + ": " + a.Reason,
	}

	d.summary = fmt.Sprintf("job %s: %s", job.ID, change)
	// The change ends its lease, so it cannot write any more. Its try does not count as a failed
	// one.
	if row.Live(q.Now()) {
		d.warnings = append(d.warnings,
			fmt.Sprintf("a worker has job %s; it repeats its current try", job.ID))
	}
	return d, nil
}
