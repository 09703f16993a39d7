package queue

import (
	"context"
	"fmt"
	"strings"
	"time"

	"archivist/pkg/ingest"
	"archivist/pkg/kernel/explain"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/table"
)

// position is the position of a job among the jobs that wait at its gate.
type position struct {
	ahead   int         // jobs before it
	waiting int         // all jobs
	more    bool        // there are more: only the first were read
	beyond  bool        // it is behind all that were read
	before  []candidate // the jobs before it
	first   []Job       // the rows of the first of them
}

// position finds a job among the first that wait at its gate. It takes one request, however
// many wait. The index may lag, so a position is about right, not exact.
func (q *Queue) position(ctx context.Context, j *ingest.Job) (p position, err error) {
	place, turn := j.WorkKey()
	var page []candidate
	next, err := q.Table.Page(ctx, table.Query{Index: "work", PK: place, Limit: countedMost}, &page)
	if err != nil {
		return p, err
	}

	p.more, p.waiting = next != "", len(page)
	for _, w := range page {
		if w.ID != j.ID && w.WorkSK < turn {
			p.before = append(p.before, w)
		}
	}

	p.ahead = len(p.before)
	p.waiting = max(p.waiting, p.ahead+1) // the index may not have the job yet
	// Then its place is not known, only that it is behind all of these.
	p.beyond = p.more && p.ahead == len(page)
	return p, nil
}

// String returns the position as a sentence.
func (p position) String() string {
	of := ingest.Number(p.waiting)
	if p.more {
		of = "more than " + of
	}

	switch {
	case p.beyond:
		return fmt.Sprintf("At least %s waiting jobs are ahead.", ingest.Number(p.ahead))
	case p.waiting == 1:
		return "No other job is waiting."
	case p.ahead == 0:
		return fmt.Sprintf("It is the first of %s waiting jobs.", of)
	case p.ahead == 1:
		return fmt.Sprintf("1 of %s waiting jobs is ahead.", of)
	}
	return fmt.Sprintf("%s of %s waiting jobs are ahead.", ingest.Number(p.ahead), of)
}

// sight is what decides whether a waiting job passes its gate.
type sight struct {
	holds holds
	batch *Batch // of the job
	free  ingest.Free
	swept time.Time // zero = never
	pos   position
	seen  *glance // what was read before of the rows that it needs; nil: it reads them
}

// sight reads it for a job.
func (q *Queue) sight(ctx context.Context, j *ingest.Job) (in sight, err error) {
	if in.holds, err = q.active(ctx); err != nil {
		return in, err
	}
	if in.free, err = q.free(ctx); err != nil {
		return in, err
	}
	if in.swept, err = q.lastSweep(ctx); err != nil {
		return in, err
	}
	if in.pos, err = q.position(ctx, j); err != nil {
		return in, err
	}
	return in, q.confirm(ctx, j, &in)
}

// explainWaiting explains what a waiting job lacks, and its place in the queue.
func (q *Queue) explainWaiting(ctx context.Context, j *ingest.Job) (x explain.Part, err error) {
	in, err := q.sight(ctx, j)
	if err != nil {
		return x, err
	}
	x, err = q.explainIn(ctx, j, in)
	if err == nil && x.Ahead != nil && x.Ahead.Line == explain.ForLock {
		x.Ahead, err = q.beforeAtLock(ctx, j, x.Ahead.Of)
	}
	return x, err
}

// explainIn is explainWaiting with what was read before.
func (q *Queue) explainIn(ctx context.Context, j *ingest.Job, in sight) (x explain.Part, err error) {
	x = explainPause(j, in.holds)
	if x.Why != "" {
		x.Why = fmt.Sprintf("%s: %s", waitsTo(j), x.Why)
		x.Ahead = in.beforeAtGate(j, x.Waits)
		return x, nil
	}
	x = q.explainStopped(ctx, in.batch)
	if x.Why != "" {
		return x, nil
	}

	x, err = q.explainLack(ctx, j, in)
	x.Why = fmt.Sprintf("%s: %s", waitsTo(j), x.Why)
	if x.Waits == explain.Limit || x.Waits == explain.Turn || x.Waits == explain.Space {
		x.Why += " " + in.pos.String()
	}
	if x.Waits != explain.Lock {
		x.Ahead = in.beforeAtGate(j, x.Waits)
	}
	return x, err
}

