package api

import (
	"context"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	v1 "archivist/pkg/api/v1"
	"archivist/pkg/events/event"
	"archivist/pkg/ingest"
	"archivist/pkg/ingest/queue"
	"archivist/pkg/kernel/fault"
)

// BatchJobs is a request for a page of a batch's jobs.
type BatchJobs struct {
	IDCursor
	State    string `query:"state"`
	Callback string `query:"callback" enum:"waits,delivered,failed,given-up"`
	Sort     string `query:"sort" enum:"state,since,space,title"`
	Order    string `query:"order" enum:"ascending,descending"`
}

// wanted is the filter of the jobs, nil for none. state is the known state that was named.
func (in *BatchJobs) wanted(state string) func(queue.Job) bool {
	if in.Callback == "" {
		return inState(state, stateOfJob)
	}
	return func(j queue.Job) bool {
		return (state == "" || stateOfJob(j) == state) &&
			slices.ContainsFunc(j.Calls, func(c ingest.Called) bool {
				return string(j.CallState(c)) == in.Callback
			})
	}
}

// jobs registers the routes of jobs. What acts on jobs is in actions and bulk.
func (a *API) jobs(h huma.API) {
	get(a, h, "/v1/batches/{id}/jobs", "listBatchJobs", "List a batch's jobs", a.jobsOfBatch)
	get(a, h, "/v1/jobs", "listJobs", "List jobs", a.listJobs)
	get(a, h, "/v1/jobs/{id}", "getJob", "Get a job",
		func(ctx context.Context, in *IDInput) (v1.Job, error) {
			j, err := a.Queue.Job(ctx, in.ID)
			if err != nil {
				return v1.Job{}, err
			}
			out, err := a.withStages(ctx, j)
			out.Actions = possible(ctx, ingest.TargetJob, j.Allows)
			return out, err
		})

	get(a, h, "/v1/jobs/{id}/events", "listJobEvents", "List a job's events", a.events(event.Job))
	receipt := operationAt(http.MethodGet, "/v1/jobs/{id}/receipt", "getReceipt", "Get a job's "+
		"receipt")
	receipt.Middlewares = huma.Middlewares{a.orCSV(a.receiptCSV)}
	answer := &huma.Response{Description: "OK", Content: map[string]*huma.MediaType{"application/json": {}}}
	withCSV(answer, "The files")
	receipt.Responses = map[string]*huma.Response{"200": answer}
	register(a, h, receipt, a.receipt)
}

// pageOfJobs is the page size of the queue for the jobs of a batch. A page that is full may not be the
// last, so it has a cursor.
const pageOfJobs = 100

// jobsOfBatch lists jobs in the order of their manifest rows. The cursor is the row of the last one.
// Rows are numbered from 1, so the row is a place that stays right while jobs change. A cursor that is
// no such number is an Invalid.
func (a *API) jobsOfBatch(ctx context.Context, in *BatchJobs) (v1.List[v1.Job], error) {
	state, err := filterBy(in.State, v1.JobStates)
	if err != nil {
		return v1.List[v1.Job]{}, err
	}
	if in.Sort != "" {
		return a.sortedOfBatch(ctx, in, in.wanted(state))
	}
	if in.Order != "" {
		return v1.List[v1.Job]{}, fault.New(fault.Invalid, "order: give what to sort by, too: %s",
			strings.Join(v1.JobSorts, ", "))
	}

	read := func(cursor string) (p queue.Page[queue.Job], err error) {
		after := 0
		if cursor != "" {
			if after, err = strconv.Atoi(cursor); err != nil || after < 1 {
				return p, badCursor(cursor)
			}
		}

		p.Items, err = a.Queue.Jobs(ctx, in.ID, after)
		if len(p.Items) == pageOfJobs {
			p.Cursor = strconv.Itoa(after + pageOfJobs)
		}
		return p, err
	}

	p, err := filtered(a, read, in.Cursor, in.wanted(state))
	return list(p, wireJob), err
}

// sortedOfBatch is a page of the jobs of a batch that are wanted, all for nil, sorted.
func (a *API) sortedOfBatch(ctx context.Context, in *BatchJobs, wanted func(queue.Job) bool) (
	out v1.List[v1.Job], err error) {
	all, err := a.Queue.AllJobsOf(ctx, in.ID)
	if err != nil {
		return out, err
	}
	all = slices.DeleteFunc(all, func(j queue.Job) bool { return wanted != nil && !wanted(j) })
	p, err := sortedJobs(all, sorting{in.ID, in.Sort, in.Order, in.Cursor, pageOfJobs})
	return list(p, wireJob), err
}

