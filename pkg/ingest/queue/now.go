package queue

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"

	"archivist/pkg/ingest"
	"archivist/pkg/kernel/explain"
	"archivist/pkg/kernel/table"
)

const (
	// mostRunning is how many running jobs InWork names.
	mostRunning = 100
	// mostHeads is how many of the first jobs at a gate it names.
	mostHeads = 5
	// mostLooked is at how many of the first jobs at a gate it looks to find lines before locks.
	mostLooked = 25
	// mostLines is how many lines it names, and of how many collections how much runs.
	mostLines = 10
)

// InWork is what runs, what is first at each gate, and what the others wait for.
type InWork struct {
	// Running are the jobs that have a slot, those that entered their state first before others. If
	// there are more than 100, they are those that were submitted first.
	Running []Job
	Heads   []Head // those of one gate are together, in the order in which they are admitted
	Lines   []Line // the longest first
	Looked  int    // at how many jobs it was looked to find the lines
	More    bool   // other jobs wait at the same gates
	Limits  Limits
}

// Head is one of the first jobs at a gate, and why it does not pass.
type Head struct {
	Gate string // its place in the index "work"
	N    int    // its place among those, from 1
	Job  Job
	Why  string // one or two sentences
}

// Line is a line before a lock.
type Line struct {
	Of      string   // an ARK, a local id, or manifests
	First   string   // the job, or batch, that comes first
	Has     bool     // it has the lock
	Job     *Job     // its row; nil: it was not read
	Waiting []string // the jobs behind it, in their order, as far as they were looked at
}

// Limits are what the gates may grant, and how much of it is granted.
type Limits struct {
	ingest.Free
	Collections []Used // those with most slots
	Stages      []Used // the states of the jobs in Running, in the order of the way
}

// Used is how many jobs of a collection, or in a state, have a slot.
type Used struct {
	Name string
	Jobs int
}

// InWork reads the jobs that run and the first jobs of the gates of an overview, and why these do
// not pass. The index may lag: one that has passed meanwhile is left out. It takes few requests,
// however many wait and however long the lines are.
func (q *Queue) InWork(ctx context.Context, o Overview) (now InWork, err error) {
	slots := o.slots[:min(len(o.slots), mostRunning)]
	rows, err := q.Table.Many(ctx, o.keysOf(slots))
	if err != nil {
		return now, err
	}
	if now.Running, err = runningOf(rows, slots); err != nil {
		return now, err
	}
	now.Limits = o.limits(now.Running)

	waiting, all := map[string][]Job{}, []Job{}
	for _, gate := range gates {
		if waiting[gate], err = waitingAt(rows, gate, o.first[gate]); err != nil {
			return now, err
		}
		if gate != ingest.WorkPending {
			all = append(all, waiting[gate]...)
			now.More = now.More || o.Waiting[gate] > len(o.first[gate])
		}
	}
	now.Looked = len(all)
	seen, err := q.see(ctx, rows, all, now.Running)
	if err != nil {
		return now, err
	}
	if now.Lines, err = q.linesOf(ctx, all, seen); err != nil {
		return now, err
	}
	for _, gate := range gates {
		heads, err := q.headsOf(ctx, o, gate, waiting[gate], seen)
		if err != nil {
			return now, err
		}
		now.Heads = append(now.Heads, heads...)
	}
	return now, nil
}

// keysOf are the keys of the rows that InWork needs: of jobs with a slot, of the one that has most
// of the work space, and of the first at each gate.
func (o Overview) keysOf(slots []string) (keys []table.Key) {
	for _, id := range slots {
		keys = append(keys, jobKey(id))
	}
	if o.free.Most.Job != "" {
		keys = append(keys, jobKey(o.free.Most.Job))
	}
	for _, gate := range gates {
		for i, w := range o.first[gate] {
			if i < mostHeads || gate != ingest.WorkPending { // new jobs need no lock
				keys = append(keys, jobKey(w.ID))
			}
			if batch, _, _ := strings.Cut(w.ID, "-"); i < mostHeads {
				keys = append(keys, batchKey(batch))
			}
		}
	}
	return keys
}

// runningOf are the jobs with these ids that run.
func runningOf(rows map[table.Key]table.Raw, ids []string) (all []Job, err error) {
	for _, id := range ids {
		row, err := found[Job](rows, jobKey(id))
		if err != nil {
			return nil, err
		}
		if row != nil && row.Running() {
			all = append(all, *row)
		}
	}
	slices.SortFunc(all, func(a, b Job) int {
		return cmp.Or(cmp.Compare(a.Entered, b.Entered), strings.Compare(a.Job.ID, b.Job.ID))
	})
	return all, nil
}

