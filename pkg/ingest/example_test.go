package ingest_test

import (
	"fmt"
	"time"

	"archivist/pkg/ingest"
)

// A job goes from its submission to a failed download, and is requeued.
func Example() {
	rules := ingest.Rules{Timing: ingest.Timings["production"]}
	now := time.UnixMilli(0)
	done := ingest.Result{Outcome: ingest.StepNext}

	job := rules.New(ingest.Job{ID: "B-00001", Batch: "B", Priority: 5}, now)
	fmt.Println(job.State, "in the order", job.Turn)

	admitted := rules.Admit(job, now)
	fmt.Println(admitted.State, "owes", ingest.Wakes(job, admitted))

	job = rules.Next(admitted, done, now)
	fmt.Println(job.State, "with a slot:", job.HasSlot)

	job = rules.Provision(job, now)
	job = rules.Next(job, ingest.Fail(true, "404 Not Found"), now)
	fmt.Println(job.State, job.Message)

	job, err := rules.Requeue(job, now)
	fmt.Println(job.State, job.RetryCount, err)
	// Output:
	// Pending in the order 005#0000000000000#B-00001
	// Estimating owes [{start-job B-00001 1 Estimating}]
	// Provisioning with a slot: false
	// Failed 404 Not Found
	// Downloading 1 <nil>
}

// Each length of the chain of times is the reason of the next.
func ExampleTiming_Times() {
	stage, _ := ingest.StageNamed("download")
	t := ingest.Timings["production"].Times(stage)
	fmt.Println("time-out", t.Timeout, "lease", t.Lease, "visibility", t.Visibility, "retention", t.Retention)
	fmt.Println(t.Check())
	// Output:
	// time-out 5m0s lease 5m5s visibility 5m30s retention 1h28m0s
	// <nil>
}

// What does not fit lets others pass.
func ExampleChoose() {
	free := ingest.Free{Slots: 2, Space: 100, Capacity: 100}
	chosen, left := ingest.Choose(free, []ingest.Want{
		{ID: "large", Space: 90, Known: true},
		{ID: "larger", Space: 95, Known: true},
		{ID: "small", Space: 10, Known: true},
	})
	for _, w := range chosen {
		fmt.Println(w.ID)
	}
	fmt.Println(left.Slots, "slots and", left.Space, "bytes are left")
	// Output:
	// large
	// small
	// 0 slots and 0 bytes are left
}
