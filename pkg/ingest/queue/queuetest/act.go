package queuetest

import (
	"context"
	"strings"

	"archivist/pkg/ingest"
	"archivist/pkg/ingest/queue"
)

// Act does an action on a job, or on a batch if the id has no hyphen, as the administrator
// "me". change may change the action before.
func Act(ctx context.Context, q *queue.Queue, name ingest.ActionName, id string,
	change ...func(*ingest.Action)) (
	ingest.ActionResult, error) {
	a := ingest.Action{
		Name:   name,
		Target: ingest.Target{Kind: ingest.TargetBatch, ID: id},
		Reason: "a test",
		Actor:  "me",
		Role:   ingest.Administrator,
	}

	if strings.Contains(id, "-") {
		a.Target.Kind = ingest.TargetJob
	}

	for _, c := range change {
		c(&a)
	}
	return queue.Admin{Queue: q}.Act(ctx, a)
}

// Confirmed is an action that is confirmed.
func Confirmed(a *ingest.Action) { a.Confirm = true }

// Dry is an action that is only planned.
func Dry(a *ingest.Action) { a.DryRun = true }

// Priority is an action that sets a priority.
func Priority(n int) func(*ingest.Action) { return func(a *ingest.Action) { a.Priority = &n } }

// Requeue is the action requeue on a job. It returns the job after it.
func Requeue(ctx context.Context, q *queue.Queue, id, reason, actor string) (*queue.Job, error) {
	return acted(ctx, q, ingest.ActRequeue, id, reason, actor)
}

// RequeueConfirmed is the confirmed action requeue on a job.
func RequeueConfirmed(ctx context.Context, q *queue.Queue, id, reason,
	actor string) (*queue.Job, error) {
	return acted(ctx, q, ingest.ActRequeue, id, reason, actor, Confirmed)
}

// ForceFail is the action fail on a job.
func ForceFail(ctx context.Context, q *queue.Queue, id, reason, actor string) (*queue.Job, error) {
	return acted(ctx, q, ingest.ActFail, id, reason, actor)
}

func acted(ctx context.Context, q *queue.Queue, name ingest.ActionName, id, reason, actor string,
	change ...func(*ingest.Action)) (*queue.Job, error) {
	by := func(a *ingest.Action) { a.Reason, a.Actor = reason, actor }
	if _, err := Act(ctx, q, name, id, append(change, by)...); err != nil {
		return nil, err
	}
	return q.Job(ctx, id)
}
