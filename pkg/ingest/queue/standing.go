package queue

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"archivist/pkg/ingest"
	"archivist/pkg/kernel/explain"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/table"
)

// mostBefore is how many of those that stand before a job are named.
const mostBefore = 5

// confirm reads the batch of a job, and with it the rows of the first that the index has before the
// job: the index lags, and those that have moved on are not before it any more.
func (q *Queue) confirm(ctx context.Context, j *ingest.Job, in *sight) error {
	p := &in.pos
	some := p.before[:min(len(p.before), mostBefore)]
	keys := make([]table.Key, len(some))
	for i, w := range some {
		keys[i] = jobKey(w.ID)
	}
	rows, err := q.Table.Many(ctx, append(keys, batchKey(j.Batch)))
	if err != nil {
		return err
	}
	if in.batch, err = found[Batch](rows, batchKey(j.Batch)); err != nil {
		return err
	}
	if in.batch == nil {
		return fault.New(fault.NotFound, "there is no batch %s", j.Batch)
	}

	place, turn := j.WorkKey()
	left := make([]candidate, 0, len(p.before))
	for i, w := range some {
		row, err := found[Job](rows, keys[i])
		if err != nil {
			return err
		}
		if row == nil {
			continue
		}
		if at, rank := row.WorkKey(); at == place && rank < turn {
			p.first, left = append(p.first, *row), append(left, w)
		}
	}
	slices.SortStableFunc(p.first, func(a, b Job) int { return strings.Compare(a.Turn, b.Turn) })
	moved := len(some) - len(left)
	p.before = append(left, p.before[len(some):]...)
	p.ahead, p.waiting = p.ahead-moved, p.waiting-moved
	return nil
}

// beforeAtGate is the line of a job at its gate.
func (in sight) beforeAtGate(j *ingest.Job, waits explain.Wait) *explain.Ahead {
	gate, _ := j.WorkKey()
	line := &explain.Ahead{N: in.pos.ahead, More: in.pos.beyond, Line: explain.AtGate, Of: gate,
		Stop: in.stop(j, waits)}
	for i := range in.pos.first {
		line.First = append(line.First, before(&in.pos.first[i].Job, ""))
	}
	return line
}

// stop is what keeps a job from passing its gate, in a few words.
func (in sight) stop(j *ingest.Job, waits explain.Wait) string {
	h := in.holds.stops(j)
	switch {
	case h != nil && h.ID == "":
		return string(h.Scope) + " paused"
	case h != nil:
		return string(h.Scope) + " on hold"
	case waits == explain.Limit && in.free.Slots > 0:
		return "limit of the collection"
	case waits == explain.Limit:
		return "no free slot"
	case waits == explain.Space:
		return "no work space"
	case waits == explain.Person && j.TooLarge(in.free.Capacity) != "":
		return "too large"
	case waits == explain.Person:
		return "scheduler silent"
	}
	return ""
}

// before is a job that stands before another, at a lock or, with "", at a gate.
func before(j *ingest.Job, lock string) explain.Before {
	return explain.Before{Kind: explain.Job, ID: j.ID, State: string(j.State),
		Collection: j.Collection, Since: j.Entered, Has: slices.Contains(j.Locks, lock)}
}

// beforeAtLock is the line before a lock up to a job: first the one that has it, then the others in
// the order in which they get it. It takes two requests.
func (q *Queue) beforeAtLock(ctx context.Context, j *ingest.Job, lock string) (*explain.Ahead,
	error) {
	line := &explain.Ahead{Line: explain.ForLock, Of: lockedBy(lock)}
	key := LockKey(lock)
	var rows []Reservation
	next, err := q.Table.Page(ctx, table.Query{PK: key.PK, From: key.SK, To: lineKey(lock, j.ID).SK,
		Limit: countedMost}, &rows)
	if err != nil {
		return nil, err
	}

	manifests := lock == j.ManifestLine()
	var all []Reservation
	for _, r := range rows {
		own := r.Owner == j.ID || manifests && isOf(j.Batch, r.Owner)
		known := func(other Reservation) bool { return other.Owner == r.Owner }
		if !own && !slices.ContainsFunc(all, known) { // who has the lock stays in line
			all = append(all, r)
		}
	}
	line.N, line.More = len(all), next != ""
	line.First, err = q.atLock(ctx, lock, manifests, all[:min(len(all), mostBefore)])
	line.N -= min(len(all), mostBefore) - len(line.First)
	return line, err
}

