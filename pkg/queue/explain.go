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
	place, _ := j.Place()
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
	case place == ingest.PlacePending || place == ingest.PlaceProvisioning || place == ingest.PlaceParked:
		return q.explainGate(ctx, j, x)
	case row.Live(q.Now()):
		x.Waits, x.Why = "worker", fmt.Sprintf("a worker has it until %s at the latest (try %d)", instant(row.Until), j.Tries)+lastTry(j.Work, stage, j.Message, 1)
	default:
		x.Waits, x.Why = "execution", fmt.Sprintf("execution %s brings it to a worker; the sweep looks at it at %s", ExecutionName(id, j.Exec), instant(j.Due))+lastTry(j.Work, stage, j.Message, 0)
	}
	return x, nil
}

// explainGate says what a job at a gate lacks: a lock, a slot, space, or only
// the clock's next look.
func (q *Queue) explainGate(ctx context.Context, j *ingest.Job, x Explanation) (Explanation, error) {
	free, err := q.free(ctx)
	if err != nil {
		return x, err
	}
	var lock, owner string
	if j.State != ingest.Pending {
		if lock, owner, err = q.taken(ctx, j); err != nil {
			return x, err
		}
	}
	switch {
	case lock != "":
		x.Waits, x.On = "lock", owner
		x.Why = fmt.Sprintf("job %s works on the same object (%s); this job goes on when that one is done", owner, lock)
	case free.Slots <= 0:
		x.Waits, x.Why = "slot", fmt.Sprintf("all %d slots are taken", q.Settings.MaxInFlight)
	case j.State != ingest.Pending && !j.HasSpace && j.SpaceNeeded > free.Space:
		x.Waits, x.Why = "space", fmt.Sprintf("it needs %d bytes of work space and %d are free", j.SpaceNeeded, free.Space)
	case j.State != ingest.Pending && !j.HasSpace && !j.SizeKnown && free.Space < free.Reserve:
		x.Waits, x.Why = "space", fmt.Sprintf("its size is unknown, and such jobs wait while less than %d bytes are free", free.Reserve)
	default:
		x.Waits, x.Why = "gate", "nothing is missing; the clock lets it on at its next look, within a minute"
	}
	return x, nil
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
		x.Waits, x.Why = "worker", "a worker has it until "+instant(row.Until)+" at the latest"+lastTry(row.Work, stage, row.Message, 1)
	case working:
		x.Waits, x.Why = "execution", fmt.Sprintf("execution %s brings it to a worker; the sweep looks at it at %s", ExecutionName(id, row.Exec), instant(row.Due))+
			lastTry(row.Work, stage, row.Message, 0)
	case row.State == ingest.BatchProcessing:
		x.Waits, x.Why = "jobs", fmt.Sprintf("%d of its %d jobs are open, %d of them held", counts.Open(), row.Expected, counts.Held)
	case row.State == ingest.BatchHeld:
		x.Waits, x.Why = "person", "it is held until somebody releases it"
	case row.State == ingest.BatchFailed:
		x.Waits, x.Why = "person", fmt.Sprintf("%d of its jobs failed: mend and requeue them, or submit anew", counts.Failed)
	}
	problems, err := q.MailProblems(ctx, row)
	for _, p := range problems {
		x.Why += ". " + p.String()
	}
	return x, err
}

func instant(ms int64) string { return time.UnixMilli(ms).UTC().Format(time.RFC3339) }

// Overview is the queue at a glance.
type Overview struct {
	Waiting       map[string]int `json:"waiting"` // by gate; at most 1,000 are counted
	Running       int            `json:"running"`
	MaxInFlight   int            `json:"maxInFlight"`
	SpaceFree     int64          `json:"spaceFree"`               // bytes
	OldestWaiting string         `json:"oldestWaiting,omitempty"` // job id
	OldestSince   string         `json:"oldestSince,omitempty"`
}

// Overview counts what waits and what runs.
func (q *Queue) Overview(ctx context.Context) (Overview, error) {
	free, err := q.free(ctx)
	if err != nil {
		return Overview{}, err
	}
	o := Overview{Waiting: map[string]int{}, Running: q.Settings.MaxInFlight - free.Slots, MaxInFlight: q.Settings.MaxInFlight, SpaceFree: free.Space}
	oldest := int64(0)
	for _, place := range []string{ingest.PlacePending, ingest.PlaceProvisioning, ingest.PlaceParked} {
		var page []struct {
			table.Head
			ID      string `dynamo:"id"`
			Entered int64  `dynamo:"entered"`
		}
		if _, err := q.Table.Page(ctx, table.Query{Index: "work", PK: place, Limit: 1000}, &page); err != nil {
			return o, err
		}
		o.Waiting[place] = len(page)
		for _, w := range page {
			if oldest == 0 || w.Entered < oldest {
				oldest, o.OldestWaiting, o.OldestSince = w.Entered, w.ID, instant(w.Entered)
			}
		}
	}
	return o, nil
}