// withStages is the wire form of a job with the states that it was in.
func (a *API) withStages(ctx context.Context, j *queue.Job) (v1.Job, error) {
	out := wireJob(*j)
	stages, err := a.Queue.StagesOf(ctx, j)
	for _, s := range stages {
		out.Stages = append(out.Stages, v1.JobStage{
			State:   string(s.State),
			Since:   timestamp(s.First),
			Until:   timestamp(s.Last),
			Seconds: float64(s.Spent) / 1000,
			Times:   s.Times,
			Tries:   s.Tries,
		})
	}
	return out, err
}

// wireRunning is the wire form of a job that runs.
func wireRunning(j queue.Job) v1.RunningJob {
	return v1.RunningJob{
		Job:        j.Job.ID,
		Collection: j.Collection,
		State:      string(j.State),
		Since:      timestamp(j.Entered),
		Execution:  j.Execution(),
		Worker:     j.Holder,
		Progress:   progressOf(j),
	}
}

// wireHead is the wire form of one of the first jobs at a gate.
func wireHead(h queue.Head) v1.GateHead {
	return v1.GateHead{
		Gate:       h.Gate,
		Place:      h.N,
		Job:        h.Job.Job.ID,
		Collection: h.Job.Collection,
		Since:      timestamp(h.Job.Entered),
		Why:        h.Why,
	}
}

// wireLocks is the wire form of lines before locks.
func wireLocks(now queue.InWork) *v1.LockLines {
	return &v1.LockLines{Looked: now.Looked, More: now.More,
		Lines: each(now.Lines, func(l queue.Line) v1.LockLine {
			out := v1.LockLine{Of: l.Of, First: l.First, Has: l.Has, Waiting: len(l.Waiting),
				Jobs: l.Waiting[:min(len(l.Waiting), mostInLine)]}
			if l.Job != nil {
				out.Collection, out.State = l.Job.Collection, string(l.Job.State)
				out.Since = timestamp(l.Job.Entered)
			}
			return out
		})}
}

// mostInLine is how many jobs of a line before a lock are named.
const mostInLine = 5

// wireLimits is the wire form of limits.
func wireLimits(l queue.Limits) *v1.QueueLimits {
	use := func(u queue.Used) v1.QueueUse { return v1.QueueUse{Name: u.Name, Running: u.Jobs} }
	return &v1.QueueLimits{
		OfCollection:    l.Share,
		Collections:     each(l.Collections, use),
		Stages:          each(l.Stages, use),
		Space:           l.Capacity,
		Reserve:         l.Reserve,
		PatienceMinutes: int(l.Patience.Minutes()),
		LargestHolder:   l.Most.Job,
		LargestHeld:     l.Most.Space,
	}
}

func progressOf(j queue.Job) v1.Progress {
	return v1.Progress{Files: j.Files, Bytes: j.Bytes, Done: j.Checkpoint}
}

// stateOfJob is what the filter of lists of jobs compares.
func stateOfJob(j queue.Job) string { return string(j.State) }

// wireJob is the wire form of a job. Recoverable says whether requeue can help: it can if the job
// failed for a cause that may pass. Sizes are bytes.
func wireJob(j queue.Job) v1.Job {
	var hold *v1.Hold
	if j.Hold != nil {
		hold = holdOn(j.Hold, j.Job.ID, j.Batch, j.Collection)
	}
	var unpacked *v1.JobContainer
	if c := j.Unpacked; c != nil {
		unpacked = &v1.JobContainer{Name: c.Name, Kind: c.Kind, Size: c.Bytes, SHA256: c.SHA256,
			Kept:    c.Kept,
			Fetched: c.Fetched}
		if c.Bag != nil {
			unpacked.Bag = c.Bag.Version
		}
	}

	var update *v1.JobUpdate
	if m := j.Merged; m != nil {
		update = &v1.JobUpdate{Files: m.Files, Kept: m.Kept, Deleted: m.Deleted}
	}

	return v1.Job{
		Container:           unpacked,
		Update:              update,
		Hold:                hold,
		ID:                  j.Job.ID,
		Batch:               j.Batch,
		Collection:          j.Collection,
		Title:               j.What,
		Source:              j.Payload.Source(),
		Created:             ingest.Timestamp(j.Created),
		Since:               timestamp(j.Entered),
		State:               string(j.State),
		Cancelled:           j.Cancelled,
		LastSuccessfulState: string(j.LastSuccessful),
		Parked:              j.Parked,
		Priority:            j.Priority,
		SpaceNeeded:         j.SpaceNeeded,
		RetryCount:          j.RetryCount,
		Recoverable:         j.State == ingest.Failed && !j.NotRecoverable,
		Identifiers:         v1.Identifiers{Primary: j.Primary, Local: j.LocalIDs},
		Version:             j.ObjectVersion,
		NoChange:            j.NoChange,
		InventoryDigest:     j.Inventory,
		Warnings:            j.Warnings(),
		Message:             j.Message,
		Callbacks:           callbacksOf(&j.Job),
		Progress:            progressOf(j),
	}
}