// atLock names those that own places in a line. Those that have left it meanwhile are left out. A
// job that is not made yet is its batch.
func (q *Queue) atLock(ctx context.Context, lock string, manifests bool,
	places []Reservation) (first []explain.Before, err error) {
	var keys []table.Key
	for _, r := range places {
		batch := ingest.BatchOf(r.Owner)
		keys = append(keys, jobKey(r.Owner), batchKey(batch))
	}
	rows, err := q.Table.Many(ctx, keys)
	if err != nil {
		return nil, err
	}

	for i := range places {
		job, err := found[Job](rows, keys[2*i])
		if err != nil {
			return nil, err
		}
		if job != nil && !manifests {
			if slices.Contains(job.QueuedLocks(), lock) || slices.Contains(job.Locks, lock) {
				first = append(first, before(&job.Job, lock))
			}
			continue
		}
		batch, err := found[Batch](rows, keys[2*i+1])
		if err != nil {
			return nil, err
		}
		if batch != nil {
			first = append(first, explain.Before{Kind: explain.Batch, ID: batch.Batch.ID,
				State: string(batch.State), Collection: batch.Collection, Since: batch.Entered})
		}
	}
	return first, nil
}

// lockedBy names what a lock is of: an ARK, a local id, or the manifests of a depositor.
func lockedBy(lock string) string {
	kind, name, _ := strings.Cut(lock, "#")
	switch kind {
	case "local":
		_, name, _ = strings.Cut(name, "#")
	case "manifest":
		return "earlier manifests"
	}
	return name
}

// glance are rows that several explanations need, which are read at once.
type glance struct {
	rows      map[table.Key]table.Raw
	owners    map[string]string   // who has a lock, by its name
	lines     map[string][]string // the jobs that were read, in line for a lock
	manifests map[string]string   // the first of a line of manifests, by its name
}

// see reads the locks for which jobs wait that were read before. Of very many locks, the first are
// read.
func (q *Queue) see(ctx context.Context, rows map[table.Key]table.Raw, waiting,
	running []Job) (*glance, error) {
	g := &glance{rows: rows, owners: map[string]string{}, lines: map[string][]string{},
		manifests: map[string]string{}}
	var keys []table.Key
	for i := range waiting {
		for _, name := range waiting[i].QueuedLocks() {
			if g.lines[name] == nil {
				if len(keys) == table.MaxGets {
					continue
				}
				keys = append(keys, LockKey(name))
			}
			g.lines[name] = append(g.lines[name], waiting[i].Job.ID)
		}
	}
	for i := range running {
		for _, name := range running[i].QueuedLocks() {
			if g.lines[name] != nil {
				g.lines[name] = append(g.lines[name], running[i].Job.ID)
			}
		}
	}

	held, err := q.Table.Many(ctx, keys)
	if err != nil {
		return nil, err
	}
	for name, line := range g.lines {
		slices.Sort(line) // that is the order of submission
		row, err := found[Reservation](held, LockKey(name))
		if err != nil {
			return nil, err
		}
		if row != nil {
			g.owners[name] = row.Owner
		}
	}
	return g, nil
}

// first is who comes first for a lock, as far as it was seen.
func (g *glance) first(lock string) string { return cmp.Or(g.owners[lock], g.lines[lock][0]) }

// mostManifests is how many lines of manifests are read for the jobs of a glance.
const mostManifests = 3

// blocks is blockedBy, or what was seen before. A job that was not read can be in line before one
// that was.
func (q *Queue) blocks(ctx context.Context, j *ingest.Job, seen *glance) (lock, owner string,
	err error) {
	if seen == nil {
		return q.blockedBy(ctx, j)
	}
	for _, l := range j.QueuedLocks() {
		if len(seen.lines[l]) > 0 && seen.first(l) != j.ID {
			return l, seen.first(l), nil
		}
	}

	if !j.AwaitsManifests(q.Now()) {
		return "", "", nil
	}
	line := j.ManifestLine()
	if _, known := seen.manifests[line]; !known && len(seen.manifests) < mostManifests {
		if seen.manifests[line], err = q.firstManifest(ctx, line); err != nil {
			return "", "", err
		}
	}
	line, owner = manifestBefore(j, seen.manifests[line])
	return line, owner, nil
}

// jobSeen reads a job, unless it was seen before.
func (q *Queue) jobSeen(ctx context.Context, id string, seen *glance) (*Job, error) {
	if seen != nil {
		if row, err := found[Job](seen.rows, jobKey(id)); err != nil || row != nil {
			return row, err
		}
	}
	return q.Job(ctx, id)
}
