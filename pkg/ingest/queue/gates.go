package queue

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"archivist/pkg/ingest"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/lease"
	"archivist/pkg/kernel/table"
)

// pass is one pass over the gates. What is free is counted once, less what this pass grants: under
// the lease nobody else grants, and what jobs give back meanwhile is seen by the next pass.
type pass struct {
	q      *Queue
	leases *lease.Store
	lease  lease.Lease
	until  time.Time // of the gate that is checked
	free   ingest.Free
	holds  holds             // read after the lease was taken
	behind map[string]string // parked job that holds space → the job that it waits for
	first  map[string]bool   // jobs for which such jobs wait, directly or through others

	stopped map[string]bool // batches that let no job start, as far as this pass has met them

	lack      []int64 // bytes that jobs lack that lack only space, in their order
	asked     int     // jobs that were asked whether they wait for space alone
	heldNow   int     // jobs that this pass held
	holdUntil time.Time
}

// want is what a candidate needs, as far as the index shows it. A parked job has its space
// already, a new one needs none yet.
func (p *pass) want(place string, w candidate) ingest.Want {
	want := ingest.Want{ID: w.ID, Collection: w.Collection, Space: w.Space, Known: w.Known}
	want.HasSpace = place != ingest.WorkProvisioning
	want.First, want.Waited = p.first[w.ID], p.q.Now().Sub(time.UnixMilli(w.Entered))
	return want
}

// gate checks the waiting jobs of one place in order, page by page, and admits those that
// fit. An error stops this place only, unless it is a Stale: see gates.
func (p *pass) gate(ctx context.Context, place string) error {
	now := p.q.Now()
	p.holdUntil = now.Add(p.until.Sub(now) / 2)
	query := table.Query{Index: "work", PK: place, Limit: 100}
	for pages := 0; p.mayContinue(place, pages) && p.q.Now().Before(p.until); pages++ {
		var page []candidate
		next, err := p.q.Table.Page(ctx, query, &page)
		if err != nil {
			return err
		}
		if err := p.admitPage(ctx, place, page); err != nil || next == "" {
			return err
		}
		query.Cursor = next
	}
	return nil
}

// mayContinue reports whether more jobs of a place are checked: while there are slots, and
// for some pages of jobs that may have to be held, for which no slot is needed.
func (p *pass) mayContinue(place string, pages int) bool {
	const heldPages = 10
	return p.free.Slots > 0 || place == ingest.WorkPending && len(p.holds) > 0 && pages < heldPages
}

// heldBy returns the hold that stops a job at gate 1, nil if none does. A job's id begins with that
// of its batch, so the index has all that is needed.
func (p *pass) heldBy(place, collection, id string) *Hold {
	if place != ingest.WorkPending {
		return nil // it has started, and continues
	}
	batch, _, _ := strings.Cut(id, "-")
	return p.holds.on(collection, batch)
}

// admitPage admits the jobs of a page that fit. The index only finds them: the row of each
// is read before the decision.
func (p *pass) admitPage(ctx context.Context, place string, page []candidate) error {
	for _, w := range page {
		if batch, _, _ := strings.Cut(w.ID, "-"); p.stopped[batch] {
			continue // the operation that cancels the batch ends its jobs
		}

		check := func(place string, w candidate) bool { return p.fits(ctx, place, w) }
		if p.heldBy(place, w.Collection, w.ID) != nil {
			check = p.mayHold
		}
		if !check(place, w) {
			continue
		}
		if err := p.admit(ctx, place, w.ID); err != nil {
			return err
		}
	}
	return nil
}

// fits reports whether a job fits as far as the index shows it, or is too large for ever:
// then admit fails it.
func (p *pass) fits(ctx context.Context, place string, w candidate) bool {
	if p.free.Slots <= 0 {
		return false
	}

	want := p.want(place, w)
	chosen, left := ingest.Choose(p.free, []ingest.Want{want})
	if len(chosen) > 0 || !want.HasSpace && w.Space > p.free.Capacity {
		return true
	}

	if !want.HasSpace && !p.free.Fits(want) {
		p.lack = append(p.lack, p.free.Lacks(want))
	}
	// Choose reserves for any job that has waited too long. The gate also asks whether space is all
	// that it waits for.
	if left.Kept && !p.free.Kept {
		p.free.Kept = p.mayReserve(ctx, w.ID)
	}
	return false
}

