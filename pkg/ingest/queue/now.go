package queue

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"archivist/pkg/kernel/table"
)

// mostRunning is how many running jobs InWork names.
const mostRunning = 100

// InWork is what runs, and what is first at each gate.
type InWork struct {
	// Running are the jobs that have a slot, those that entered their state first before others. If
	// there are more than 100, they are those that were submitted first.
	Running []Job
	Heads   []Head
}

// Head is the first job at a gate, and why it does not pass.
type Head struct {
	Gate string // its place in the index "work"
	Job  Job
	Why  string // one or two sentences
}

// InWork reads the jobs that run and the first jobs of the gates of an overview, and why these do
// not pass. The index may lag: one that has passed meanwhile is left out.
func (q *Queue) InWork(ctx context.Context, o Overview) (now InWork, err error) {
	slots := o.slots[:min(len(o.slots), mostRunning)]
	var keys []table.Key
	for _, id := range slots {
		keys = append(keys, jobKey(id))
	}
	for _, id := range o.first {
		batch, _, _ := strings.Cut(id, "-")
		keys = append(keys, jobKey(id), batchKey(batch))
	}
	rows, err := q.Table.Many(ctx, keys)
	if err != nil {
		return now, err
	}

	for _, id := range slots {
		row, err := found[Job](rows, jobKey(id))
		if err != nil {
			return now, err
		}
		if row != nil && row.Running() {
			now.Running = append(now.Running, *row)
		}
	}
	slices.SortFunc(now.Running, func(a, b Job) int {
		return cmp.Or(cmp.Compare(a.Entered, b.Entered), strings.Compare(a.Job.ID, b.Job.ID))
	})
	for _, gate := range gates {
		head, err := q.headOf(ctx, o, gate, rows)
		if err != nil {
			return now, err
		}
		if head != nil {
			now.Heads = append(now.Heads, *head)
		}
	}
	return now, nil
}

// headOf is the first job at a gate, nil if there is none any more.
func (q *Queue) headOf(ctx context.Context, o Overview, gate string, rows map[table.Key]table.Raw) (*Head, error) {
	row, err := found[Job](rows, jobKey(o.first[gate]))
	if err != nil || row == nil {
		return nil, err
	}
	batch, err := found[Batch](rows, batchKey(row.Batch))
	if place, _ := row.Job.WorkKey(); err != nil || batch == nil || place != gate {
		return nil, err
	}
	x, err := q.explainIn(ctx, &row.Job, sight{holds: o.active, batch: batch, free: o.free, swept: o.swept,
		pos: position{waiting: o.Waiting[gate], more: slices.Contains(o.MoreThan, gate)}})
	return &Head{Gate: gate, Job: *row, Why: x.Why}, err
}

// found is a row of those that were read, nil if it is not there.
func found[T any](rows map[table.Key]table.Raw, key table.Key) (*T, error) {
	raw, there := rows[key]
	if !there {
		return nil, nil
	}
	row := new(T)
	return row, raw.Decode(row)
}

// Execution is the name of the execution that drives a job.
func (row *Job) Execution() string { return ExecutionName(row.Job.ID, row.Exec) }