// explainStopped explains a waiting job whose batch lets none start. The operation that cancels the
// batch ends the job; a person can have interrupted it.
func (q *Queue) explainStopped(ctx context.Context, row *Batch) (x explain.Part) {
	if row.Stops() == "" {
		return x
	}

	x.Waits, x.Why = explain.Cancel, "It does not start: "+row.Stops()+". The operation that cancels its jobs ends it."
	if id := row.Cancelled.Operation; id != "" {
		o, err := q.Operation(ctx, id)
		if err == nil && o.State == ingest.OperationInterrupted {
			x.Waits = explain.Person
			x.Why += " A person has interrupted it."
			x.Do = append(x.Do, continues(id))
		}
	}
	return x
}

// explainLack explains what a waiting job lacks first: a lock, a slot, space, or nothing. New jobs
// need no lock and no space yet.
func (q *Queue) explainLack(ctx context.Context, j *ingest.Job, in sight) (explain.Part, error) {
	if j.State != ingest.Pending {
		x, err := q.explainLock(ctx, j, in)
		if err != nil || x.Why != "" {
			return x, err
		}
	}

	if x := q.explainSlot(j, in.free); x.Why != "" {
		return x, nil
	}

	if j.State != ingest.Pending {
		x, err := q.explainSpace(ctx, j, in)
		if err != nil || x.Why != "" {
			return x, err
		}
	}
	return q.explainTurn(in.swept), nil
}

// waitsTo is what a waiting job does next.
func waitsTo(j *ingest.Job) string {
	switch {
	case j.State == ingest.Pending:
		return "Waiting to start"
	case j.State == ingest.Provisioning:
		return "Waiting to download " + payload(j)
	}
	return "Waiting to continue"
}

// explainLock names the job that has the object, or is in line for it before this one. Such a
// job may not be made yet: then it names its batch.
func (q *Queue) explainLock(ctx context.Context, j *ingest.Job, in sight) (x explain.Part,
	err error) {
	lock, owner, err := q.blocks(ctx, j, in.seen)
	if err != nil || lock == "" {
		return x, err
	}

	x.Waits, x.On = explain.Lock, owner
	x.Ahead = &explain.Ahead{Line: explain.ForLock, Of: lock}
	if lock != j.ManifestLine() {
		_, err = q.jobSeen(ctx, owner, in.seen)
	}
	switch {
	case lock == j.ManifestLine():
		x.On, _, _ = strings.Cut(owner, "-")
		x.Why = fmt.Sprintf("batch %s was submitted before it by the same depositor, and can list the same object. "+
			"Its manifest is not read yet. This job continues when it is, at the latest at %s.", x.On,
			ingest.Timestamp(j.ManifestsUntil().UnixMilli()))
		return x, nil
	case fault.Is(err, fault.NotFound):
		x.On, _, _ = strings.Cut(owner, "-")
		x.Why = fmt.Sprintf("batch %s was submitted for the same object before, and is not read yet. This job "+
			"continues when that submission has ended.", x.On)
		return x, nil
	}

	x.Why = fmt.Sprintf("job %s works on the same object and comes first. This job continues when that one has ended.",
		owner)
	return x, err
}

// explainSlot explains which limit of running jobs is reached.
func (q *Queue) explainSlot(j *ingest.Job, free ingest.Free) (x explain.Part) {
	x.Waits = explain.Limit
	switch {
	case free.Slots <= 0:
		x.Why = fmt.Sprintf("the limit of running jobs (%s) is reached.",
			ingest.Number(q.Settings.MaxInFlight))
	case free.Share > 0 && free.Taken[j.Collection] >= free.Share:
		x.Why = fmt.Sprintf("collection %s has reached the limit of running jobs of one collection (%s).",
			j.Collection, ingest.Number(free.Share))
	}
	return x
}

