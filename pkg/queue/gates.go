package queue

import (
	"context"
	"maps"
	"slices"
	"time"

	"archivist/pkg/fault"
	"archivist/pkg/ingest"
	"archivist/pkg/lease"
	"archivist/pkg/table"
)

// gates lets jobs on that wait inside first (they hold space), then new ones,
// until a time: who was not looked at is at the next tick.
func (c *Scheduler) gates(ctx context.Context, l lease.Lease, until time.Time) error {
	free, err := c.Queue.free(ctx)
	if err != nil {
		return err
	}
	look := look{c: c, q: c.Queue, lease: l, until: until, free: free, behind: map[string]string{}, first: map[string]bool{}}
	for _, place := range []string{ingest.WorkParked, ingest.WorkProvisioning, ingest.WorkPending} {
		if err := look.gate(ctx, place); err != nil {
			return err
		}
	}
	if look.short {
		return c.Queue.cleanEarly(ctx, c.Queue.Now().Add(c.Queue.itemTime()/2))
	}
	return nil
}

// candidate is a waiting job as the index shows it.
type candidate struct {
	table.Head
	ID         string `dynamo:"id"`
	Space      int64  `dynamo:"space_needed"`
	Known      bool   `dynamo:"size_known"`
	Entered    int64  `dynamo:"entered"`
	Collection string `dynamo:"coll"`
}

// look is one look at the gates.
type look struct {
	c      *Scheduler
	q      *Queue
	lease  lease.Lease
	until  time.Time
	free   ingest.Free
	behind map[string]string // parked job that holds space → the job that it waits for
	first  map[string]bool   // jobs for which such jobs wait, directly or through others
	short  bool              // a job lacks nothing but space
}

// want is what a candidate would take, as far as the index tells. A parked job
// holds its space already, a new one needs none yet.
func (k *look) want(place string, w candidate) ingest.Want {
	return ingest.Want{ID: w.ID, Collection: w.Collection, Space: w.Space, Known: w.Known, HasSpace: place != ingest.WorkProvisioning,
		First: k.first[w.ID], Waited: k.q.Now().Sub(time.UnixMilli(w.Entered))}
}

// gate looks, in order, at the waiting jobs of one place and lets on those that
// fit. The index only finds them: each is read before it is decided.
func (k *look) gate(ctx context.Context, place string) error {
	query := table.Query{Index: "work", PK: place, Limit: 100}
	for k.free.Slots > 0 && k.q.Now().Before(k.until) {
		var page []candidate
		next, err := k.q.Table.Page(ctx, query, &page)
		if err != nil {
			return err
		}
		for _, w := range page {
			if k.free.Slots <= 0 {
				return nil
			}
			want := k.want(place, w)
			chosen, left := ingest.Choose(k.free, []ingest.Want{want})
			if never := !want.HasSpace && w.Space > k.free.Capacity; len(chosen) == 0 && !never {
				k.short = k.short || !want.HasSpace && !k.free.Fits(want)
				k.free = left // an impatient job keeps what there is
				continue
			}
			if err := k.admit(ctx, place, w.ID); err != nil {
				return err
			}
		}
		if query.Cursor = next; next == "" {
			break
		}
	}
	if place == ingest.WorkParked {
		k.roots(ctx)
	}
	return nil
}

// roots finds the jobs for which the parked ones wait, directly or through others:
// who stands between may hold nothing. Only so many rows are read; the next tick
// sees what is left.
func (k *look) roots(ctx context.Context) {
	const most = 200
	read := 0
	for _, id := range slices.Sorted(maps.Keys(k.behind)) {
		for next := k.behind[id]; next != "" && !k.first[next] && read < most; read++ {
			k.first[next] = true
			row, err := k.q.Job(ctx, next)
			if err == nil {
				_, next, err = k.q.blockedBy(ctx, &row.Job)
			}
			if err != nil {
				k.q.Log.Warn("it is not known for whom a job waits; the next tick looks again", "job", next, "error", err)
				break
			}
		}
	}
}

// admit lets one job on if it fits and its locks are free, and takes what it got
// out of free. An error is one of the gates as a whole: that of one job is the
// job's own, and the others go on.
func (k *look) admit(ctx context.Context, place, id string) error {
	row, err := k.q.Job(ctx, id)
	if fault.Is(err, fault.NotFound) {
		return nil
	}
	left := k.free
	if err == nil {
		left, err = k.letOn(ctx, place, row)
	}
	switch {
	case err == nil:
		k.free = left
	case fault.Is(err, fault.Stale):
		if !k.q.holds(ctx, k.c.Leases, k.lease) {
			return err // the lease passed on: what is free is no longer ours to say
		}
		// The job was changed meanwhile; the next tick sees it.
	default:
		if fault.Is(err, fault.Unavailable) {
			k.free = left // it may have happened
		}
		k.q.Log.Error("a job could not be let through its gate; the others go on", "job", id, "place", place, "error", err)
		k.q.Metric(GateErrors, 1)
		if fault.Is(err, fault.Invalid) && row != nil {
			k.fail(ctx, row, err)
		}
	}
	return nil
}

// letOn commits a job's way through a gate, and returns what is free then. An
// Invalid means that the job can never go through.
func (k *look) letOn(ctx context.Context, place string, row *Job) (ingest.Free, error) {
	q := k.q
	if now, _ := row.Job.WorkKey(); now != place {
		return k.free, nil // the index lags: it went on already
	}
	now := q.Now()
	want := ingest.Want{ID: row.Job.ID, Collection: row.Collection, HasSpace: true}
	next := q.Rules.Admit(row.Job, now)
	if row.State != ingest.Pending && row.State != ingest.Estimating { // these need a slot only
		if why := row.TooLarge(k.free.Capacity); why != "" {
			return k.free, fault.New(fault.Invalid, "%s", why)
		}
		lock, owner, err := q.blockedBy(ctx, &row.Job)
		if err != nil || lock != "" {
			k.waits(&row.Job, owner)
			return k.free, err
		}
		want = ingest.Want{ID: row.Job.ID, Collection: row.Collection, Space: row.SpaceNeeded, Known: row.SizeKnown, HasSpace: row.HasSpace,
			First: k.first[row.Job.ID], Waited: now.Sub(time.UnixMilli(row.Entered))}
		next = q.Rules.Provision(row.Job, now)
	}
	chosen, left := ingest.Choose(k.free, []ingest.Want{want})
	if len(chosen) == 0 {
		return k.free, nil // the index lags: it needs more by now
	}
	return left, q.changeJob(ctx, row, next, origin{event: "job.state", component: "scheduler"}, k.guard)
}

func (k *look) guard(tx *table.Tx) error {
	k.lease.Guard(tx)
	return nil
}

// waits notes that a job which holds space stays parked for another.
func (k *look) waits(j *ingest.Job, owner string) {
	if j.Parked && j.HasSpace && owner != "" {
		k.behind[j.ID] = owner
		k.free.Parked = ingest.AddSizes(k.free.Parked, j.SpaceNeeded)
	}
}

// fail fails a job that can never go through its gate.
func (k *look) fail(ctx context.Context, row *Job, cause error) {
	next := k.q.Rules.Failed(row.Job, cause.Error(), true, k.q.Now())
	err := k.q.changeJob(ctx, row, next, origin{event: "job.state", component: "scheduler", reason: next.Message}, k.guard)
	if err != nil {
		k.q.Log.Error("the job could not be failed; the next tick tries again", "job", row.Job.ID, "error", err)
	}
}