// mayReserve reports whether a job whose patience has ended reserves freed space: one that waits for a lock could not
// use it. A limited number is asked in one pass; the others do not reserve.
func (p *pass) mayReserve(ctx context.Context, id string) bool {
	const most = 50
	p.asked++
	if p.asked > most {
		return false
	}

	blocked, err := p.q.waitsForLock(ctx, id, nil)
	if err != nil {
		p.q.Log.Warn("what a job waits for could not be read; it reserves no space now", "job", id, "error", err)
	}
	return err == nil && !blocked
}

// mayHold counts a job to be held. A tick holds a limited number, and none in the second half
// of the gate's time, to have time for the jobs of other collections.
func (p *pass) mayHold(string, candidate) bool {
	const most = 1000
	p.heldNow++
	return p.heldNow <= most && p.q.Now().Before(p.holdUntil)
}

// findRoots finds the jobs for which the parked jobs wait, directly or through others; the
// jobs between may hold nothing. It reads a limited number of rows; the next tick finds the
// others.
func (p *pass) findRoots(ctx context.Context) {
	const most = 200
	read := 0
	for _, id := range slices.Sorted(maps.Keys(p.behind)) {
		for next := p.behind[id]; next != "" && !p.first[next] && read < most; read++ {
			p.first[next] = true
			row, err := p.q.Job(ctx, next)
			if fault.Is(err, fault.NotFound) {
				break // it is not unpacked yet
			}
			if err == nil {
				_, next, err = p.q.blockedBy(ctx, &row.Job)
			}
			if err != nil {
				p.q.Log.Warn("what a job waits for could not be read; the next tick tries again",
					"job", next, "error", err)
				break
			}
		}
	}
}

// admit admits one job if it fits and its locks are free, and subtracts from free what the
// job got. It returns an error only if the gates cannot continue: an error with one job is
// logged, and the others continue.
func (p *pass) admit(ctx context.Context, place, id string) error {
	row, err := p.q.Job(ctx, id)
	if fault.Is(err, fault.NotFound) {
		return nil
	}

	left := p.free
	if err == nil {
		left, err = p.grant(ctx, place, row)
	}

	switch {
	case err == nil:
		p.free = left
	case fault.Is(err, fault.Stale):
		if !p.q.holds(ctx, p.leases, p.lease) {
			return err // another tick has the lease: what is free is not known any more
		}
		// The job was changed meanwhile; the next tick sees it.
	default:
		if fault.Is(err, fault.Unavailable) {
			p.free = left // the change may have been committed
		}
		p.q.Log.Error("a job could not be admitted; the others continue", "job", id, "place", place,
			"error", err)
		p.q.Metric(GateErrors, 1)
		// It would be asked again by each tick, and never pass.
		if fault.Is(err, fault.Invalid) && row != nil {
			p.fail(ctx, row, err)
		}
	}
	return nil
}

// grant commits the admission of a job and returns what is free then. An Invalid means that
// the job can never pass the gate.
func (p *pass) grant(ctx context.Context, place string, row *Job) (ingest.Free, error) {
	q := p.q
	if now, _ := row.Job.WorkKey(); now != place {
		return p.free, nil // the index lags: the job has moved
	}

	now := q.Now()
	if h := p.holds.stops(&row.Job); h != nil {
		return p.free, p.hold(ctx, row, h)
	}

	want := ingest.Want{ID: row.Job.ID, Collection: row.Collection, HasSpace: true}
	next := q.Rules.Admit(row.Job, now)

	if row.State != ingest.Pending && row.State != ingest.Estimating { // these need a slot only
		if why := row.TooLarge(p.free.Capacity); why != "" {
			return p.free, fault.New(fault.Invalid, "%s", why)
		}
		lock, owner, err := q.blockedBy(ctx, &row.Job)
		switch {
		case err == nil && lock != "" && row.Waits == ingest.WaitsForTurn:
			return p.free, p.park(ctx, row, lock, owner)
		case err != nil || lock != "":
			p.noteParked(&row.Job, owner)
			return p.free, err
		}
		want.Space, want.Known, want.HasSpace = row.SpaceNeeded, row.SizeKnown, !row.NeedsSpace()
		want.First, want.Waited = p.first[row.Job.ID], now.Sub(time.UnixMilli(row.Entered))
		next = q.Rules.Provision(row.Job, now)
	}

	chosen, left := ingest.Choose(p.free, []ingest.Want{want})
	if len(chosen) == 0 {
		return p.free, nil // the index lags: the job now needs more
	}
	err := q.changeJob(ctx, row, next, origin{event: "job.state", component: "scheduler"}, p.guard,
		mayStart(row.Batch))
	// The batch was cancelled. Its other jobs are passed over without a read.
	if refused := new(table.ConditionError); errors.As(err, &refused) && refused.Failed(batchKey(row.Batch)) {
		p.stopped[row.Batch] = true
		return p.free, nil
	}
	return left, err
}

