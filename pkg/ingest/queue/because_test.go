package queue_test

import (
	"context"
	"testing"

	"archivist/pkg/events/envelope"
	"archivist/pkg/events/event"
	"archivist/pkg/ingest"
	"archivist/pkg/ingest/queue"
)

// TestCauseOfSubmission: what comes of a batch that was submitted because of an event has that event as
// its cause: the batch, its jobs, and what their stages do.
func TestCauseOfSubmission(t *testing.T) {
	b := newTwinBench(t)
	cause := envelope.Cause{Event: "E.1", Root: "E.0", Depth: 2, Components: []string{"unpack", "normalize"}}
	row, err := b.q.Submit(event.From(t.Context(), event.Origin{Cause: cause}),
		ingest.Batch{Collection: "c", Mode: "add"}, "", nil, "me")
	if err != nil {
		t.Fatal(err)
	}
	b.handle(b.last(), func(ctx context.Context, claim *queue.Claim) (ingest.Result, error) {
		job := ingest.Job{Collection: "c", Priority: 5, SizeKnown: true, State: ingest.Pending}
		return ingest.Result{Outcome: ingest.StepNext}, claim.Unpack(ctx, []ingest.Job{job}, 1)
	})
	b.tick()
	b.handle(b.last(), func(ctx context.Context, _ *queue.Claim) (ingest.Result, error) {
		if got := event.OriginOf(ctx).Cause; got.Event != "E.1" || got.Depth != 2 {
			t.Errorf("the step has the cause %+v", got)
		}
		return ingest.Result{Outcome: ingest.StepNext}, nil
	})
	job := ingest.JobID(row.Batch.ID, 1)
	for _, s := range []event.Subject{{Type: event.Batch, ID: row.Batch.ID}, {Type: event.Job, ID: job}} {
		events, _, err := event.Page(t.Context(), b.q.Table, s, "")
		if err != nil || len(events) < 2 {
			t.Fatalf("%d events of %v, %v", len(events), s, err)
		}
		for _, e := range events {
			// The gate admits jobs of many batches in one transaction; its events have no cause.
			if e.Component != "scheduler" && e.Cause.Event != "E.1" {
				t.Errorf("%s %d by %s has the cause %+v", s, e.Version, e.Component, e.Cause)
			}
		}
	}
}