// explainSpace explains why there is no work space for the job, in the order of the gate's
// checks.
func (q *Queue) explainSpace(ctx context.Context, j *ingest.Job, in sight) (explain.Part, error) {
	free := in.free
	left := ingest.Number(max(0, free.Space))
	x := says(explain.Space, "")
	keeper, reserved, err := q.keeper(ctx, j, in)
	switch {
	case j.TooLarge(q.Settings.Space) != "":
		x = says(explain.Person, sentence(j.TooLarge(q.Settings.Space)), explain.Step{What: "Fail it",
			Command: "archivist job fail " + j.ID + " --reason TEXT"})
	case reserved:
		x.On = keeper.ID
		x.Why = fmt.Sprintf("freed work space is reserved for job %s, which has waited longer than %d minutes for %s; "+
			"%s are free.",
			keeper.ID, int(q.Settings.Patience.Minutes()), ingest.Bytes(keeper.Space), left)
	case !j.NeedsSpace():
	case j.SpaceNeeded > free.Space:
		x.Why = fmt.Sprintf("it needs %s of work space and %s are free.",
			ingest.Bytes(j.SpaceNeeded), left)
	case !j.SizeKnown && free.Space < free.Reserve:
		x.Why = fmt.Sprintf("its size is unknown; such jobs wait until %s of work space are free, and %s are.",
			ingest.Bytes(free.Reserve), left)
	}

	if err == nil && x.Waits == explain.Space && x.Why != "" && x.On == "" {
		err = q.explainHolder(ctx, &x, in)
	}
	return x, err
}

// explainHolder adds which job holds the most space, and until when.
func (q *Queue) explainHolder(ctx context.Context, x *explain.Part, in sight) error {
	most := in.free.Most
	if most.Job == "" {
		return nil
	}

	row, err := q.jobSeen(ctx, most.Job, in.seen)
	if fault.Is(err, fault.NotFound) {
		return nil
	}

	if err != nil {
		return err
	}

	until := "is " + string(row.State)
	switch {
	case row.Job.Deferred():
		until = fmt.Sprintf("is tried again after %s, because its source asks to wait", ingest.Timestamp(row.Due))
	case row.Job.Parked && row.Job.Waits == ingest.WaitsForTurn:
		until = "was requeued, waits to continue, and keeps its work files"
	case row.Job.Uncleaned():
		until = fmt.Sprintf("is %s and keeps its work files, at the latest until %s", row.State,
			ingest.Timestamp(row.Due))
	}
	x.On = most.Job
	x.Why += fmt.Sprintf(" Job %s holds the most, %s: it %s.", most.Job, ingest.Bytes(most.Space), until)
	return nil
}

// keeper returns the job before j for which freed space is reserved, if there is one. Like the
// gate, it leaves out jobs that wait for a lock.
func (q *Queue) keeper(ctx context.Context, j *ingest.Job, in sight) (keeper candidate,
	reserved bool, err error) {
	free := in.free
	if j.State != ingest.Provisioning || j.Parked || free.Patience == 0 {
		return keeper, false, nil
	}

	for _, w := range in.pos.before {
		want := ingest.Want{
			ID:     w.ID,
			Space:  w.Space,
			Known:  w.Known,
			Waited: q.Now().Sub(time.UnixMilli(w.Entered)),
		}
		// The same rule as at the gate, for this job alone.
		if _, left := ingest.Choose(free, []ingest.Want{want}); !left.Kept {
			continue
		}
		if blocked, err := q.waitsForLock(ctx, w.ID, in.seen); err != nil || !blocked {
			return w, err == nil, err
		}
	}
	return keeper, false, nil
}

// silentAfter is the age of the last sweep after which the scheduler is considered not to
// run: it sweeps each minute.
const silentAfter = 3 * sweepEvery

// explainTurn explains when the scheduler admits a job that lacks nothing, or that the
// scheduler does not run.
func (q *Queue) explainTurn(last time.Time) explain.Part {
	const check = "An operator must check its rule and the log of the function scheduler."
	switch {
	case last.IsZero():
		return says(explain.Person, "the scheduler has never run. "+check)
	case q.Now().Sub(last) > silentAfter:
		return says(explain.Person, fmt.Sprintf("the scheduler has not run since %s. %s",
			ingest.Timestamp(last.UnixMilli()), check))
	}
	return says(explain.Turn, "the scheduler admits jobs in their order, at least each minute.")
}
