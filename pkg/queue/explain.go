package queue

import (
	"context"
	"fmt"
	"time"

	"archivist/pkg/ingest"
	"archivist/pkg/table"
)

// Explanation names the one thing that an item waits for.
type Explanation struct {
	State string `json:"state"`
	Waits string `json:"waitsFor"` // nothing | person | gate | lock | slot | space | worker | execution | jobs
	Why   string `json:"why"`
	On    string `json:"on,omitempty"` // the job or lock that it waits for
}

// ExplainJob says what a job waits for, from its own row and the rows that it needs.
func (q *Queue) ExplainJob(ctx context.Context, id string) (Explanation, error) {
	row, err := q.Job(ctx, id)
	if err != nil {
		return Explanation{}, err
	}
	j := &row.Job
	x := Explanation{State: string(j.State)}
	place, _ := j.WorkKey()
	stage, _ := ingest.StageOf(j.State)
	switch {
	case j.State == ingest.Failed && j.NotRecoverable:
		x.Waits, x.Why = "nothing", "it failed and cannot be requeued; a new submission is needed: "+j.Message
	case j.State == ingest.Failed:
		x.Waits, x.Why = "person", "it failed; mend the cause and requeue it: "+j.Message
	case j.State == ingest.Held:
		x.Waits, x.Why = "person", "it is held until somebody releases it"
	case !j.State.Open():
		x.Waits, x.Why = "nothing", "it has ended"
	case place == ingest.WorkPending || place == ingest.WorkProvisioning || place == ingest.WorkParked:
		return q.explainGate(ctx, j, x)
	case row.Live(q.Now()):
		x.Waits, x.Why = "worker", fmt.Sprintf("a worker has it until %s at the latest (try %d)", ingest.Timestamp(row.Until), j.Tries)+lastTry(j.Work, stage, j.Message, 1)
	case j.Blocked != "":
		x.Waits, x.Why = "person", blockedWhy(j.Work)
	default:
		x.Waits, x.Why = "execution", fmt.Sprintf("execution %s brings it to a worker; the sweep looks at it at %s", ExecutionName(id, j.Exec), ingest.Timestamp(j.Due))+lastTry(j.Work, stage, j.Message, 0)
	}
	return x, nil
}

// explainGate says what a job at a gate lacks: a lock, a slot, space, or only
// the scheduler's next look.
func (q *Queue) explainGate(ctx context.Context, j *ingest.Job, x Explanation) (Explanation, error) {
	free, err := q.free(ctx)
	if err != nil {
		return x, err
	}
	var lock, owner string
	if j.State != ingest.Pending {
		if lock, owner, err = q.blockedBy(ctx, j); err != nil {
			return x, err
		}
	}
	keeper, needs, err := q.keeper(ctx, j, free)
	switch {
	case err != nil:
		return x, err
	case lock != "":
		x.Waits, x.On = "lock", owner
		x.Why = fmt.Sprintf("job %s works on the same object (%s); this job goes on when that one is done", owner, lock)
	case free.Slots <= 0:
		x.Waits, x.Why = "slot", fmt.Sprintf("all %d slots are taken", q.Settings.MaxInFlight)
	case free.Share > 0 && free.Taken[j.Collection] >= free.Share:
		x.Waits, x.Why = "slot", fmt.Sprintf("its collection %s has all %d slots that one collection may have", j.Collection, free.Share)
	case j.State != ingest.Pending && j.TooLarge(q.Settings.Space) != "":
		x.Waits, x.Why = "space", j.TooLarge(q.Settings.Space)
	case keeper != "":
		x.Waits, x.On = "space", keeper
		x.Why = fmt.Sprintf("job %s has waited longer than %s for %d bytes of work space and keeps what comes free; %d are free", keeper, q.Settings.Patience, needs, max(0, free.Space))
	case j.State != ingest.Pending && !j.HasSpace && j.SpaceNeeded > free.Space:
		x.Waits, x.Why = "space", fmt.Sprintf("it needs %d bytes of work space and %d are free", j.SpaceNeeded, max(0, free.Space))
	case j.State != ingest.Pending && !j.HasSpace && !j.SizeKnown && free.Space < free.Reserve:
		x.Waits, x.Why = "space", fmt.Sprintf("its size is unknown, and such jobs wait while less than %d bytes are free", free.Reserve)
	default:
		x.Waits = "gate"
		x.Why, err = q.nextLook(ctx)
	}
	return x, err
}

