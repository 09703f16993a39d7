package queue

import (
	"context"
	"slices"
	"strings"

	"archivist/pkg/kernel/fault"
)

// mostRunning is how many running jobs Now names.
const mostRunning = 100

// Head is the first job at a gate, and why it does not pass.
type Head struct {
	Gate string // its place in the index "work"
	Job  Job
	Why  string // one or two sentences
}

// Running are the jobs that have a slot in an overview, those that entered their state first before others, at most
// 100; and their number.
func (q *Queue) Running(ctx context.Context, o Overview) (jobs []Job, all int, err error) {
	rows, err := readRows[Job](ctx, q.Table, o.slots, jobKey)
	for _, row := range rows {
		if row != nil && row.Running() {
			jobs = append(jobs, *row)
		}
	}
	slices.SortFunc(jobs, func(a, b Job) int {
		if a.Entered != b.Entered {
			return int(min(1, max(-1, a.Entered-b.Entered)))
		}
		return strings.Compare(a.Job.ID, b.Job.ID)
	})
	return jobs[:min(len(jobs), mostRunning)], len(jobs), err
}

// Heads are the first jobs of the gates where jobs wait. The index may lag: one that has passed meanwhile is left out.
func (q *Queue) Heads(ctx context.Context, o Overview) (heads []Head, err error) {
	for _, gate := range gates {
		if o.first[gate] == "" {
			continue
		}
		head, err := q.headOf(ctx, gate, o.first[gate])
		if err != nil {
			return nil, err
		}
		if head != nil {
			heads = append(heads, *head)
		}
	}
	return heads, nil
}

// headOf is a job at a gate, nil if it is not there any more.
func (q *Queue) headOf(ctx context.Context, gate, id string) (*Head, error) {
	row, err := q.Job(ctx, id)
	if fault.Is(err, fault.NotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}

	place, _ := row.Job.WorkKey()
	if place != gate {
		return nil, nil
	}
	x, err := q.explainWaiting(ctx, &row.Job)
	return &Head{Gate: gate, Job: *row, Why: x.Why}, err
}

// Execution is the name of the execution that drives a job.
func (row *Job) Execution() string { return ExecutionName(row.Job.ID, row.Exec) }
