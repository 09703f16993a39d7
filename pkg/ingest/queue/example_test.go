package queue_test

import (
	"context"
	"fmt"
	"time"

	"archivist/pkg/events/event"
	"archivist/pkg/ingest"
	"archivist/pkg/ingest/queue"
	"archivist/pkg/ingest/queue/queuetest"
	"archivist/pkg/kernel/table/tabletest"
)

// A batch of one job goes from its submission to its end.
func Example() {
	ctx, now := context.Background(), time.UnixMilli(0)
	m := queuetest.New(tabletest.Table(tabletest.New()), func() time.Time { return now }, 10)
	m.Step = func(s ingest.Stage) queue.Step {
		return func(ctx context.Context, c *queue.Claim) (ingest.Result, error) {
			done := ingest.Result{Outcome: ingest.StepNext}
			if s.Name == "unpack" {
				return done, c.Unpack(ctx, []ingest.Job{{Collection: "maps", Priority: 5, SizeKnown: true}}, 1)
			}
			return done, nil // what the stages really do is not part of this package
		}
	}

	batch, err := m.Queue.Submit(ctx, ingest.Batch{Collection: "maps", Mode: "add"}, "", nil, "me")
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := m.Run(ctx, 4); err != nil {
		fmt.Println(err)
	}
	x, err := m.Queue.ExplainBatch(ctx, batch.Batch.ID)
	fmt.Println(x.State, x.Why, err)

	job := event.Subject{Type: event.Job, ID: ingest.JobID(batch.Batch.ID, 1)}
	page, err := m.Queue.Events(ctx, job, "")
	for _, e := range page.Items {
		fmt.Println(e.Version, e.Component, e.Detail)
	}
	fmt.Println(err)
	// Output:
	// Completed All of its jobs have ended: 1 completed. <nil>
	// 1 unpack {"to":"Pending","exec":0}
	// 2 scheduler {"from":"Pending","to":"Estimating","exec":1}
	// 3 estimate {"from":"Estimating","to":"Provisioning","exec":1}
	// 4 scheduler {"from":"Provisioning","to":"Downloading","exec":2}
	// 5 download {"from":"Downloading","to":"Processing","exec":2}
	// 6 process {"from":"Processing","to":"Storing","exec":2}
	// 7 store {"from":"Storing","to":"Recording","exec":2}
	// 8 record {"from":"Recording","to":"Notify","exec":2}
	// 9 notify {"from":"Notify","to":"Completed","exec":2}
	// <nil>
}
