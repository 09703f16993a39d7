package event_test

import (
	"context"
	"fmt"

	"archivist/pkg/events/event"
	"archivist/pkg/kernel/table/tabletest"
)

// The history of a job has two events; a second writer of the same version is refused.
func Example() {
	ctx := context.Background()
	rows := tabletest.Table(tabletest.New())
	job := event.Subject{Type: event.Job, ID: "B-00001"}
	write := func(tx string, version int64, to string) error {
		change := rows.Begin(tx)
		e := event.New{Type: "job.state", Component: "download", Detail: map[string]string{"to": to}}
		if err := event.Append(change, job, version, e); err != nil {
			return err
		}
		return change.Commit(ctx)
	}

	fmt.Println(write("tx1", 1, "Downloading"), write("tx2", 2, "Processing"))
	fmt.Println(write("tx3", 2, "Failed"))

	events, _, err := event.Page(ctx, rows, job, "")
	for _, e := range events {
		fmt.Println(e.Version, e.Type, e.Detail, e.Outcome)
	}
	fmt.Println(err)
	// Output:
	// <nil> <nil>
	// table: changed meanwhile: JOB#B-00001/EV#000000000002
	// 1 job.state {"to":"Downloading"} success
	// 2 job.state {"to":"Processing"} success
	// <nil>
}