// mayStart makes a change that lets a job start, or continue at a gate, depend on that its batch allows
// that. It is read in the same transaction: after a cancel is committed, nothing starts.
func mayStart(batch string) func(*table.Tx) error {
	return func(tx *table.Tx) error {
		tx.Require(batchKey(batch), ingest.MayStart, ingest.BatchPending, ingest.BatchProcessing)
		return nil
	}
}

// hold stops a job at its gate. A Pending one becomes Held. A requeued one keeps its work files and their space, and
// continues once the hold is lifted, unless that takes longer than failed jobs may keep theirs: then it has failed
// again.
func (p *pass) hold(ctx context.Context, row *Job, h *Hold) error {
	kept := p.q.Now().Sub(time.UnixMilli(row.Entered))
	switch {
	case row.State != ingest.Pending && row.HasSpace && kept > p.q.Rules.FailedRetention:
		p.fail(ctx, row, fault.New(fault.Held, "it was requeued, but did not continue: %s. It would keep its work "+
			"space for ever. Requeue it again once it may continue", h.Description()))
		return nil
	case row.State != ingest.Pending:
		return nil
	}

	next, err := p.q.Rules.Held(row.Job, h.Hold, p.q.Now())
	if err != nil {
		return err
	}
	by := origin{event: "job.held", component: "scheduler", reason: h.Description()}
	return p.q.changeJob(ctx, row, next, by, p.guard)
}

// park moves a requeued job whose turn has come to the jobs that wait for a lock.
func (p *pass) park(ctx context.Context, row *Job, lock, owner string) error {
	next := p.q.Rules.Park(row.Job, lock, owner, p.q.Now())
	return p.q.changeJob(ctx, row, next, origin{event: "job.state", component: "scheduler"}, p.guard)
}

// guard makes a change depend on the scheduler's lease. If a hold was placed meanwhile, or another
// tick has begun, the commit is a Stale.
func (p *pass) guard(tx *table.Tx) error {
	p.lease.Guard(tx)
	return nil
}

// noteParked notes a job that holds space and stays parked because it waits for another. The job
// that it waits for may exceed the space by what such jobs hold: see ingest.Free.
func (p *pass) noteParked(j *ingest.Job, owner string) {
	if j.Parked && j.HasSpace && owner != "" {
		p.behind[j.ID] = owner
		p.free.Parked = ingest.AddSizes(p.free.Parked, j.SpaceNeeded)
	}
}

// fail fails a job that can never pass its gate. It can be requeued, once the setting or the
// submission is corrected.
func (p *pass) fail(ctx context.Context, row *Job, cause error) {
	next := p.q.Rules.Failed(row.Job, cause.Error(), true, p.q.Now())
	by := origin{event: "job.state", component: "scheduler", reason: next.Message}
	if err := p.q.changeJob(ctx, row, next, by, p.guard); err != nil {
		p.q.Log.Error("the job could not be failed; the next tick tries again", "job", row.Job.ID,
			"error", err)
	}
}

// holds reports whether the lease is still held.
func (q *Queue) holds(ctx context.Context, s *lease.Store, l lease.Lease) bool {
	tx := q.Table.Begin(q.NewID())
	l.Guard(tx)
	return s.Now().Before(l.Until) && tx.Commit(ctx) == nil
}
