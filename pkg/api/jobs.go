package api

import (
	"context"
	"fmt"
	"net/http"
	"strconv"

	"github.com/danielgtaylor/huma/v2"

	v1 "archivist/pkg/api/v1"
	"archivist/pkg/event"
	"archivist/pkg/fault"
	"archivist/pkg/ingest"
	"archivist/pkg/queue"
)

func (a *API) jobs(h huma.API) {
	get(a, h, "/v1/batches/{id}/jobs", "List a batch's jobs", func(ctx context.Context, in *struct {
		IDCursor
		State string `query:"state"`
	}) (v1.List[v1.Job], error) {
		after := 0
		if in.Cursor != "" {
			n, err := strconv.Atoi(in.Cursor)
			if err != nil || n < 0 {
				return v1.List[v1.Job]{}, fault.New(fault.Invalid, "cursor: %q is not a cursor of this list", in.Cursor)
			}
			after = n
		}
		jobs, err := a.Queue.Jobs(ctx, in.ID, after)
		p := queue.Page[queue.Job]{Items: jobs}
		if len(jobs) == 100 {
			p.Cursor = fmt.Sprint(after + len(jobs))
		}
		return filtered(p, in.State), err
	})
	get(a, h, "/v1/jobs", "List a collection's jobs, newest first", func(ctx context.Context, in *struct {
		Collection string `query:"collection" required:"true"`
		State      string `query:"state"`
		Cursor     string `query:"cursor"`
	}) (v1.List[v1.Job], error) {
		p, err := a.Queue.JobsOf(ctx, in.Collection, in.Cursor)
		return filtered(p, in.State), err
	})
	get(a, h, "/v1/jobs/{id}", "A job", func(ctx context.Context, in *IDInput) (v1.Job, error) {
		j, err := a.Queue.Job(ctx, in.ID)
		if err != nil {
			return v1.Job{}, err
		}
		return wireJob(*j), nil
	})
	get(a, h, "/v1/jobs/{id}/events", "What happened to a job, oldest first", a.events(event.Job))
	get(a, h, "/v1/jobs/{id}/explain", "The one thing that a job waits for", func(ctx context.Context, in *IDInput) (v1.Explanation, error) {
		return wireExplanation(a.Queue.ExplainJob(ctx, in.ID))
	})
	huma.Register(h, huma.Operation{Method: http.MethodPost, Path: "/v1/jobs/{id}/actions", Summary: "Act on a job", OperationID: "act-on-job"},
		func(ctx context.Context, in *struct {
			IDInput
			Body v1.Action
		}) (*output[v1.Job], error) {
			act := a.Queue.Requeue
			switch {
			case in.Body.Action == "fail":
				act = a.Queue.ForceFail
			case in.Body.Confirm:
				act = a.Queue.RequeueConfirmed
			}
			j, err := act(ctx, in.ID, in.Body.Reason, "an operator")
			if err != nil {
				return nil, a.problem(err)
			}
			return &output[v1.Job]{wireJob(*j)}, nil
		})
}

func filtered(p queue.Page[queue.Job], state string) v1.List[v1.Job] {
	all := list(p, wireJob)
	if state == "" {
		return all
	}
	out := v1.List[v1.Job]{Items: []v1.Job{}, Cursor: all.Cursor}
	for _, j := range all.Items {
		if j.State == state {
			out.Items = append(out.Items, j)
		}
	}
	return out
}

func wireJob(j queue.Job) v1.Job {
	return v1.Job{ID: j.Job.ID, Batch: j.Batch, Collection: j.Collection, State: string(j.State), LastSuccessfulState: string(j.LastSuccessful), Parked: j.Parked,
		Priority: j.Priority, SpaceNeeded: j.SpaceNeeded, RetryCount: j.RetryCount, Recoverable: j.State == ingest.Failed && !j.NotRecoverable,
		Identifiers: v1.Identifiers{Primary: j.Primary, Local: j.LocalIDs}, Version: j.ObjectVersion, NoChange: j.NoChange, InventoryDigest: j.Inventory,
		Message: j.Message, Progress: v1.Progress{Files: j.Files, Bytes: j.Bytes, Done: j.Checkpoint}}
}