// silentAfter is how old the last sweep is when the scheduler cannot be running: it
// sweeps each minute.
const silentAfter = 3 * sweepEvery

// nextLook says when the scheduler looks at what it can let on, or that it does not run.
func (q *Queue) nextLook(ctx context.Context) (string, error) {
	last, err := q.lastSweep(ctx)
	switch {
	case last.IsZero():
		return "nothing is missing, but the scheduler has never run: look at its rule and at the log of the function scheduler", err
	case q.Now().Sub(last) > silentAfter:
		return fmt.Sprintf("nothing is missing, but the scheduler has not run since %s: look at its rule and at the log of the function scheduler",
			ingest.Timestamp(last.UnixMilli())), err
	}
	return "nothing is missing; the scheduler lets it on at its next look, within a minute", err
}

// keeper is the job before j at gate 2 that keeps the space which comes free for
// itself, and what it needs; "" if none does, among the first of those that wait.
func (q *Queue) keeper(ctx context.Context, j *ingest.Job, free ingest.Free) (id string, needs int64, err error) {
	place, turn := j.WorkKey()
	if place != ingest.WorkProvisioning || free.Patience == 0 {
		return "", 0, nil
	}
	var page []candidate
	if _, err := q.Table.Page(ctx, table.Query{Index: "work", PK: place, From: "0", To: turn, Limit: 1000}, &page); err != nil {
		return "", 0, err
	}
	for _, w := range page {
		want := ingest.Want{ID: w.ID, Space: w.Space, Known: w.Known, Waited: q.Now().Sub(time.UnixMilli(w.Entered))}
		if w.ID == j.ID {
			break
		}
		if _, left := ingest.Choose(free, []ingest.Want{want}); left.Kept {
			return w.ID, w.Space, nil
		}
	}
	return "", 0, nil
}

// ExplainBatch says what a batch waits for.
func (q *Queue) ExplainBatch(ctx context.Context, id string) (Explanation, error) {
	row, err := q.Batch(ctx, id)
	if err != nil {
		return Explanation{}, err
	}
	counts, err := q.Counts(ctx, id)
	if err != nil {
		return Explanation{}, err
	}
	x := Explanation{State: string(row.State), Waits: "nothing", Why: "it has ended"}
	switch stage, working := ingest.StageOfBatch(row.State); {
	case row.Live(q.Now()):
		x.Waits, x.Why = "worker", "a worker has it until "+ingest.Timestamp(row.Until)+" at the latest"+lastTry(row.Work, stage, row.Message, 1)
	case working && row.Blocked != "":
		x.Waits, x.Why = "person", blockedWhy(row.Work)
	case working:
		x.Waits, x.Why = "execution", fmt.Sprintf("execution %s brings it to a worker; the sweep looks at it at %s", ExecutionName(id, row.Exec), ingest.Timestamp(row.Due))+
			lastTry(row.Work, stage, row.Message, 0)
	case row.State == ingest.BatchProcessing:
		x.Waits, x.Why = "jobs", fmt.Sprintf("%d of its %d jobs are open, %d of them held", counts.Open(), row.Expected, counts.Held)
	case row.State == ingest.BatchHeld:
		x.Waits, x.Why = "person", "it is held until somebody releases it"
	case row.State == ingest.BatchFailed:
		x.Waits, x.Why = "person", failedBatch(row, counts)
	}
	problems, err := q.MailProblems(ctx, row)
	for _, p := range problems {
		x.Why += ". " + p.String()
	}
	return x, err
}

// failedBatch says what there is to do about a failed batch.
func failedBatch(row *Batch, counts ingest.Counts) string {
	const stays = "the batch stays Failed, since its report was made before, and a report cannot be updated yet"
	switch {
	case counts.Sum() == 0:
		return "it has no jobs; correct it and submit it again: " + row.Message
	case counts.Failed > 0:
		return fmt.Sprintf("%d of its %d jobs failed; correct the causes and requeue the jobs, or submit their objects again", counts.Failed, counts.Sum())
	case counts.Open() > 0:
		return fmt.Sprintf("none of its jobs is failed now, and %d of %d are open; %s", counts.Open(), counts.Sum(), stays)
	case row.Incomplete != "":
		return fmt.Sprintf("all of its %d jobs are completed, but not all of its rows became jobs; submit the others again: %s", counts.Sum(), row.Incomplete)
	}
	return fmt.Sprintf("none of its jobs is failed now: all %d are completed; %s", counts.Sum()-counts.Deleted, stays)
}