// waitingAt are the jobs that were read, and still wait at a gate, in the order in which they are
// admitted.
func waitingAt(rows map[table.Key]table.Raw, gate string, first []candidate) (all []Job,
	err error) {
	for _, w := range first {
		row, err := found[Job](rows, jobKey(w.ID))
		if err != nil {
			return nil, err
		}
		if row == nil {
			continue
		}
		if place, _ := row.WorkKey(); place == gate {
			all = append(all, *row)
		}
	}
	slices.SortStableFunc(all, func(a, b Job) int { return strings.Compare(a.Turn, b.Turn) })
	return all, nil
}

// headsOf are the first of the jobs at a gate.
func (q *Queue) headsOf(ctx context.Context, o Overview, gate string, waiting []Job,
	seen *glance) (heads []Head, err error) {
	pos := position{waiting: o.Waiting[gate], more: slices.Contains(o.MoreThan, gate)}
	for i := range waiting[:min(len(waiting), mostHeads)] {
		row := &waiting[i]
		batch, err := found[Batch](seen.rows, batchKey(row.Batch))
		if err != nil {
			return nil, err
		}
		if batch == nil { // the batches of the first by the index were read
			continue
		}
		pos.ahead = i
		in := sight{holds: o.active, batch: batch, free: o.free, swept: o.swept, pos: pos,
			seen: seen}
		x, err := q.explainIn(ctx, &row.Job, in)
		// A job that was not seen can be in line before it.
		if err == nil && i == 0 && x.Waits == explain.Turn {
			in.seen = nil
			x, err = q.explainIn(ctx, &row.Job, in)
		}
		if err != nil {
			return nil, err
		}
		why := x.Why
		if i > 0 && x.Waits == explain.Turn && len(row.QueuedLocks()) > 0 {
			why = "nothing that was looked at here stops it; its page says what it waits for"
		}
		heads = append(heads, Head{Gate: gate, N: i + 1, Job: *row, Why: why})
		pos.before = append(pos.before, candidate{ID: row.Job.ID, Space: row.SpaceNeeded,
			Known: row.SizeKnown, Entered: row.Entered, Collection: row.Collection})
	}
	return heads, nil
}

// linesOf are the lines before locks in which jobs wait, the longest first. A job is in that of the
// first lock that it cannot have.
func (q *Queue) linesOf(ctx context.Context, waiting []Job, seen *glance) ([]Line, error) {
	lines := map[string]*Line{}
	for i := range waiting {
		j := &waiting[i].Job
		lock, owner, err := q.blocks(ctx, j, seen)
		if err != nil {
			return nil, err
		}
		if lock == "" {
			continue
		}
		if lines[lock] == nil {
			lines[lock] = &Line{Of: lockedBy(lock), First: owner, Has: seen.owners[lock] != ""}
		}
		lines[lock].Waiting = append(lines[lock].Waiting, j.ID)
	}

	var all []Line
	for _, lock := range slices.Sorted(maps.Keys(lines)) {
		slices.Sort(lines[lock].Waiting)
		all = append(all, *lines[lock])
	}
	slices.SortStableFunc(all, func(a, b Line) int { return len(b.Waiting) - len(a.Waiting) })
	all = all[:min(len(all), mostLines)]
	for i := range all {
		var err error
		if all[i].Job, err = found[Job](seen.rows, jobKey(all[i].First)); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// limits are the limits of an overview, and how much of them the jobs take that run.
func (o Overview) limits(running []Job) Limits {
	l := Limits{Free: o.free}
	for name, n := range o.free.Taken {
		l.Collections = append(l.Collections, Used{name, n})
	}
	slices.SortFunc(l.Collections, func(a, b Used) int {
		return cmp.Or(b.Jobs-a.Jobs, strings.Compare(a.Name, b.Name))
	})
	l.Collections = l.Collections[:min(len(l.Collections), mostLines)]

	in := map[ingest.State]int{}
	for i := range running {
		in[running[i].State]++
	}
	for _, s := range ingest.Stages {
		if n := in[s.Job]; n > 0 {
			l.Stages = append(l.Stages, Used{string(s.Job), n})
		}
	}
	return l
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
